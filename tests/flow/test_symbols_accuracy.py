# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Random addresses of programs of several compilers get the same names and lines as elsewhere.

Compared with llvm-symbolizer, level by level. What differs, and why:
- the demanglers spell lambdas and operators differently: linker names are asked for there, and made
  readable by c++filt; the demangler here has a test of its own;
- the suffix of a compiler's copy of a function (".cold") is left out of both;
- of functions whose equal code was folded into one, either side may name another one;
- padding between functions: there is a line there, without any function, and nothing here: no code
  of a function, so that no profile holds such an address.
"""
import random
import re

from flow import *

LONG = "--long" in sys.argv
COUNT = 10000 if LONG else 1000
SIZE = "-long" if LONG else ""
CXX = ["-std=c++17", "-g", "-O2"] + (["-DWITH_REGEX"] if LONG else [])
SUFFIX = re.compile(r"(\.(cold|part|isra|constprop|lto_priv|llvm)(\.\w+)*)+$")


def text_section(path):
    for line in run("readelf", "-SW", path).stdout.split("\n"):
        m = re.match(r"\s*\[\s*\d+\]\s+\.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", line)
        if m:
            return int(m[1], 16), int(m[2], 16)
    raise RuntimeError(f"{path} has no .text")


def plain(name):
    """A name without the suffix of a copy."""
    return SUFFIX.sub("", re.sub(r" \[clone [^]]*\]", "", name))


def chains(addresses, *command):
    text = run(*command, input="".join(f"{a:#x}\n" for a in addresses)).stdout
    if command[0] == SYMBOLIZER:
        text = run("c++filt", "--no-verbose", input=text).stdout
    found = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if len(lines) > 1:
            places = [place.rsplit(":", 2) for place in lines[1::2]]
            found.append([(name, file, int(line), int(column))
                          for name, (file, line, column) in zip(lines[0::2], places)])
    return found


def compare(what, path):
    start, size = text_section(path)
    chance = random.Random(1)
    addresses = [start + chance.randrange(size) for _ in range(COUNT)]
    ours = chains(addresses, TOOL, "symbolize", "-e", path, "-")
    theirs = chains(addresses, SYMBOLIZER, "--inlines", "--no-demangle",
                    "--functions=linkage", "-e", path)
    if not check(len(ours) == len(theirs) == COUNT, f"{what}: {len(ours)} and {len(theirs)} answers"):
        return
    places = whole = padding = 0
    shown = []
    for address, have, want in zip(addresses, ours, theirs):
        place = have[0][1:3] == want[0][1:3]
        same = [(plain(f[0]), *f[1:]) for f in have] == [(plain(f[0]), *f[1:]) for f in want]
        places += place
        whole += same
        padding += have[0][0] == want[0][0] == "??" and not place
        if not same and want[0][0] != "??":
            shown.append(f"{address:#x}\n  have {have}\n  want {want}")
    print(f"{what}: places {places / COUNT:.2%}, chains {whole / COUNT:.2%}, padding {padding}")
    ok = check(places >= 0.98 * COUNT, f"{what}: file and line equal for only {places} of {COUNT}")
    ok &= check(whole >= 0.95 * COUNT, f"{what}: chains equal for only {whole} of {COUNT}")
    ok &= check(COUNT - places <= padding, f"{what}: {COUNT - places - padding} lines differ elsewhere")
    print("\n".join(shown[:3] if ok else shown[:20])[:6000])


def gcc():
    compare("gcc", target(f"words-gcc{SIZE}", "words.cc", CXX))


def lambdas_of_inlined_functions():
    """Too few addresses for chance to find them."""
    path = target(f"words-gcc{SIZE}", "words.cc", CXX)
    m = re.search(r"^(\w+) (\w+) \w \S*chooser\S*clE\S*$", run("nm", "-S", path).stdout, re.M)
    addresses = range(int(m[1], 16), int(m[1], 16) + int(m[2], 16))
    ours = chains(addresses, TOOL, "symbolize", "-e", path, "-")
    theirs = chains(addresses, SYMBOLIZER, "--inlines", "--no-demangle", "--functions=linkage", "-e", path)
    for address, have, want in zip(addresses, ours, theirs):
        check([(plain(f[0]), *f[1:]) for f in have] == [(plain(f[0]), *f[1:]) for f in want],
              f"{address:#x}\n  have {have}\n  want {want}")
    check(any(len(chain) > 1 for chain in ours), "nothing is inlined into the lambda")


def link_time_optimization():
    compare("gcc, link-time", target(f"words-lto{SIZE}", "words.cc", [*CXX, "-flto"]))


def split_debug_information():
    compare("gcc, split", target(f"words-split{SIZE}", "words.cc", [*CXX, "-gsplit-dwarf"]))


def clang():
    if shutil.which("clang++"):
        compare("clang", target(f"words-clang{SIZE}", "words.cc", CXX, "clang++"))


def rust():
    if starts("rustc", "--version"):
        compare("rustc", target("crunch-debug", "crunch.rs", ["-O", "-g"], "rustc"))


SYMBOLIZER = find_program("llvm-symbolizer", *[f"llvm-symbolizer-{n}" for n in range(25, 12, -1)])
if not SYMBOLIZER or not shutil.which("c++filt"):
    skip("no llvm-symbolizer or no c++filt")
main(gcc, lambdas_of_inlined_functions, link_time_optimization, split_debug_information, clang, rust, perf=False)

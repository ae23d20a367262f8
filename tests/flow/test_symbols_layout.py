# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""`symbolize -e` takes and prints what llvm-symbolizer does, byte for byte, and PLT names as objdump."""
import re

from flow import *

SOURCE_TEXT = """
#include <stdio.h>
#include <stdlib.h>
volatile long sum;
static inline __attribute__((always_inline)) void innermost(long i) { sum += i; sum ^= 3; }
static inline __attribute__((always_inline)) void middle(long i) { innermost(i); sum--; }
__attribute__((noinline)) void outermost(int n)
{
	for (int i = 0; i < n; i++)
		middle(i);
}
__attribute__((noinline, cold)) static void rare(void) { puts("rare"); abort(); }
int main(int argc, char **argv)
{
	outermost(argc);
	if (argc > 5)
		rare();
	return getenv("HOME") != 0;
}
"""


def build(*flags):
    path = os.path.join(WORK, "program" + "".join(flags))
    with open(path + ".c", "w") as f:
        f.write(SOURCE_TEXT)
    subprocess.run(["cc", "-O2", "-g", *flags, "-o", path, path + ".c"], check=True)
    return path


def functions(path):
    """{name: range of its addresses}"""
    text = run("nm", "-S", "--defined-only", path).stdout
    return {m[3]: range(int(m[1], 16), int(m[1], 16) + int(m[2], 16))
            for m in re.finditer(r"^(\w+) (\w+) [tT] (.*)$", text, re.M)}


def all_addresses(path):
    ranges = functions(path)
    found = [a for name in ("outermost", "rare", "main") for a in ranges[name]]
    # Without lines; in no function; in no section. (What is far behind all is "_end" elsewhere.)
    return found + [ranges["_start"].start, 0x10, 0]


def same_bytes():
    for flags in ([], ["-no-pie"], ["-gdwarf-4"]):
        path = build(*flags)
        addresses = [f"{a:#x}" for a in all_addresses(path)]
        text = "\n".join(addresses) + "\n"
        theirs = run(SYMBOLIZER, "-e", path, input=text).stdout
        ours = run(TOOL, "symbolize", "-e", path, input=text)
        check(ours.returncode == 0 and not ours.stderr, f"{flags}: {ours.returncode} {ours.stderr}")
        check(theirs.count("innermost\n") > 3, "nothing is inlined in the program")
        for address, have, want in zip(addresses, ours.stdout.split("\n\n"), theirs.split("\n\n")):
            check(have == want, f"{flags} {address}:\n{have}\ninstead of\n{want}")
        check(ours.stdout == theirs, f"{flags}: the layout differs")


def ways_to_ask():
    """Arguments, `-`, with and without 0x, blanks, CR LF and no last newline: all the same."""
    path = build()
    addresses = list(functions(path)["outermost"])[:6]
    want = run(SYMBOLIZER, "-e", path, *[hex(a) for a in addresses]).stdout
    ways = {
        "arguments": ([hex(a) for a in addresses], ""),
        "no prefix": ([f"{a:x}" for a in addresses], ""),
        "upper case": ([f"0X{a:X}" for a in addresses], ""),
        "standard input": ([], "".join(f"{a:#x}\n" for a in addresses)),
        "-": (["-"], "".join(f"{a:x}\n" for a in addresses)),
        "arguments and -": ([hex(addresses[0]), "-"], "".join(f"{a:#x}\n" for a in addresses[1:])),
        "blanks and CR LF": ([], "".join(f" \t{a:#x} \r\n\r\n" for a in addresses)),
        "no last newline": ([], "\n".join(f"{a:#x}" for a in addresses)),
    }
    for what, (arguments, text) in ways.items():
        r = run(TOOL, "symbolize", "-e", path, *arguments, input=text)
        check(r.stdout == want and r.returncode == 0, f"{what}: {r.returncode} {r.stdout[:200]} {r.stderr}")
    for bad in ("xyz", "0x", "12345678901234567", "-1", "0x12 0x13"):
        r = run(TOOL, "symbolize", "-e", path, input=bad + "\n")
        check(r.returncode == 1 and bad in r.stderr and not r.stdout, f"{bad}: {r.returncode} {r.stderr}")


def answers_as_they_are_asked():
    """A program can talk to it by pipes: each answer comes before the next question."""
    path = build()
    p = subprocess.Popen([TOOL, "symbolize", "-e", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    try:
        for address in list(functions(path)["main"])[:3]:
            p.stdin.write(f"{address:#x}\n")
            p.stdin.flush()
            lines = []
            while not lines or lines[-1] != "\n":
                lines.append(p.stdout.readline())
            check(lines[-3] == "main\n", f"{address:#x}: {lines}")
        p.stdin.close()
        check(p.wait(30) == 0, "exit status")
    finally:
        stop(p)


def objects():
    path = build()
    addresses = all_addresses(path)
    text = tool_ok("symbolize", "--json", "-e", path, *[hex(a) for a in addresses])
    parsed = [json.loads(line) for line in text.strip().split("\n")]
    check([int(o["address"], 16) for o in parsed] == addresses, "addresses are not those that were asked")
    first = parsed[list(functions(path)["outermost"]).__len__() // 2]["frames"]
    check(first[-1]["name"] == "outermost" and not first[-1]["inlined"], f"{first}")
    check(all(f["inlined"] for f in first[:-1]), f"{first}")
    check(all(f["line"] and f["column"] and f["file"].endswith(".c") for f in first), f"{first}")
    check(parsed[-1]["frames"] == [], f"{parsed[-1]}")
    outer = tool_ok("symbolize", "--no-inline", "-e", path, *[hex(a) for a in functions(path)["outermost"]])
    check("innermost" not in outer and "outermost" in outer, "--no-inline shows inlined calls")


def stubs():
    """Every stub of the procedure linkage table, against the disassembler."""
    for flags in ([], ["-fcf-protection"], ["-Wl,-z,now"], ["-fno-plt"], ["-no-pie"]):
        path = build(*flags)
        text = run("objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path).stdout
        want = dict(m.groups()[::-1] for m in re.finditer(r"^0*(\w+) <(\w+@plt)>:$", text, re.M))
        check(want or "-fno-plt" in flags, f"{flags}: the disassembler knows no stub")
        for name, address in want.items():
            have = tool_ok("symbolize", "-e", path, address).split("\n")[0]
            check(have == name, f"{flags} {address}: {have} instead of {name}")


SYMBOLIZER = find_program("llvm-symbolizer", *[f"llvm-symbolizer-{n}" for n in range(25, 12, -1)])
if not SYMBOLIZER:
    skip("no llvm-symbolizer")
main(same_bytes, ways_to_ask, answers_as_they_are_asked, objects, stubs, perf=False)

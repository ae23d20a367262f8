# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Inline chains of a C++ program, with file and line: the same as another symbolizer's."""
import os
import re

from flow import *


def loads(program):
    """[(file offset, size, address)] of the segments that are mapped."""
    found = []
    for line in run("readelf", "-lW", program).stdout.split("\n"):
        fields = line.split()
        if fields and fields[0] == "LOAD":
            found.append((int(fields[1], 16), int(fields[4], 16), int(fields[2], 16)))
    return found


def address_of(offset, segments):
    for start, size, address in segments:
        if start <= offset < start + size:
            return offset - start + address
    return None


def plain(name):
    return re.sub(r"\s+", " ", name).replace("> >", ">>").strip()


def leaf_chains(samples, program):
    """{file offset: [(name, file, line), innermost first]} of the leaves in a program."""
    chains = {}
    for sample in samples:
        frames, chain = sample["frames"], []
        if not frames or os.path.basename(frames[0].get("path") or "") != os.path.basename(program):
            continue
        for frame in frames:
            chain.append((plain(frame["name"] or ""), os.path.basename(frame.get("file", "")),
                          frame.get("line", 0)))
            if not frame["inline"]:
                break
        chains[int(frames[0]["rel"], 16)] = chain
    return chains


def other_chains(symbolizer, program, addresses):
    """The same from llvm-symbolizer."""
    text = "".join(f"{a:#x}\n" for a in addresses)
    out = run(symbolizer, "--inlines", "--demangle", "--functions=linkage", "-e", program,
              input=text).stdout
    chains = []
    for block in out.strip().split("\n\n"):
        lines = block.split("\n")
        chain = []
        for name, place in zip(lines[0::2], lines[1::2]):
            file, line, _ = place.rsplit(":", 2)
            chain.append((plain(name), os.path.basename(file), int(line)))
        chains.append(chain)
    return chains


def sampled_chains(program):
    """Leaf chains of a run that was long enough: a busy machine leaves a short one few samples."""
    for seconds in (1, 4, 16):
        samples, _ = numbers(record("inlines.spool", ["-F", "997"], [program, str(seconds)]))
        chains = leaf_chains(script("inlines.spool"), program) if samples else {}
        if samples >= 200 and len(chains) >= 8:
            break
    check(samples >= 200, f"only {samples} samples")
    check(len(chains) >= 8, f"only {len(chains)} different leaf addresses")
    return chains


def inline_chains_equal():
    symbolizer = find_program("llvm-symbolizer", *[f"llvm-symbolizer-{n}" for n in range(25, 12, -1)])
    if not symbolizer:
        skip("no llvm-symbolizer")
    program = target("inlines", "inlines.cc", ["-std=c++17"])
    ours = sampled_chains(program)
    segments = loads(program)
    offsets = sorted(ours)
    theirs = other_chains(symbolizer, program, [address_of(o, segments) for o in offsets])
    check(len(theirs) == len(offsets), "llvm-symbolizer answered another number of addresses")
    names = lines = 0
    for offset, want in zip(offsets, theirs):
        have = ours[offset]
        if [c[0] for c in have] != [c[0] for c in want]:
            names += 1
            print(f"{offset:#x}: names\n  have {have}\n  want {want}")
        elif have != want:
            lines += 1
            print(f"{offset:#x}: lines\n  have {have}\n  want {want}")
    check(names == 0, f"{names} of {len(offsets)} addresses have other names")
    check(lines == 0, f"{lines} of {len(offsets)} addresses have other files or lines")
    check(any(len(chain) >= 3 for chain in ours.values()), "no chain of three")


def stacks_hold_the_inlined_frames():
    record("inlines.spool", ["-F", "499"], [target("inlines", "inlines.cc", ["-std=c++17"]), "1"])
    stacks = folded("inlines.spool")

    def chain(names):
        names = [re.sub(r"\(.*", "", n) for n in names]
        tail = [n.rpartition("::")[2] for n in names]
        return "main" in tail and any(n.startswith("outer") for n in tail) and "middle" in tail

    found = share(stacks, chain)
    check(found >= 0.9, f"main, outer, middle in only {found:.0%}: {stacks[:3]}")
    text = tool_ok("script", "inlines.spool")
    check(re.search(r"inlines\.cc:\d+", text), "script shows no file and line")
    check("(inlined)" in text, "script marks no inlined frame")


main(inline_chains_equal, stacks_hold_the_inlined_frames)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The names of frames are those that the stackpulse crate 0.12.3 gives for the same spool."""
import collections
import os
import re

from flow import *
from peers import build_peers


def plain(name):
    """Without the differences that are a matter of taste: spaces, offsets, template spelling."""
    return re.sub(r"\s+", "", name)


def same_names(spool, at_least):
    r = run(READ, "names", "4", spool, timeout=600)
    check(r.returncode == 0, f"the peer refuses {spool}: {r.stderr[-500:]}")
    theirs = [block.split("\n") for block in r.stdout.strip("\n").split("\n\n")]
    ours = [[f["name"] or f"{os.path.basename(f.get('path') or '')}+{f['rel']}" for f in s["frames"]]
            for s in script(spool)]
    check(len(ours) == len(theirs), f"{spool}: {len(ours)} and {len(theirs)} samples")
    equal = total = 0
    others = collections.Counter()
    for mine, other in zip(ours, theirs):
        total += max(len(mine), len(other))
        for a, b in zip(mine, other):
            if plain(a) == plain(b):
                equal += 1
            else:
                others[a, b] += 1
    print(f"{spool}: {equal} of {total} frames have the same name")
    check(total and equal / total >= at_least, f"{spool}: {equal} of {total}: {others.most_common(5)}")


def c_program():
    record("deep.spool", ["-F", "499"], [target("deep"), "1"])
    same_names("deep.spool", 0.99)


def inlined_templates():
    record("inlines.spool", ["-F", "499"], [target("inlines", "inlines.cc", ["-std=c++17"]), "1"])
    same_names("inlines.spool", 0.95)


def stripped_library():
    record("gzip.spool", ["-F", "499"], [target("zipper", flags=["-l:libz.a"]), "1"])
    same_names("gzip.spool", 0.95)


READ = build_peers("bench-peer", "--features", "names")[0] if perf_works() else None
main(c_program, inlined_templates, stripped_library)

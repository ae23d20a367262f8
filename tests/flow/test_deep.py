# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""200 calls deep without frame pointers: whole chains, down to main and _start."""
from flow import *


def chains_are_complete():
    deep = target("deep")
    samples, lost = numbers(record("deep.spool", ["-F", "997", "--stack-size", "60000"], [deep, "2"]))
    check(samples >= 400, f"only {samples} samples")
    check(lost <= samples // 100, f"{lost} lost")
    stacks = folded("deep.spool")

    def complete(names):
        if "_start" not in names or "main" not in names or names[-1] != "leaf":
            return False
        inner = names[names.index("main") + 1:]
        return (names.index("_start") == 0 and inner[0] == "run" and inner[-1] == "leaf" and
                inner[1:-1] == ["level_a", "level_b"] * 100)

    whole = share(stacks, complete)
    check(whole >= 0.99, f"only {whole:.2%} of the samples are whole")
    if whole < 0.99:
        for names, count in stacks[:5]:
            print(count, len(names), ";".join(names)[:600])
    raw = [len(s["frames"]) for s in dump("deep.spool")["samples"]]
    check(sum(depth >= 204 for depth in raw) >= 0.99 * len(raw), "recorded chains are too short")


def default_options_are_enough():
    """The default stack size holds these 200 frames."""
    deep = target("deep")
    record("plain.spool", [], [deep, "1"])
    whole = share(folded("plain.spool"), lambda names: names[0] == "_start" and "main" in names)
    check(whole >= 0.98, f"only {whole:.2%} reach _start")


def cut_stacks_are_marked():
    """With too few stack bytes the chain ends early, and says so."""
    deep = target("deep")
    record("cut.spool", ["-F", "499", "--stack-size", "4096"], [deep, "1"])
    stacks = folded("cut.spool")
    check(share(stacks, lambda names: names[-1] == "leaf") >= 0.95, "leaves are lost")
    check(share(stacks, lambda names: "main" in names) <= 0.05, "4 KiB cannot hold the chain")
    marked = sum(any(f["mode"] == "truncated" or f["mode"] == "truncated_stack_marker" or
                     "trunc" in f["mode"] for f in s["frames"]) for s in dump("cut.spool")["samples"])
    check(marked >= 0.9 * sum(c for _, c in stacks), f"only {marked} samples are marked as cut")


main(chains_are_complete, default_options_are_enough, cut_stacks_are_marked)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Stacks of a known shape come out in that shape, however the program was compiled."""
import json

from flow import *

PLAIN = ["-O0", "-g", "-fno-omit-frame-pointer", "-pthread"]


def cut(sample):
    return any("trunc" in frame["mode"] for frame in sample["frames"])


def shape(program, name, *options):
    """Records one shape; gives (folded stacks, raw samples, counters)."""
    spool = f"{name}.spool"
    seconds = "0.3"
    r = tool("record", "--json", "-o", spool, "-F", "999", *options, "--", program, name, seconds)
    check(r.returncode == 0, f"{name}: {r.returncode}: {r.stderr[-800:]}")
    samples = [s for s in dump(spool)["samples"]]
    check(len(samples) > 50, f"{name}: only {len(samples)} samples")
    return folded(spool), samples, r.stdout + r.stderr


def bare(names):
    """C++ names without their arguments."""
    return [name.split("(")[0] for name in names]


def contains(names, chain):
    return any(names[i:i + len(chain)] == chain for i in range(len(names)))


PROGRAMS = (
    ("shapes_plain", PLAIN, None),
    ("shapes_fast", HOT + ["-pthread"], None),
    ("shapes_cxx", HOT + ["-pthread", "-x", "c++"], "c++"),
)


def programs(count):
    for name, flags, compiler in PROGRAMS[:count]:
        yield name, target(name, "shapes.c", flags, compiler)


def chains_keep_their_order():
    for name, program in programs(3):
        stacks, samples, _ = shape(program, "chain")
        whole = share(stacks, lambda n: bare(n)[-4:] == ["main", "entry", "middle", "leaf"] and
                      n[0] == "_start")
        check(whole >= 0.97, f"{name}: {whole:.0%} whole: {stacks[:2]}")
        marked = sum(map(cut, samples))
        check(marked == 0, f"{name}: {marked} of {len(samples)} marked as cut")


def recursion_is_kept():
    for name, program in programs(1):
        stacks, _, _ = shape(program, "recurse")
        whole = share(stacks, lambda n: bare(n)[-9:] == ["main"] + 7 * ["recurse"] + ["leaf"])
        check(whole >= 0.97, f"{name}: {whole:.0%} whole: {stacks[:2]}")


def threads_end_at_their_start():
    for name, program in programs(2):
        stacks, samples, _ = shape(program, "thread")
        whole = share(stacks, lambda n: contains(bare(n), ["thread_body", "entry", "middle", "leaf"])
                      and "main" not in n)
        check(whole >= 0.95, f"{name}: {whole:.0%} whole: {stacks[:2]}")
        marked = sum(map(cut, samples))
        check(marked == 0, f"{name}: {marked} of {len(samples)} marked as cut")


def a_huge_frame_cuts_the_stack():
    program = target("shapes_fast", "shapes.c", HOT + ["-pthread"])
    stacks, samples, _ = shape(program, "huge", "--stack-size", "32768")
    inner = share(stacks, lambda n: n[-2:] == ["huge", "leaf"] and "main" not in n)
    check(inner >= 0.95, f"huge, leaf in only {inner:.0%}: {stacks[:2]}")
    marked = sum(map(cut, samples))
    check(marked >= 0.95 * len(samples), f"only {marked} of {len(samples)} marked as cut")
    counters = info("huge.spool")
    check(counters["counter/truncated-frame-markers"] == marked,
          f"{counters} markers counted, {marked} written")
    check(counters["counter/sample-errors"] >= marked, f"{counters}: the errors are not counted")


def a_deep_stack_ends_after_1024_frames():
    program = target("shapes_fast", "shapes.c", HOT + ["-pthread"])
    _, samples, _ = shape(program, "deep", "--stack-size", "65528")
    full = [s for s in samples if len(s["frames"]) == 1025 and cut(s)]
    check(len(full) >= 0.9 * len(samples), f"{len(full)} of {len(samples)} have 1024 frames and the mark: "
          f"{sorted({len(s['frames']) for s in samples})[-3:]}")
    errors = info("deep.spool")["counter/sample-errors"]
    check(errors <= len(samples) - len(full), f"{errors} errors, but a limit is none")


def a_call_at_the_end_belongs_to_its_function():
    program = target("shapes_fast", "shapes.c", HOT + ["-pthread"])
    stacks, _, _ = shape(program, "last")
    right = share(stacks, lambda n: n[-3:] == ["calls_last", "never_back", "leaf"])
    check(right >= 0.95, f"calls_last in only {right:.0%}: {stacks[:2]}")
    check(share(stacks, lambda n: "behind_calls_last" in n) == 0, "the next function is named")


def kernel_frames_come_first():
    if os.geteuid() != 0:
        return
    program = target("shapes_fast", "shapes.c", HOT + ["-pthread"])
    _, samples, _ = shape(program, "kernel", "--kernel")
    check(info("kernel.spool")["counter/kernel-enabled"] == 1, "the kernel is not recorded")
    with_kernel = 0
    for sample in samples:
        modes = ["kernel" if f["mode"] == "kernel" else "user" for f in sample["frames"]]
        with_kernel += "kernel" in modes
        check(modes == sorted(modes), f"kernel frames behind user frames: {modes}")
    check(with_kernel >= 0.2 * len(samples), f"kernel frames in {with_kernel} of {len(samples)}")


def info(spool):
    """The recording's annotations; numbers as numbers."""
    notes = json.loads(tool_ok("info", "--json", spool))["annotations"]
    return {n["key"]: int(n["value"]) if n["value"].isdigit() else n["value"] for n in notes}


main(chains_keep_their_order, recursion_is_kept, threads_end_at_their_start, a_huge_frame_cuts_the_stack,
     a_deep_stack_ends_after_1024_frames, a_call_at_the_end_belongs_to_its_function,
     kernel_frames_come_first)

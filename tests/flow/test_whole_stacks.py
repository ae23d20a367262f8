# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Programs that are hard to unwind: nearly every stack reaches the start of the program or thread."""
from flow import *

WORKLOADS = os.path.join(SOURCE, "bench/workloads")
# Where stacks begin, by symbols of glibc and of its dynamic loader.
STARTS = {"_start", "clone3", "__clone3", "__GI___clone3", "clone", "__clone", "_dl_start_user",
          "start_thread", "__start_thread"}


def built(*names):
    """Builds workloads; gives their folder."""
    out = os.path.join(TARGETS, "workloads")
    done = run("make", "-s", "-C", WORKLOADS, f"OUT={out}", *[f"{out}/{name}" for name in names])
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return out


def complete(name, goal, arguments, options=(), needed=100):
    """Records a workload; at most one sample more than the goal permits may be cut or astray."""
    program = os.path.join(built(name), name)
    record(f"{name}.spool", ["-F", "2999", *options], [program, *arguments])
    stacks = folded(f"{name}.spool")
    total = sum(count for _, count in stacks)
    check(total >= needed, f"{name}: only {total} samples")
    bad = [(names, count) for names, count in stacks if names[0] not in STARTS]
    lost = sum(count for _, count in bad)
    if not check(lost <= 1 + (1 - goal) * total, f"{name}: {lost} of {total} stacks are not whole"):
        for names, count in bad[:10]:
            print(count, len(names), ";".join(names)[:400])


def templates():
    """Deep C++ with exceptions."""
    complete("tmpl", 0.995, ["40"])


def deep_recursion():
    complete("deep", 0.995, ["20000"], ["--stack-size", "60000"])


def hot_threads():
    complete("threads", 0.995, ["32", "0.6"])


def changing_mappings():
    """Libraries that come and go, and code in anonymous memory that has no tables."""
    built(*[f"plug{i}.so" for i in range(8)])
    complete("churn", 0.95, ["40"])


def short_lived_processes():
    complete("storm", 0.99, ["100"])


main(templates, deep_recursion, hot_threads, changing_mappings, short_lived_processes)

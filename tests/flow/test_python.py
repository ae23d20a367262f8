# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""CPython with -X perf: Python functions appear by name and file, in the order of their calls."""
import os

from flow import *


def python_functions_in_order():
    python = newer_python()
    if not python:
        skip("no CPython 3.12 or later")
    load = os.path.join(SOURCE, "tests/targets/pyload.py")
    samples, _ = numbers(record("py.spool", ["-F", "499"], [python, "-X", "perf", load, "2"]))
    check(samples >= 200, f"only {samples} samples")
    stacks = folded("py.spool")

    def python_names(names):
        return [n for n in names if "leaf" in n or "walk" in n or n.startswith("main")]

    leaf = share(stacks, lambda names: any("leaf" in n for n in names))
    check(leaf >= 0.7, f"leaf appears in only {leaf:.0%}: {stacks[:3]}")
    order = ["main"] + ["walk"] * 11 + ["leaf"]
    wrong = 0
    for names, count in stacks:
        seen = [next(w for w in ("leaf", "walk", "main") if w in n) for n in python_names(names)]
        rank = [("main", "walk", "leaf").index(w) for w in seen]
        if rank != sorted(rank) or len(seen) > len(order) + 1:
            wrong += count
            print("out of order:", ";".join(names))
    check(wrong == 0, f"{wrong} samples have Python functions out of order")
    with_file = tool_ok("script", "py.spool")
    check("pyload.py" in with_file, "no frame names the script's file")


main(python_functions_in_order)

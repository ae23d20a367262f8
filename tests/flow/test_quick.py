# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The quick example of the README attaches to a program and prints names of its frames."""
import os

from flow import *


def quick_example():
    quick = os.path.join(BUILD, "examples/quick")
    p = subprocess.Popen([target("deep"), "3"], stdout=subprocess.DEVNULL)
    try:
        r = run(quick, p.pid, timeout=60)
    finally:
        stop(p)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    lines = r.stdout.split("\n")
    check(lines.count("leaf") >= 50, f"leaf is printed {lines.count('leaf')} times")
    check(lines.count("main") >= 50, "main is missing")
    check(lines.count("level_a") >= 99 * lines.count("main"), "stacks are cut")


def quick_example_refuses():
    quick = os.path.join(BUILD, "examples/quick")
    for argument in ("4194301", "x", "-1", "0"):
        r = run(quick, argument)
        check(r.returncode not in (0, -6, -11), f"{argument}: exit status {r.returncode}")
        check(r.stderr, f"{argument}: no message")


main(quick_example, quick_example_refuses)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Code that a program moved into anonymous memory keeps the names of its file."""
from flow import *


def is_right(names):
    return names[-3:] == ["main", "moved_middle", "moved_hot"]


def launched():
    for name, flags in ("moved", []), ("moved-nopie", ["-no-pie", "-fno-pie"]):
        program = target(name, "moved.c", flags)
        record("moved.spool", ["-F", "499"], [program, "1"])
        found = share(folded("moved.spool"), is_right)
        check(found >= 0.9, f"{name}: {found:.0%} of the stacks are right: {folded('moved.spool')[:3]}")


def attached_later():
    for name, flags in ("moved", []), ("moved-nopie", ["-no-pie", "-fno-pie"]):
        p = subprocess.Popen([target(name, "moved.c", flags), "60"], stdout=subprocess.PIPE, text=True)
        try:
            check(p.stdout.readline() == "READY\n", "the code is not moved")
            tool_ok("record", "-o", "moved.spool", "-F", "499", "-p", p.pid, "--duration", "1s")
        finally:
            stop(p)
        found = share(folded("moved.spool"), is_right)
        check(found >= 0.9, f"{name}: {found:.0%} of the stacks are right: {folded('moved.spool')[:3]}")


main(launched, attached_later)

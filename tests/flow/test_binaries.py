# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Statically linked and stripped programs."""
import re

from flow import *


def static_binary():
    deep = target("deep_static", "deep.c", ["-static"])
    samples, _ = numbers(record("static.spool", ["-F", "499", "--stack-size", "60000"], [deep, "1.5"]))
    check(samples >= 100, f"only {samples} samples")
    stacks = folded("static.spool")
    whole = share(stacks, lambda names: names[-1] == "leaf" and "main" in names and
                  names[0] == "_start" and sum(n.startswith("level_") for n in names) == 200)
    check(whole >= 0.97, f"whole chains in only {whole:.0%}: {stacks[:2]}")


def stripped_binary():
    """Without names: exported ones or BASENAME+0xOFF, never the nearest wrong one."""
    library = target("libpartly.so", "partly.c", ["-shared", "-fPIC"], after=["strip"])
    program = target("partly_main", flags=[library, "-Wl,-rpath," + TARGETS], after=["strip"])
    samples, _ = numbers(record("strip.spool", ["-F", "499"], [program, "1.5"]))
    check(samples >= 100, f"only {samples} samples")
    stacks = folded("strip.spool")
    shown = share(stacks, lambda names: names[-1] == "partly_shown")
    hidden = share(stacks, lambda names: re.match(r"libpartly\.so\+0x[0-9a-f]+$", names[-1]) is not None)
    check(0.2 <= shown <= 0.8, f"the exported function is the leaf in {shown:.0%}")
    check(0.2 <= hidden <= 0.8, f"the unnamed function is libpartly.so+0x... in {hidden:.0%}")
    entry = share(stacks, lambda names: "partly_entry" in names)
    check(entry >= 0.9, f"partly_entry is a caller in only {entry:.0%}: {stacks[:3]}")
    caller = share(stacks, lambda names: any(re.match(r"partly_main\+0x[0-9a-f]+$", n) for n in names))
    check(caller >= 0.9, f"the stripped program's own frames in only {caller:.0%}")


main(static_binary, stripped_binary)

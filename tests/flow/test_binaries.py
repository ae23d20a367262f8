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
    names = re.findall(r"samples  function\n(?:.*\n)*?\n", tool_ok("report", "static.spool"))[1]
    check(0 < names.find(" main ") < names.find(" level_"), f"callers do not come first: {names}")


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


def stripped_functions():
    """Code of a stripped program is told apart by function: MODULE+0xSTART, as its symbols had it."""
    named = target("deep_named", "deep.c")
    stripped = target("deep_stripped", "deep.c", after=["strip"])
    record("functions.spool", ["-F", "499", "--stack-size", "60000"], [stripped, "1.5"])
    symbols = run("nm", named).stdout.split("\n")
    starts = {int(line.split()[0], 16) for line in symbols if len(line.split()) == 3 and line.split()[1] in "tT"}
    stacks = folded("functions.spool", "--merge-unnamed")
    own = {n for names, _ in stacks for n in names if n.startswith("deep_stripped")}
    wrong = [n for n in own if int(n.rpartition("+0x")[2] or "0", 16) not in starts]
    check(len(own) >= 5, f"only {len(own)} functions of the program: {sorted(own)[:5]}")
    check(not wrong, f"no functions start there: {wrong[:5]}")
    report = tool_ok("report", "functions.spool")
    check("Code without names" in report and re.search(r"% +\d+ +deep_stripped\+0x", report), f"{report[:2000]}")
    addresses = {n for names, _ in folded("functions.spool") for n in names if n.startswith("deep_stripped")}
    check(addresses - own and len(addresses) >= len(own), "without the option there are addresses")


main(static_binary, stripped_binary, stripped_functions)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""A Rust release binary: its own names, demangled, in whole chains."""
import os
import re

from flow import *


def rust_release_binary():
    rustc = find_program("rustc", os.path.expanduser("~/.cargo/bin/rustc"))
    if not rustc:
        skip("no rustc")
    crunch = target("crunch", "crunch.rs", ["-O", "-Cdebuginfo=0"], rustc)
    samples, _ = numbers(record("rust.spool", ["-F", "499"], [crunch, "1.5"]))
    check(samples >= 100, f"only {samples} samples")
    stacks = folded("rust.spool")
    hot = share(stacks, lambda names: re.search(r"crunch::Table>?::hot$", names[-1]) is not None)
    check(hot >= 0.9, f"Table::hot is the leaf in only {hot:.0%}: {stacks[:3]}")
    whole = share(stacks, lambda names: sum(n.endswith("crunch::walk") for n in names) == 5 and
                  "main" in names)
    check(whole >= 0.9, f"whole chains in only {whole:.0%}: {stacks[:3]}")


main(rust_release_binary)

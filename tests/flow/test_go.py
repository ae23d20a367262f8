# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""A Go binary: its functions by name on the main and on another goroutine."""
from flow import *


def go_binary():
    go = find_program("go", "/usr/local/go/bin/go")
    if not go:
        skip("no go")
    gopher = target("gopher", "gopher.go", compiler=go)
    samples, _ = numbers(record("go.spool", ["-F", "499"], [gopher, "1.5"]))
    check(samples >= 100, f"only {samples} samples")
    stacks = folded("go.spool")
    hot = share(stacks, lambda names: "main.hot" in names)
    check(hot >= 0.85, f"main.hot in only {hot:.0%}: {stacks[:3]}")
    first = share(stacks, lambda names: "main.mid" in names and "main.main" in names)
    second = share(stacks, lambda names: "main.worker.func1" in names)
    check(first >= 0.2 and second >= 0.2,
          f"callers: main.mid < main.main {first:.0%}, main.worker.func1 {second:.0%}: {stacks[:4]}")


main(go_binary)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""CPython with -X perf: Python functions appear by name and file, in the order of their calls."""
import json
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


TWO = """
import sys
sys.path.insert(0, ".")
import other
other.main()
def main():
    for i in range(3000000):
        pass
main()
"""


def functions_of_two_files():
    """Functions of one name are told apart by file: each script has its own main."""
    python = newer_python()
    if not python:
        skip("no CPython 3.12 or later")
    with open("other.py", "w", encoding="utf-8") as file:
        file.write("def main():\n    for i in range(3000000):\n        pass\n")
    with open("one.py", "w", encoding="utf-8") as file:
        file.write(TWO)
    record("two.spool", ["-F", "997"], [python, "-X", "perf", "one.py"])
    report = json.loads(tool_ok("report", "--json", "two.spool"))
    files = {os.path.basename(f["file"]) for f in report["functions"]
             if f["name"] == "main" and f["self"] > 0}
    check({"one.py", "other.py"} <= files, f"main is of {files}")


def interpreter_without_names():
    """Where no Python function has a name, the interpreter's own functions are not left out."""
    python = newer_python()
    if not python:
        skip("no CPython 3.12 or later")
    load = os.path.join(SOURCE, "tests/targets/pyload.py")
    record("bare.spool", ["-F", "499"], [python, load, "1"])
    inner = share(folded("bare.spool"), lambda names: "libc_start" not in names[-1])
    check(inner >= 0.9, f"the innermost function is the interpreter's caller in {1 - inner:.0%}")
    report = tool_ok("report", "bare.spool")
    check("-X perf" in report, f"nothing says how to get names: {report}")
    record("named.spool", ["-F", "499"], [python, "-X", "perf", load, "1"])
    named = [names for names, _ in folded("named.spool") if "leaf" in names]
    check(named and not any("_PyEval_EvalFrameDefault" in n for names in named for n in names),
          f"the interpreter is shown beside Python functions: {named[:2]}")
    first = {names[0] for names, _ in folded("named.spool") if "truncated" not in names[0]}
    check(len(first) == 1, f"stacks of one thread begin with {first}")
    shown = [n for names, _ in folded("named.spool", "--show-hidden") for n in names if "leaf" in names]
    check(any("PyEval" in n or "python" in n for n in shown), "--show-hidden shows no interpreter")
    check("-X perf gives" not in tool_ok("report", "named.spool"), "asks for what is there")


main(python_functions_in_order, functions_of_two_files, interpreter_without_names)

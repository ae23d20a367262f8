# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""make -j2: dozens of short children, each under its own pid, none lost silently."""
import os

from flow import *


def project(files):
    os.makedirs("project")
    objects = []
    for i in range(files):
        with open(f"project/part{i}.c", "w") as f:
            f.write(f"int part{i}(int x);\nint part{i}(int x)\n{{\n")
            f.write("".join(f"\tx = x * {k + 3} + (x >> {k % 5 + 1});\n" for k in range(120)))
            f.write("\treturn x;\n}\n")
        objects.append(f"part{i}.o")
    with open("project/Makefile", "w") as f:
        f.write(f"all: {' '.join(objects)}\n%.o: %.c\n\tcc -O1 -c -o $@ $<\n\t@echo PID $$$$ >>pids\n")


def every_child_is_followed():
    project(20)
    stderr = record("make.spool", ["-F", "997"], ["make", "-s", "-j2", "-C", "project"])
    samples, lost = numbers(stderr)
    check(all(os.path.exists(f"project/part{i}.o") for i in range(20)), "make did not finish its work")
    document = dump("make.spool")
    check(len(document["samples"]) == samples, "the file and the closing text differ in samples")
    programs = {}
    for module in document["modules"]:
        programs.setdefault(module["pid"], set()).add(os.path.basename(module.get("path", "")))
    compilers = {pid for pid, paths in programs.items() if "cc1" in paths}
    sampled = {s["pid"] for s in document["samples"]}
    check(len(compilers) >= 20, f"cc1 is a module of only {len(compilers)} processes")
    check(len(sampled & compilers) >= 18, f"only {len(sampled & compilers)} compilers have samples")
    check(len(sampled) >= 25, f"only {len(sampled)} processes have samples")
    known = sum(any("cc1" in (f.get("path") or "") for f in s["frames"])
                for s in document["samples"] if s["pid"] in compilers)
    total = sum(s["pid"] in compilers for s in document["samples"])
    check(known >= 0.6 * total, f"cc1's code in only {known} of {total} samples of compilers")
    check(lost == 0 or "lost" in stderr, "losses are not told")


def children_only_when_asked():
    deep = target("deep")
    record("alone.spool", ["--no-children", "-F", "499"], ["sh", "-c", f"{deep} 0.5; true"])
    pids = {s["pid"] for s in dump("alone.spool")["samples"]}
    check(len(pids) <= 1, f"--no-children recorded {len(pids)} processes")
    record("both.spool", ["-F", "499"], ["sh", "-c", f"{deep} 0.5; true"])
    leaf = share(folded("both.spool"), lambda names: names[-1] == "leaf")
    check(leaf >= 0.8, f"the child's function in only {leaf:.0%}")


main(every_child_is_followed, children_only_when_asked)

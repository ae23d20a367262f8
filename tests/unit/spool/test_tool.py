#!/usr/bin/env python3
# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""`convert` and `dump --reader tail --grow` on stored spools: usage test_tool.py TOOL VECTORS."""

import json
import os
import subprocess
import sys
import tempfile

TOOL, VECTORS = map(os.path.abspath, sys.argv[1:3])
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print(f"FAILED {text}")


def tool(*args):
    return subprocess.run([TOOL, *args], capture_output=True, text=True, check=False, timeout=60)


def dump(path):
    return json.loads(tool("dump", path).stdout)["document"]


def without_reason(step):
    if "error" in step:
        step["error"] = {key: value for key, value in step["error"].items() if key != "reason"}
    return step


def grown_files():
    """The growth scripts, as a user runs them."""
    folder = f"{VECTORS}/tail"
    names = [name[:-len(".spool")] for name in sorted(os.listdir(folder)) if name.endswith(".spool")]
    for name in names:
        with open(f"{folder}/{name}.json", encoding="utf-8") as file:
            expected = [without_reason(step) for step in json.load(file)["steps"]]
        lengths = ",".join(str(step["visible"]) for step in expected)
        r = tool("dump", "--reader", "tail", "--grow", lengths, f"{folder}/{name}.spool")
        got = [without_reason(step) for step in json.loads(r.stdout)["steps"]]
        check(got == expected, f"{name} --grow {lengths[:60]}")
        failed = any("error" in step for step in expected)
        check(r.returncode == int(failed), f"{name}: exit status {r.returncode}")
    check(len(names) >= 10, f"only {len(names)} growth scripts")
    r = tool("dump", "--grow", "20", f"{folder}/{names[0]}.spool")
    check(r.returncode == 2 and "--grow needs --reader tail" in r.stderr, r.stderr)


def samples(document):
    return [[sample[key] for key in ("timestamp_ns", "pid", "tid")] for sample in document["samples"]]


def recordings_both_ways():
    folder = f"{VECTORS}/recordings"
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".spool"):
            continue
        path, other = f"{folder}/{name}", "4" if name.startswith("v3") else "3"
        r = tool("convert", "--format", other, "-o", "other.spool", path)
        check(r.returncode == 0, f"convert {name}: {r.stderr}")
        if other == "4":
            check(r.stderr == "", f"{name} fits into version 4, but: {r.stderr}")
        else:
            check("no clock origin" in r.stderr, f"{name}: nothing said of the clock: {r.stderr!r}")
        before, after = dump(path), dump("other.spool")
        check(after["header"]["format"] == int(other), f"{name}: {after['header']}")
        check(samples(before) == samples(after), f"{name}: other samples")
        for key in ("frames", "threads", "processes", "python_runtime"):
            check(before[key] == after[key], f"{name}: other {key}")
        tool("convert", "--format", name[1], "-o", "again.spool", "other.spool")
        check(samples(dump("again.spool")) == samples(before), f"{name}: other samples again")


def losses():
    """Each thing that version 3 cannot hold has its line."""
    jit = b"\x09\x00\x0e\x10\x20\0\0\0\0\0\0\x02/a\x02\x10\x11\x01f\x11\x12\x01g"
    path = b"\x01\x01\x0e\x10\x20\0\0\0\0\0\0\x02/\xff"
    with open("rich.spool", "wb") as file:
        file.write(b"SPULSE4\0\0\x01\x01\0\x02\x05\0" + jit + path + b"\x05")
    r = tool("convert", "--format", "3", "-o", "poor.spool", "rich.spool")
    check(r.returncode == 0, r.stderr)
    for text in ("no JIT modules: 1 became plain modules and 2 names were left out",
                 "UTF-8 paths only: in 1 paths", "no clock origin", "interval was rounded down",
                 "ends inside of a record, which was left out"):
        check(text in r.stderr, f"\"{text}\" is missing in: {r.stderr}")
    check(len(dump("poor.spool")["modules"]) == 2, "modules are missing")
    r = tool("convert", "--format", "4", "-o", "rich2.spool", "poor.spool")
    check(r.returncode == 0 and r.stderr == "", r.stderr)
    with open("early.spool", "wb") as file:
        file.write(b"SPULSE4\0\0\0\x01\0\x01\x05\0")
    r = tool("convert", "--format", "3", "-o", "poor.spool", "early.spool")
    check("the wall times were left out" in r.stderr and "are kept" not in r.stderr, r.stderr)
    with open("slow.spool", "wb") as file:
        file.write(b"SPULSE3\0\0" + b"\xff" * 9 + b"\x01")
    r = tool("convert", "--format", "4", "-o", "fast.spool", "slow.spool")
    check(r.returncode == 0 and "the sampling interval is longer" in r.stderr, r.stderr)
    r = tool("info", "slow.spool")
    check("interval     at least" in r.stdout, r.stdout)
    r = tool("convert", "-o", "/dev/full", "rich.spool")
    check(r.returncode == 1 and "No space left" in r.stderr, r.stderr)
    r = tool("convert", "rich.spool")
    check(r.returncode == 2, f"without -o: {r.returncode}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        grown_files()
        recordings_both_ways()
        losses()
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())

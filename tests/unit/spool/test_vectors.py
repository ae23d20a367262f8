#!/usr/bin/env python3
# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Every spool vector through every reader: usage test_vectors.py DUMP_MANY VECTORS."""

import gzip
import json
import os
import shlex
import subprocess
import sys
import tempfile

READERS = ("snapshot", "replay", "tail")


class Dumper:
    """The program that answers one request per line."""

    def __init__(self, program):
        emulator = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
        program = os.path.abspath(program)
        self.process = subprocess.Popen([*emulator, program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, *fields):
        self.process.stdin.write("\t".join(fields).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


failures = []


def check(what, got, expected):
    if got != expected:
        failures.append(what)
        print(f"FAILED {what}\n  expected {str(expected)[:600]}\n  found    {str(got)[:600]}")


def without_reason(error):
    return {key: value for key, value in error.items() if key != "reason"}


def check_case(dumper, folder, name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        expected = json.load(file)
    if name == "magic-other-version":
        # An error to a reader of one version only; this one reads both.
        other = 7 - expected["format"]
        for reader in READERS:
            got = dumper.ask(reader, f"{folder}/{name}.spool")
            check(f"{folder}/{name} {reader}", got["document"]["header"]["format"], other)
        return
    for reader in READERS:
        got = dumper.ask(reader, f"{folder}/{name}.spool")
        what = f"{folder}/{name} {reader}"
        check(what + " outcome", got["outcome"], expected["outcome"])
        if expected["outcome"] == "error":
            check(what, without_reason(got.get("error", {})), without_reason(expected["error"]))
            continue
        document = dict(expected["document"])
        check(what, got.get("document"), document)


def table_row(got):
    """What a prefix must give, from a dump."""
    row = {"outcome": got["outcome"]}
    if got["outcome"] == "error":
        return row | {"class": got["error"]["class"]}
    document = got["document"]
    for key in ("modules", "frames", "stacks", "threads", "python_runtime", "samples"):
        row[key] = len(document[key])
    row["last_timestamp_ns"] = (document["samples"][-1]["timestamp_ns"] if document["samples"]
                                else None)
    return row


def check_table(dumper, folder, name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        table = json.load(file)
    with open(f"{folder}/{name}.spool", "rb") as file:
        data = file.read()
    with tempfile.NamedTemporaryFile() as file:
        for row in table["prefixes"]:
            with open(file.name, "wb") as part:
                part.write(data[:row["length"]])
            for reader in READERS:
                got = table_row(dumper.ask(reader, file.name))
                expected = {key: value for key, value in row.items() if key in got}
                check(f"{name} {row['length']} bytes {reader}", got, expected)


def check_growth(dumper, folder, name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        expected = json.load(file)["steps"]
    lengths = ",".join(str(step["visible"]) for step in expected)
    got = dumper.ask("tail", f"{folder}/{name}.spool", lengths)["steps"]
    for step in got + expected:
        if "error" in step:
            step["error"] = without_reason(step["error"])
    check(f"{name} growing", got, expected)


def recording_lines(document):
    """A dump in the form of the recordings' lines."""
    header = {"type": "header"} | document["header"]
    origin = header.pop("clock_origin", None)
    if header["format"] == 4:
        del header["start_timestamp_us"]
        header["started_at"] = origin["wall"] if origin else None
    lines = [header]
    for key, kind in (("modules", "module"), ("frames", "frame"), ("threads", "thread"),
                      ("python_runtime", "python_runtime")):
        lines += [{"type": kind} | item for item in document[key]]
    lines += [{"type": "sample", "index": index} | item
              for index, item in enumerate(document["samples"])]
    lines += [{"type": "process", "pid": pid} for pid in document["processes"]]
    lines.append({"type": "end", "samples": len(document["samples"]),
                  "recovered": document["recovered"]})
    return lines


def check_recording(dumper, folder, name):
    with gzip.open(f"{folder}/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    kinds = {line["type"] for line in lines}
    for reader in READERS:
        got = dumper.ask(reader, f"{folder}/{name}.spool")
        mine = [line for line in recording_lines(got["document"]) if line["type"] in kinds]
        for kind in kinds:
            check(f"{name} {reader} {kind}", [line for line in mine if line["type"] == kind],
                  [line for line in lines if line["type"] == kind])
    with open(f"{folder}/{name}.tail.jsonl", encoding="utf-8") as file:
        batches = [json.loads(line) for line in file]
    size = os.path.getsize(f"{folder}/{name}.spool")
    step = dumper.ask("tail", f"{folder}/{name}.spool", str(size))["steps"][0]
    got = [{"type": "batch"} | {key: batch[key] for key in ("samples", "processes", "has_more")}
           for batch in step["batches"]]
    check(f"{name} batches", got, [line for line in batches if line["type"] == "batch"])


def main():
    dumper = Dumper(sys.argv[1])
    vectors = sys.argv[2]
    count = 0
    for part, checker in (("v3", check_case), ("v4", check_case), ("tables", check_table),
                          ("tail", check_growth), ("recordings", check_recording)):
        folder = f"{vectors}/{part}"
        for file in sorted(os.listdir(folder)):
            if file.endswith(".spool"):
                checker(dumper, folder, file[:-len(".spool")])
                count += 1
    status = dumper.close()
    if status:
        failures.append(f"the dumper ended with {status}")
    print(f"{count} spools, {len(failures)} differences")
    return 1 if failures or count < 260 else 0


sys.exit(main())

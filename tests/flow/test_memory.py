# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Memory of record stays under 64 MiB, and replay's does not grow with the number of samples."""
import os
import re

from flow import *

LIMIT_KIB = 64 << 10


def peak_kib(*command):
    """Highest resident size of one process, without its children."""
    p = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         text=True)
    peak = 0
    while p.poll() is None:
        try:
            status = open(f"/proc/{p.pid}/status").read()
            found = re.search(r"VmHWM:\s+(\d+)", status)
            if found:
                peak = max(peak, int(found.group(1)))
        except OSError:
            break
        time.sleep(0.02)
    _, err = p.communicate()
    check(p.returncode == 0, f"{command}: exit status {p.returncode}: {err}")
    return peak


def recorder():
    deep = target("deep")
    threads = target("threads", flags=["-pthread"])
    for name, options, command in (
            ("deep", ["-F", "max", "--stack-size", "65528"], [deep, "2"]),
            ("threads", ["-F", "4999"], [threads, "64", "2"]),
            ("children", ["-F", "4999"], ["sh", "-c", "i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done"])):
        peak = peak_kib(TOOL, "record", "-o", f"{name}.spool", *options, "--", *command)
        print(f"record {name}: {peak} KiB")
        check(0 < peak <= LIMIT_KIB, f"record {name} took {peak} KiB")


def replay_of_many_samples():
    deep = target("deep")
    record("short.spool", ["-F", "2999"], [deep, "0.4"])
    record("long.spool", ["-F", "2999"], [deep, "6"])
    small = peak_kib(TOOL, "replay", "--frames", "short.spool")
    large = peak_kib(TOOL, "replay", "--frames", "long.spool")
    print(f"replay: {small} and {large} KiB")
    check(large <= max(small, 4096) + 2048, f"replay needs {small} KiB, then {large} KiB for 15 times the samples")


main(recorder, replay_of_many_samples)

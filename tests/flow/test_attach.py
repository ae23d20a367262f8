# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Attaching to running programs: all threads, both modes, and the target runs on."""
import os

from flow import *


def attach(spool, *options):
    threads = target("threads", flags=["-pthread"])
    p = start_ready(threads, 8, 30)
    try:
        before = cpu_seconds(p.pid)
        r = tool("record", "-o", spool, "-d", "3", "-F", "199", *options, "-p", p.pid, timeout=60)
        used = cpu_seconds(p.pid) - before
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        state = wait_for(lambda: state_of(p.pid) in ("R", "S") and state_of(p.pid), 2)
        check(state in ("R", "S"), f"the target is in state {state_of(p.pid)!r}")
        status = open(f"/proc/{p.pid}/status").read()
        check("TracerPid:\t0" in status, "a tracer is left behind")
        tids = {int(t) for t in os.listdir(f"/proc/{p.pid}/task")}
        return p.pid, tids, r.stderr, used
    finally:
        stop(p)


def assert_all_threads(pid, tids, spool):
    samples = dump(spool)["samples"]
    check({s["pid"] for s in samples} == {pid}, "samples of another process")
    busy = tids - {pid}
    missing = busy - {s["tid"] for s in samples}
    check(len(busy) == 8 and not missing, f"no samples of threads {missing}")
    check({s["tid"] for s in samples} <= tids, "samples of unknown threads")
    times = [s["timestamp_ns"] for s in samples]
    check(times == sorted(times), "samples are not in the order of time")
    stacks = folded(spool)
    whole = share(stacks, lambda names: names[-1] in ("spin", "down") and "body" in names)
    check(whole >= 0.97, f"spin or down under body in only {whole:.1%}: {stacks[:2]}")


def eight_threads_stopping():
    pid, tids, stderr, used = attach("stop.spool", "--mode", "stop")
    assert_all_threads(pid, tids, "stop.spool")
    samples, _ = numbers(stderr)
    # Its time before and after the recording, up to 0.3 s, counts here, too.
    check(samples >= 0.8 * 199 * (used - 0.3), f"only {samples} samples of {used:.1f} s")


def eight_threads_running():
    pid, tids, _, _ = attach("running.spool", "--mode", "running")
    assert_all_threads(pid, tids, "running.spool")


def target_that_ends_first():
    deep = target("deep")
    p = subprocess.Popen([deep, "1"], stdout=subprocess.DEVNULL)
    r = tool("record", "-o", "ends.spool", "-d", "30", "-p", p.pid, timeout=25)
    p.wait()
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    check(numbers(r.stderr)[0] > 20, f"few samples: {r.stderr}")


def two_processes_at_once():
    deep = target("deep")
    first = subprocess.Popen([deep, "20"], stdout=subprocess.DEVNULL)
    second = subprocess.Popen([deep, "20"], stdout=subprocess.DEVNULL)
    try:
        r = tool("record", "-o", "two.spool", "-d", "1", "-p", f"{first.pid},{second.pid}")
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        pids = {s["pid"] for s in dump("two.spool")["samples"]}
        check(pids == {first.pid, second.pid}, f"samples of {pids}")
    finally:
        stop(first)
        stop(second)


def threads_started_later():
    threads = target("threads", flags=["-pthread"])
    record("late.spool", ["-F", "199"], [threads, "6", "1"])
    tids = {s["tid"] for s in dump("late.spool")["samples"]}
    check(len(tids) >= 6, f"only {len(tids)} threads have samples")


def killed_recorder_frees_the_target():
    threads = target("threads", flags=["-pthread"])
    p = start_ready(threads, 4, 30)
    try:
        recorder = start_tool("record", "-o", "killed.spool", "-q", "-p", p.pid)
        wait_for(lambda: os.path.exists("killed.spool"), 10)
        recorder.kill()
        finish(recorder)
        check(wait_for(lambda: state_of(p.pid) in ("R", "S"), 3), f"target in state {state_of(p.pid)!r}")
    finally:
        stop(p)
    outcome = json.loads(tool("dump", "killed.spool").stdout)["outcome"]
    check(outcome in ("valid", "recovered"), f"the file of a killed recorder is {outcome}")


main(eight_threads_stopping, eight_threads_running, target_that_ends_first, two_processes_at_once,
     threads_started_later, killed_recorder_frees_the_target)

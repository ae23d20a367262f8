# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The whole machine, lists of processes, and processes chosen by name."""
import os

from flow import *


def busy(name):
    """A program of its own name that keeps a CPU busy; gives the process."""
    deep = target("deep")
    if not os.path.exists(name):
        os.symlink(deep, name)
    return subprocess.Popen([f"./{name}", "60"], stdout=subprocess.DEVNULL)


def counters(stderr):
    return json.loads(stderr.strip().split("\n")[-1])


def independent_programs_are_seen():
    first, second = busy("first"), busy("second")
    try:
        before = [cpu_seconds(p.pid) for p in (first, second)]
        r = tool("record", "-a", "-d", "1", "-F", "499", "-o", "all.spool")
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        used = [cpu_seconds(p.pid) - b for p, b in zip((first, second), before)]
        samples = dump("all.spool")["samples"]
        for p, seconds in zip((first, second), used):
            mine = [s for s in samples if s["pid"] == p.pid]
            # Its time before and after the recording counts here, too.
            check(len(mine) > max(0, 0.5 * 499 * (seconds - 0.05)), f"{len(mine)} samples of {seconds} s of {p.args}")
        options = [a for a in json.loads(tool_ok("info", "--json", "all.spool"))["annotations"]
                   if a["key"] == "option/system-wide"]
        check(options and options[0]["value"] == "1", "the file does not say what was recorded")
    finally:
        stop(first)
        stop(second)


def machine_while_a_command_runs():
    other = busy("other")
    try:
        r = tool("record", "-a", "-F", "499", "-o", "during.spool", "--", "sh", "-c", "sleep 0.5; exit 7")
        check(r.returncode == 7, f"exit status {r.returncode}: {r.stderr}")
        check(any(s["pid"] == other.pid for s in dump("during.spool")["samples"]), "nothing but the command")
    finally:
        stop(other)


def programs_that_start_later():
    r = start_tool("record", "-a", "--comm", "deep", "-d", "1.5", "-F", "499", "-o", "later.spool")
    wait_for(lambda: os.path.exists("later.spool"), 10)
    p = subprocess.Popen([target("deep"), "0.3"], stdout=subprocess.DEVNULL)
    p.wait()
    status, _, stderr = finish(r)
    check(status == 0, f"exit status {status}: {stderr}")
    mine = [s for s in script("later.spool") if s["pid"] == p.pid]
    leaves = sum("leaf" in [f.get("name") for f in s["frames"]] for s in mine)
    check(mine and leaves >= 0.8 * len(mine), f"leaf in {leaves} of {len(mine)} samples")


def waits_of_every_process():
    p = subprocess.Popen(["sh", "-c", "sleep 0.1; sleep 0.7; sleep 30"])
    try:
        r = tool("record", "-a", "--off-cpu", "-d", "1.5", "-o", "waits.spool", "--comm", "sleep")
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        check(len(dump("waits.spool")["samples"]) > 400, f"few samples: {r.stderr}")
    finally:
        stop_all(p)


def chosen_among_descendants():
    for name in ("wanted-1", "wanted-2", "other-1"):
        if not os.path.exists(name):
            os.symlink(target("deep"), name)
    line = "./wanted-1 0.2; ./other-1 0.2; (./wanted-2 0.2)"
    r = tool("record", "--json", "--comm", "wanted-*", "-o", "comm.spool", "--", "sh", "-c", line)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    recorded = {s.get("process") or s.get("comm") or s["name"] for s in script("comm.spool")}
    check(recorded == {"wanted-1", "wanted-2"}, f"recorded: {recorded}")
    c = counters(r.stderr)
    check(c["other_program_samples"] > 50 and c["samples"] > 100, f"{c}")
    check(c["sample_events"] == c["samples"] + sum(v for k, v in c.items() if k.endswith("_samples")), f"{c}")
    r = tool("record", "--json", "--comm", "nothing-is-called-so", "-o", "none.spool", "--", "./other-1", "0.1")
    check(r.returncode == 0 and counters(r.stderr)["samples"] == 0, f"{r.returncode}: {r.stderr}")
    check("option/comm" in tool_ok("info", "none.spool"), "the file does not name the choice")


def chosen_among_processes_that_run():
    line = "./wanted-1 60 & ./other-1 60 & echo READY; wait"
    p = start_ready("sh", "-c", line)
    try:
        wait_for(lambda: len(children_of(p.pid)) == 2, 10)
        time.sleep(0.2)
        r = tool("record", "--comm", "wanted-?", "-d", "1", "-o", "running.spool", "-p", p.pid)
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        recorded = {s["name"] for s in script("running.spool")}
        check(recorded == {"wanted-1"}, f"recorded: {recorded}")
        check("of programs with other names" in r.stderr, f"not told: {r.stderr}")
    finally:
        stop_all(p)


def list_of_which_one_dies():
    first, second = busy("first"), busy("second")
    try:
        r = start_tool("record", "-F", "499", "-d", "2", "-o", "dies.spool", "-p", f"{first.pid},{second.pid}")
        wait_for(lambda: os.path.exists("dies.spool"), 10)
        time.sleep(0.5)
        stop(first)
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        status, _, stderr = finish(r)
        check(status == 0, f"exit status {status}: {stderr}")
        samples = dump("dies.spool")["samples"]
        check({s["pid"] for s in samples} == {first.pid, second.pid}, "a process is missing")
        check(any(s["pid"] == second.pid and s["timestamp_ns"] > at for s in samples),
              "the death of one ended the recording of the other")
    finally:
        stop(first)
        stop(second)


def list_of_which_some_are_gone():
    gone = subprocess.Popen(["true"])
    gone.wait()
    p = busy("first")
    try:
        for pids in (f"{gone.pid},{p.pid}", f"{p.pid},{gone.pid}"):
            r = tool("record", "-d", "0.5", "-F", "499", "-o", "some.spool", "-p", pids)
            check(r.returncode == 0, f"-p {pids}: exit status {r.returncode}: {r.stderr}")
            check(f"process {gone.pid} ended before" in r.stderr, f"not told: {r.stderr}")
            check({s["pid"] for s in dump("some.spool")["samples"]} == {p.pid}, "other samples")
        r = tool("record", "-o", "gone.spool", "-p", f"{gone.pid},4194301")
        check(r.returncode == 125 and "4194301" in r.stderr, f"{r.returncode}: {r.stderr}")
        check(not os.path.exists("gone.spool"), "a file is left behind")
    finally:
        stop(p)


def refused_with_the_setting():
    if os.geteuid() != 0:
        return
    paranoid = open("/proc/sys/kernel/perf_event_paranoid").read().strip()
    r = run(*as_nobody(tool_for_nobody(), "record", "-a", "-d", "0.1", "-o", f"{open_folder()}/x.spool"))
    if int(paranoid) < 1:
        check(r.returncode == 0, f"perf_event_paranoid {paranoid}: {r.returncode}: {r.stderr}")
        return
    check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
    for word in ("perf_event_open", "every process", "EACCES", f"perf_event_paranoid is {paranoid}",
                 "sysctl kernel.perf_event_paranoid=0", "CAP_PERFMON", "doctor"):
        check(word in r.stderr, f"{word!r} is not in the message: {r.stderr}")
    check(not os.path.exists(f"{open_folder()}/x.spool"), "a file is left behind")


def what_does_not_go_together():
    for args in (["-a", "-p", "1"], ["-a", "--no-children"], ["--comm"], ["-a", "--off-cpu=yes"]):
        r = tool("record", *args)
        check(r.returncode == 2, f"{args}: exit status {r.returncode}: {r.stderr}")


main(independent_programs_are_seen, machine_while_a_command_runs, programs_that_start_later,
     waits_of_every_process, chosen_among_descendants, chosen_among_processes_that_run,
     list_of_which_one_dies, list_of_which_some_are_gone, refused_with_the_setting,
     what_does_not_go_together)

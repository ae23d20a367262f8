# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Signals to the recorder in each of its phases: what is there is saved, nobody is left behind."""
import fcntl
import os
import random

from flow import *

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def outcome(spool):
    return json.loads(tool("dump", spool).stdout)["outcome"]


def time_to_record(*what):
    """Seconds from the start until the file has its name."""
    begin = time.monotonic()
    p = start_tool("record", "-q", "-o", "probe.spool", *what)
    wait_for(lambda: os.path.exists("probe.spool"))
    seconds = time.monotonic() - begin
    p.send_signal(signal.SIGTERM)
    finish(p)
    os.remove("probe.spool")
    return seconds


def during_launch_attach_and_recording_of_a_process():
    """The signal ends an attach that is under way, too. The target runs on, never stopped or traced."""
    threads = start_ready(target("threads", flags=["-pthread"]), 8, 120)
    rng = random.Random(3)
    try:
        named = time_to_record("-p", threads.pid)
        for i in range(9):
            number = ENDING[i % 3]
            p = start_tool("record", "-F", "499", "-o", "moment.spool", "-p", threads.pid)
            time.sleep(rng.uniform(0, 2 * named))
            p.send_signal(number)
            status, _, stderr = finish(p, 30)
            # Before it notes signals one ends it as it ends every program.
            check(status in (0, -number), f"{number.name}: exit status {status}: {stderr}")
            if status == 0:
                check(outcome("moment.spool") == "valid", f"{number.name}: the file is {outcome('moment.spool')}")
                check(len(dump("moment.spool")["samples"]) == numbers(stderr)[0], "samples are missing")
            if os.path.exists("moment.spool"):
                os.remove("moment.spool")
            check(wait_for(lambda: state_of(threads.pid) in ("R", "S"), 5),
                  f"{number.name}: the target is in state {state_of(threads.pid)}")
            check("TracerPid:\t0" in open(f"/proc/{threads.pid}/status").read(), "a tracer is left behind")
        check(threads.poll() is None, "the target has ended")
    finally:
        stop(threads)


def during_launch_and_recording_of_a_command():
    """The command gets the signal, too, or never runs. Its end is the status, and in the file."""
    named = time_to_record("--", target("deep"), "5")
    rng = random.Random(4)
    for i in range(12):
        number = ENDING[i % 2]
        p = start_tool("record", "-q", "-F", "499", "-o", "command.spool", "--", target("deep"), "20")
        time.sleep(rng.uniform(0, 2 * named))
        children = children_of(p.pid)
        p.send_signal(number)
        status, _, stderr = finish(p, 30)
        check(status in (128 + number, -number), f"{number.name}: exit status {status}: {stderr}")
        for child in children:
            check(wait_for(lambda: not os.path.exists(f"/proc/{child}"), 10), f"process {child} is left behind")
        if os.path.exists("command.spool"):
            check(outcome("command.spool") in ("valid",) or status < 0, f"the file is {outcome('command.spool')}")
            os.remove("command.spool")


def command_that_ignores_the_signal():
    # It keeps our pipes open when it is left behind: a file instead.
    with open("ignores.err", "w") as stderr:
        p = subprocess.Popen([TOOL, "record", "-o", "ignores.spool", "--", "sh", "-c",
                              "trap '' TERM; touch trapped; sleep 60; sleep 60"], stderr=stderr)
    wait_for(lambda: os.path.exists("trapped"))
    child = children_of(p.pid)
    try:
        p.send_signal(signal.SIGTERM)
        status = p.wait(30)
        stderr = open("ignores.err").read()
        check(status == 128 + signal.SIGTERM, f"exit status {status}: {stderr}")
        check("runs on without us" in stderr and state_of(child[0]), f"the command is gone: {stderr}")
        check(outcome("ignores.spool") == "valid", "the file is cut")
    finally:
        for pid in [*children_of(child[0]), child[0]]:
            os.kill(pid, signal.SIGKILL)


def hangup_under_nohup():
    p = subprocess.Popen([TOOL, "record", "-o", "nohup.spool", "--", target("deep"), "0.8"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(lambda: os.path.exists("nohup.spool"))
    p.send_signal(signal.SIGHUP)
    status, _, stderr = finish(p)
    check(status == 0 and numbers(stderr)[0] > 300, f"exit status {status}: {stderr}")


def while_draining_and_in_the_final_write():
    """Nobody reads our output for a while: a signal then loses nothing either."""
    os.mkfifo("slow")
    threads = start_ready(target("threads", flags=["-pthread"]), 2, 60)
    p = start_tool("record", "--json", "-F", "5000", "-o", "slow", "-p", threads.pid)
    try:
        with open("slow", "rb") as fifo:
            fcntl.fcntl(fifo, fcntl.F_SETPIPE_SZ, 4096)
            # The pipe is full: it writes, and waits for us.
            check(wait_for(lambda: "pipe_write" in open(f"/proc/{p.pid}/wchan").read()), "it never waits")
            for _ in range(3):
                p.send_signal(signal.SIGTERM)
                time.sleep(0.1)
            check(p.poll() is None, "it gave up")
            with open("slow.spool", "wb") as copy:
                shutil.copyfileobj(fifo, copy)
        status, _, stderr = finish(p)
        check(status == 0, f"exit status {status}: {stderr}")
        counters = json.loads(stderr.strip().split("\n")[-1])
        check(outcome("slow.spool") == "valid", "the file is cut")
        check(len(dump("slow.spool")["samples"]) == counters["samples"] > 0, f"samples are missing: {counters}")
        check(threads.poll() is None, "the target has ended")
    finally:
        stop(p)
        stop(threads)


def whole_machine():
    p = start_tool("record", "-a", "-o", "all.spool")
    wait_for(lambda: os.path.exists("all.spool"))
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    status, _, stderr = finish(p)
    check(status == 0 and outcome("all.spool") == "valid", f"exit status {status}: {stderr}")


main(during_launch_attach_and_recording_of_a_process, during_launch_and_recording_of_a_command,
     command_that_ignores_the_signal, hangup_under_nohup, while_draining_and_in_the_final_write, whole_machine)

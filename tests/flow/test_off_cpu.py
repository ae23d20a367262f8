# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Time that threads wait: in the right proportion, with the stack that waits, and only on request."""
import os

from flow import *

STEPS = ("step_sleep", "step_lock", "step_read")


def record_waits(spool, *options, scale=0.5):
    """Records the target; gives what it measured itself and the samples of its first thread."""
    r = tool("record", "-o", spool, *options, "--", target("waits", flags=["-pthread"]), scale)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    samples = [s for s in script(spool) if s["pid"] == s["tid"]]
    return json.loads(r.stdout), samples


def names(sample):
    return [frame.get("name") or "" for frame in sample["frames"]]


def is_off(sample):
    return sample["frames"][0].get("path") == "[off-cpu]"


def near(value, wanted, slack, what):
    check(abs(value - wanted) <= slack, f"{what}: {value:.3f}, not {wanted:.3f} within {slack:.3f}")


def waits_are_as_long_as_they_were():
    clock, samples = record_waits("waits.spool", "--off-cpu", "-F", "1000", scale=1)
    off = [s for s in samples if is_off(s)]
    for step in STEPS:
        seconds = sum(step in names(s) for s in off) / 1000
        near(seconds, clock[step], 0.1 * clock[step], f"seconds in {step}")
    check(all(len(s["frames"]) > 2 for s in off), "a wait without the stack that waits")
    check(all("main" in names(s) for s in off if any(step in names(s) for step in STEPS)),
          "a wait whose stack does not reach main")
    on = len(samples) - len(off)
    check(on / 1000 <= 1.1 * clock["cpu"] + 0.02, f"{on} samples on a CPU: {clock}")
    # Both are all the time but that in which it could have run and had no CPU, on a busy machine.
    deprived = max(0, clock["step_compute"] - 0.3)
    check(len(samples) / 1000 >= 0.9 * (clock["wall"] - deprived), f"{on} on, {len(off)} off: {clock}")
    check(len(samples) / 1000 <= 1.1 * clock["wall"], f"{on} on, {len(off)} off: {clock}")


def rate_does_not_change_the_share():
    clock, samples = record_waits("slow.spool", "--off-cpu", "-F", "97")
    off = [s for s in samples if is_off(s)]
    for step in STEPS:
        seconds = sum(step in names(s) for s in off) / 97
        near(seconds, clock[step], 0.1 * clock[step] + 1 / 97, f"seconds in {step}")


def nothing_of_it_unless_asked_for():
    clock, samples = record_waits("on.spool", "-F", "1000")
    check(samples and not any(is_off(s) for s in samples), "waits that nobody asked for")
    check(len(samples) / 1000 <= 1.1 * clock["cpu"] + 0.02, f"{len(samples)} samples of {clock}")


def hint_when_all_it_does_is_wait():
    r = tool("record", "-o", "idle.spool", "--", "sleep", "0.1")
    check("samples=0" not in r.stderr or "--off-cpu" in r.stderr, f"no hint: {r.stderr}")


def target_that_waits_when_we_end():
    p = start_ready("sh", "-c", "echo READY; sleep 0.2; sleep 30")
    try:
        r = tool("record", "--off-cpu", "-o", "end.spool", "-d", "1.5", "-p", p.pid)
        check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
        off = [s for s in script("end.spool") if is_off(s)]
        check(len(off) > 700, f"only {len(off)} samples of a wait that is not over")
    finally:
        stop_all(p)


def counters_add_up():
    r = tool("record", "--json", "--off-cpu", "-o", "sum.spool", "--", "sh", "-c", "sleep 0.3; true")
    counters = json.loads(r.stderr.strip().split("\n")[-1])
    dropped = sum(value for key, value in counters.items() if key.endswith("_samples"))
    check(counters["sample_events"] == counters["samples"] + dropped > 250, f"{counters}")
    check(len(dump("sum.spool")["samples"]) == counters["samples"], "other samples in the file")
    kept = {a["key"]: int(a["value"]) for a in json.loads(tool_ok("info", "--json", "sum.spool"))["annotations"]
            if a["key"].startswith("counter/")}
    left_out = sum(value for key, value in kept.items() if key.endswith("-samples") and "cut-off" not in key)
    check(kept["counter/sample-events"] == counters["sample_events"] == kept["counter/samples"] + left_out,
          f"info: {kept}")


def refused_with_the_setting():
    if os.geteuid() != 0:
        return
    paranoid = open("/proc/sys/kernel/perf_event_paranoid").read().strip()
    r = run(*as_nobody(tool_for_nobody(), "record", "--off-cpu", "-o", f"{open_folder()}/x.spool",
                       "--", "true"))
    if int(paranoid) < 2:
        check(r.returncode == 0, f"perf_event_paranoid {paranoid}: {r.returncode}: {r.stderr}")
        return
    check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
    for word in ("perf_event_open", "EACCES", f"perf_event_paranoid is {paranoid}", "blocked time",
                 "sysctl kernel.perf_event_paranoid=1", "CAP_PERFMON", "doctor"):
        check(word in r.stderr, f"{word!r} is not in the message: {r.stderr}")
    check(not os.path.exists(f"{open_folder()}/x.spool"), "a file is left behind")


main(waits_are_as_long_as_they_were, rate_does_not_change_the_share, nothing_of_it_unless_asked_for,
     hint_when_all_it_does_is_wait, target_that_waits_when_we_end,
     counters_add_up, refused_with_the_setting)

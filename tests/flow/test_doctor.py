# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The doctor and the messages of a recording that is refused say the same."""
import os

from flow import *

NAMES = ["kernel", "perf_event_open", "perf_event_paranoid", "CAP_PERFMON", "sampling-event", "kernel-frames",
         "blocked-time", "every-process", "kptr_restrict", "perf_event_max_sample_rate", "perf_event_mlock_kb",
         "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_NOFILE", "file-max", "ptrace_scope"]
OF_PROCESS = ["owner", "dumpable", "maps", "process"]


def report(*command):
    r = run(*command)
    check(r.returncode in (0, 1), f"{command}: exit status {r.returncode}: {r.stderr}")
    return json.loads(r.stdout), r.returncode


def by_name(parsed):
    return {c["name"]: c for c in parsed["checks"]}


def every_check_is_there():
    parsed, status = report(TOOL, "doctor", "--json")
    check([c["name"] for c in parsed["checks"]] == NAMES, f"{[c['name'] for c in parsed['checks']]}")
    check("pid" not in parsed and status == (parsed["verdict"] == "refused"), f"{status}: {parsed['verdict']}")
    with_pid, _ = report(TOOL, "doctor", "--json", os.getpid())
    check([c["name"] for c in with_pid["checks"]] == NAMES + OF_PROCESS, "checks of a process")
    check(with_pid["pid"] == os.getpid(), "its process id")
    for c in with_pid["checks"]:
        check(c["value"] and c["verdict"] in ("ok", "limited", "refused", "unknown"), f"{c}")
        check(bool(c["advice"]) == (c["verdict"] in ("limited", "refused")), f"{c}")


def values_are_those_of_the_system():
    checks = by_name(report(TOOL, "doctor", "--json")[0])
    for name, path in (("perf_event_paranoid", "kernel/perf_event_paranoid"),
                       ("kptr_restrict", "kernel/kptr_restrict"),
                       ("perf_event_max_sample_rate", "kernel/perf_event_max_sample_rate"),
                       ("perf_event_mlock_kb", "kernel/perf_event_mlock_kb"), ("file-max", "fs/file-max")):
        value = open(f"/proc/sys/{path}").read().strip()
        check(re.match(rf"{value}\b", checks[name]["value"]), f"{name}: {checks[name]['value']}, not {value}")
    check(checks["kernel"]["value"] == os.uname().release, f"{checks['kernel']}")


def text_says_the_same():
    parsed, _ = report(TOOL, "doctor", "--json")
    text = tool("doctor").stdout
    for c in parsed["checks"]:
        # What changes by itself, such as the number of free files, is not compared.
        check(re.search(rf"^{c['verdict']} +{re.escape(c['name'])} ", text, re.M), f"{c}: {text}")
    check(not re.search(r"\n\n", text), "empty lines")


def what_it_permits_can_be_recorded():
    checks = by_name(report(TOOL, "doctor", "--json")[0])
    for name, options, command in (("blocked-time", ["--off-cpu"], ["true"]), ("every-process", ["-a"], ["true"])):
        r = tool("record", "-q", *options, "-o", "x.spool", "--", *command)
        check((r.returncode == 0) == (checks[name]["verdict"] == "ok"), f"{name}: {checks[name]}: {r.stderr}")


def without_rights():
    if os.geteuid() != 0:
        return
    other = subprocess.Popen(["sleep", "60"])
    try:
        parsed, status = report(*as_nobody(tool_for_nobody(), "doctor", "--json", other.pid))
        checks = by_name(parsed)
        check(status == 1 and parsed["verdict"] == "refused", f"{status}: {parsed['verdict']}")
        check(checks["owner"]["verdict"] == "refused" and "user 0" in checks["owner"]["value"], f"{checks['owner']}")
        check(checks["process"]["verdict"] == "refused", f"{checks['process']}")
        check(checks["maps"]["verdict"] == "limited", f"{checks['maps']}")
        check(checks["CAP_PERFMON"]["verdict"] != "refused", f"{checks['CAP_PERFMON']}")
        r = run(*as_nobody(tool_for_nobody(), "record", "-o", f"{open_folder()}/x.spool", "-p", other.pid))
        check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
        for word in (checks["owner"]["value"], checks["owner"]["advice"], f"stackpulse doctor {other.pid}"):
            check(word in r.stderr, f"{word!r} is not in {r.stderr}")
    finally:
        stop(other)


def undumpable_process():
    if os.geteuid() != 0:
        return
    hide = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print('READY', flush=True); time.sleep(60)"
    p = start_ready(*as_nobody(find_program("python3") and sys.executable, "-c", hide))
    try:
        checks = by_name(report(*as_nobody(tool_for_nobody(), "doctor", "--json", p.pid))[0])
        check(checks["dumpable"]["verdict"] == "refused", f"{checks['dumpable']}")
        r = run(*as_nobody(tool_for_nobody(), "record", "-o", f"{open_folder()}/x.spool", "-p", p.pid))
        check(r.returncode == 125 and "not dumpable" in r.stderr and "EACCES" in r.stderr, f"{r.stderr}")
    finally:
        stop(p)


def process_that_does_not_exist():
    r = tool("doctor", "4194301")
    check(r.returncode == 1 and "4194301" in r.stderr and not r.stdout, f"{r.returncode}: {r.stdout}{r.stderr}")
    for args in (["x"], ["1", "2"], ["1,2"], ["0"]):
        r = tool("doctor", *args)
        check(r.returncode == 2, f"doctor {args}: exit status {r.returncode}: {r.stderr}")


main(every_check_is_there, values_are_those_of_the_system, text_says_the_same, what_it_permits_can_be_recorded,
     without_rights, undumpable_process, process_that_does_not_exist)

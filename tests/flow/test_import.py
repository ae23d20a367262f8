# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""What `perf record` wrote becomes a recording: files, pipes, compressed ones, and broken ones."""
import os
import platform

from flow import *

RECORD = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "499"]
DWARF = ["--call-graph", "dwarf,32768"]


def perf_record(data, options, command, count=True):
    """Records with perf; gives the number of samples that perf itself counts in the file."""
    r = run(*RECORD, *options, "-o", data, "--", *command)
    if not os.path.exists(data):
        raise RuntimeError(f"perf: {r.stderr}")
    if not count:
        return None
    r = run("perf", "script", "-i", data, "-G", "-F", "pid,time")
    return len([line for line in r.stdout.split("\n") if line.strip()])


def imported(data, spool, *options, status=0, **more):
    r = tool("import", "-o", spool, *options, data, **more)
    check(r.returncode == status, f"import {data}: exit status {r.returncode}: {r.stderr}")
    check("Sanitizer" not in r.stderr, r.stderr)
    return r.stderr


def annotations(spool):
    return {(a.get("pid"), a["key"]): a["value"]
            for a in json.loads(tool_ok("info", "--json", spool))["annotations"]}


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path).stdout).group(1)


def whole_chain(names):
    """As deep is built: main, run, level_a and level_b by turns, 200 of them, and leaf innermost."""
    levels = sum(n in ("level_a", "level_b") for n in names)
    return names[-1] == "leaf" and levels == 200 and "main" in names and "run" in names


def assert_deep(spool, samples):
    check(numbers_of(spool) == samples, f"{spool}: {numbers_of(spool)} samples, perf has {samples}")
    stacks = folded(spool)
    check(share(stacks, whole_chain) >= 0.97, f"{spool}: {share(stacks, whole_chain):.1%} whole: {stacks[:2]}")


def numbers_of(spool):
    return len(dump(spool)["samples"])


def stacks_are_unwound():
    deep = target("deep")
    samples = perf_record("dwarf.data", DWARF, [deep, "0.5"])
    check(samples > 100, f"perf took only {samples} samples")
    stderr = imported("dwarf.data", "dwarf.spool")
    check(numbers(stderr) == (samples, 0), f"{samples} samples of perf: {stderr}")
    assert_deep("dwarf.spool", samples)
    imported("dwarf.data", "three.spool", "--format", "3")
    check(json.loads(tool_ok("info", "--json", "three.spool"))["format"] == 3, "not version 3")
    check(folded("three.spool") == folded("dwarf.spool"), "version 3 has other stacks")


def header_is_kept():
    a = annotations("dwarf.spool")
    deep = target("deep")
    check(a[None, "host"] == platform.node(), f"host {a.get((None, 'host'))}")
    check(a[None, "kernel"] == platform.release(), f"kernel {a.get((None, 'kernel'))}")
    check(a[None, "cpus"] == str(os.sysconf("SC_NPROCESSORS_ONLN")), f"cpus {a.get((None, 'cpus'))}")
    line = a[None, "recorded-by"]
    check("record" in line and "dwarf,32768" in line and deep in line, f"command line {line}")
    ids = [value for (_, key), value in a.items() if key.startswith("build-id/")]
    check(build_id(deep) in ids, f"the build ID of {deep} is not in {ids}")
    info = json.loads(tool_ok("info", "--json", "dwarf.spool"))
    check(abs(info["interval_ns"] - 1e9 / 499) < 2, f"interval {info['interval_ns']}")
    plain = tool_ok("info", "dwarf.spool")
    for word in (platform.node(), platform.release(), build_id(deep)):
        check(word in plain, f"info does not show {word}")


def times_have_a_date_with_the_right_clock():
    before = time.time()
    perf_record("clock.data", ["-k", "CLOCK_MONOTONIC"], [target("deep"), "0.05"], count=False)
    imported("clock.data", "clock.spool")
    started = json.loads(tool_ok("info", "--json", "clock.spool"))["started_at"]
    check(started and started.startswith(time.strftime("%Y-%m-%d", time.gmtime(before))), f"{started}")
    info = json.loads(tool_ok("info", "--json", "dwarf.spool"))
    check(info["started_at"] is None, "a date from a clock that has none")


def call_chains_are_kept():
    """As they are, so up to the kernel's limit: a longer one is marked as cut."""
    deep = target("deep-fp", "deep.c", ["-fno-omit-frame-pointer"])
    samples = perf_record("fp.data", ["--call-graph", "fp"], [deep, "0.2"])
    stderr = imported("fp.data", "fp.spool")
    check(numbers(stderr)[0] == samples, f"{samples} samples of perf: {stderr}")
    stacks = folded("fp.spool")
    limit = int(open("/proc/sys/kernel/perf_event_max_stack").read())
    cut = share(stacks, lambda names: names[0] == "<stack truncated>" and len(names) == limit + 1
                and names[-1] == "leaf")
    check(cut >= 0.97, f"cut at {limit} frames: {cut:.1%}: {stacks[:2]}")
    shallow = target("shallow-fp", "deep.c", ["-fno-omit-frame-pointer", "-DDEPTH=20"])
    perf_record("shallow.data", ["--call-graph", "fp"], [shallow, "0.2"], count=False)
    imported("shallow.data", "shallow.spool")
    stacks = folded("shallow.spool")
    whole = share(stacks, lambda names: names[-1] == "leaf" and "main" in names and names[0] != "<stack truncated>"
                  and sum(n in ("level_a", "level_b") for n in names) == 20)
    check(whole >= 0.97, f"whole: {whole:.1%}: {stacks[:2]}")


def pipe():
    deep = target("deep")
    line = " ".join([*RECORD, *DWARF, "-o", "-", "--", deep, "0.4"])
    r = run("sh", "-c", f"{line} | {TOOL} import -o pipe.spool -")
    check(r.returncode == 0 and "samples=" in r.stderr, f"{r.returncode}: {r.stderr}")
    check(numbers(r.stderr)[0] > 100, f"few samples: {r.stderr}")
    assert_deep("pipe.spool", numbers(r.stderr)[0])
    a = annotations("pipe.spool")
    check(a.get((None, "host")) == platform.node(), f"host {a.get((None, 'host'))}")
    check(build_id(deep) in a.values(), "no build ID of the program")


def compressed():
    if "zstd: [ on" not in run("perf", "version", "--build-options").stdout:
        print("this perf compresses nothing")
        return
    deep = target("deep")
    for level in ("-z", "--compression-level=19"):
        samples = perf_record("z.data", [*DWARF, level], [deep, "0.2"])
        check(os.path.getsize("z.data") < samples * 16384, "the file is not compressed")
        imported("z.data", "z.spool")
        assert_deep("z.spool", samples)
    line = " ".join([*RECORD, *DWARF, "--compression-level=9", "-o", "-", "--", deep, "0.2"])
    r = run("sh", "-c", f"{line} | {TOOL} import -o zpipe.spool -")
    check(r.returncode == 0, f"{r.returncode}: {r.stderr}")
    assert_deep("zpipe.spool", numbers(r.stderr)[0])


def processes_threads_and_names():
    threads = target("threads", flags=["-pthread"])
    samples = perf_record("many.data", DWARF, ["sh", "-c", f"{threads} 3 0.5; {target('deep')} 0.2"])
    imported("many.data", "many.spool")
    seen = dump("many.spool")["samples"]
    check(len(seen) == samples, f"{len(seen)} samples, perf has {samples}")
    names = {value for (pid, key), value in annotations("many.spool").items() if pid and key == "comm"}
    check({"threads", "deep"} <= names, f"names: {names}")
    check(len({s["tid"] for s in seen}) >= 4, "threads are missing")
    pid = next(p for (p, key), v in annotations("many.spool").items() if key == "comm" and v == "threads")
    check(len({s["tid"] for s in seen if s["pid"] == pid}) >= 3, "threads of one process are missing")


def further_events_are_another_profile():
    r = run("perf", "record", "-q", "-e", "cpu-clock:u,page-faults:u", "-c", "1000000", "-o", "two.data", "--",
            target("deep"), "0.2")
    stderr = imported("two.data", "two.spool")
    events = run("perf", "script", "-i", "two.data", "-F", "event").stdout.split()
    clock = sum("cpu-clock" in e for e in events)
    check(numbers(stderr)[0] == clock > 0, f"{clock} samples of the first event: {stderr}{r.stderr}")
    if len(events) > clock:
        check(f"{len(events) - clock} samples of further events" in stderr, f"not told: {stderr}")


def kernel_frames():
    if os.geteuid() != 0:
        return
    r = run("perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", "kernel.data", "--", "dd",
            "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000")
    imported("kernel.data", "kernel.spool")
    modes = [any(f["mode"] == "kernel" for f in s["frames"]) for s in script("kernel.spool")]
    check(modes and sum(modes) >= 0.3 * len(modes), f"kernel frames in {sum(modes)} of {len(modes)}: {r.stderr}")


def other_file_of_the_same_name_is_not_used():
    """Names of a file that is not the recorded one would be wrong."""
    shutil.copy(target("deep"), "changed")
    perf_record("changed.data", DWARF, ["./changed", "0.2"], count=False)
    shutil.copy(target("threads", flags=["-pthread"]), "new")
    os.rename("new", "changed")
    imported("changed.data", "changed.spool")
    stacks = folded("changed.spool")
    wrong = share(stacks, lambda names: any(n in ("spin", "down", "body") for n in names))
    check(wrong == 0, f"names of another file in {wrong:.0%} of the samples")


def killed_perf():
    """A perf that was killed leaves a file without the size of its data."""
    p = subprocess.Popen([*RECORD, *DWARF, "-o", "killed.data", "--", target("deep"), "3"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists("killed.data") and os.path.getsize("killed.data") > 2000000, 20)
    children = children_of(p.pid)
    p.kill()
    p.wait()
    for child in children:
        os.kill(child, signal.SIGKILL)
    stderr = imported("killed.data", "killed.spool")
    check("ends in the middle" in stderr, f"not told: {stderr}")
    check(numbers(stderr)[0] > 20, f"few samples: {stderr}")


def broken_files():
    perf_record("small.data", ["--call-graph", "fp"], [target("deep"), "0.05"], count=False)
    good = open("small.data", "rb").read()
    step = max(1, len(good) // 40)
    for position in range(0, len(good), step):
        for name, bad in (("cut", good[:position]),
                          ("flip", good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1:])):
            with open("bad.data", "wb") as f:
                f.write(bad)
            r = tool("import", "-o", "bad.spool", "bad.data", timeout=60)
            what = f"{name} at {position}"
            check(r.returncode in (0, 1) and "Sanitizer" not in r.stderr, f"{what}: {r.returncode}: {r.stderr[-500:]}")
            if r.returncode:
                check("bad.data" in r.stderr and "offset" in r.stderr, f"{what}: {r.stderr}")
                check(not os.path.exists("bad.spool"), f"{what}: a file is left behind")
            else:
                os.remove("bad.spool")


def foreign_files():
    with open("text.data", "w") as f:
        f.write("this is a text\n" * 20)
    open("empty.data", "w").close()
    os.makedirs("folder.data", exist_ok=True)
    for name, word in (("none.data", "No such file"), ("text.data", "no perf.data file"),
                       ("empty.data", "no perf.data file"), ("folder.data", "Is a directory")):
        stderr = imported(name, "foreign.spool", status=1)
        check(name in stderr and word in stderr, f"{name}: {stderr}")
        check(not os.path.exists("foreign.spool"), f"{name}: a file is left behind")
    r = tool("import", "-o", "foreign.spool", "-", input="")
    check(r.returncode == 1, f"empty input: {r.returncode}: {r.stderr}")
    stderr = imported("dwarf.data", "no/such/folder/x.spool", status=1)
    check("no/such/folder/x.spool" in stderr, stderr)


if not find_program("perf") or run("perf", "record", "-q", "-o", f"{WORK}/probe", "--", "true").returncode:
    skip("no perf of Linux")
main(stacks_are_unwound, header_is_kept, times_have_a_date_with_the_right_clock, call_chains_are_kept, pipe,
     compressed, processes_threads_and_names, further_events_are_another_profile, kernel_frames,
     other_file_of_the_same_name_is_not_used, killed_perf, broken_files, foreign_files)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""`tail` follows a recording from another process: samples come while it runs, none is missing."""
import os
import re
import signal

from flow import *

LINE = re.compile(r"^(\d+)\.(\d{9}) (\d+)/(\d+) (\d+) frames 0x[0-9a-f]+( \(.*\+0x[0-9a-f]+\))?$")


def rest_of(tail):
    """(exit status, the lines not yet read, stderr); communicate() would lose what is buffered."""
    out = tail.stdout.read()
    err = tail.stderr.read()
    return tail.wait(), out, err


def start_recording(name, pid, *options):
    """A recorder of a process, whose file is there."""
    p = start_tool("record", "-F", "499", "-o", name, *options, "-p", pid)
    check(wait_for(lambda: os.path.exists(name)), f"{name} does not appear")
    return p


def end_recording(recorder):
    recorder.send_signal(signal.SIGTERM)
    status, _, err = finish(recorder)
    check(status == 0, f"record ended with {status}: {err}")


def with_target(test):
    """Runs a test with the id of a process to record."""
    p = start_ready(target("threads", flags=["-pthread"]), 2, 600)
    try:
        test(p.pid)
    finally:
        stop(p)


def sample_of(line):
    """(time, pid, tid, number of frames) of a line of text."""
    m = LINE.match(line)
    if not check(m, f"not a sample: {line!r}"):
        return None
    return int(m[1]) * 10**9 + int(m[2]), int(m[3]), int(m[4]), int(m[5])


def follow(version, pid):
    name = f"live{version}.spool"
    recorder = start_recording(name, pid, "--format", version)
    tail = start_tool("tail", "--until-exit", recorder.pid, name)
    first = tail.stdout.readline()
    check(recorder.poll() is None, "no sample came while the recorder ran")
    end_recording(recorder)
    status, out, err = rest_of(tail)
    check(status == 0, f"tail ended with {status}: {err}")
    seen = [sample_of(line) for line in (first + out).splitlines()]
    there = [(s["timestamp_ns"], s["pid"], s["tid"],
              len([f for f in s["frames"] if not f.get("inline")])) for s in script(name)]
    check(len(there) > 5, f"only {len(there)} samples")
    check(seen == there, f"format {version}: {len(seen)} samples seen, {len(there)} there")


def follows_until_the_recorder_ends():
    with_target(lambda pid: [follow(version, pid) for version in ("3", "4")])


def follow_json(pid):
    recorder = start_recording("json.spool", pid)
    tail = start_tool("tail", "--json", "--until-exit", recorder.pid, "json.spool")
    first = tail.stdout.readline()
    end_recording(recorder)
    status, out, err = rest_of(tail)
    check(status == 0, f"tail ended with {status}: {err}")
    seen = [json.loads(line) for line in (first + out).splitlines()]
    there = script("json.spool")
    check(len(seen) == len(there) > 5, f"{len(seen)} samples seen, {len(there)} there")
    for mine, other in zip(seen, there):
        for key in ("timestamp_ns", "pid", "tid"):
            check(mine[key] == other[key], f"{key}: {mine[key]}, not {other[key]}")
        frames = [(f["mode"], f.get("ip"), f.get("rel"), f.get("path")) for f in other["frames"]
                  if not f.get("inline")]
        if not check([(f["mode"], f["ip"], f.get("rel"), f.get("path")) for f in mine["frames"]]
                     == frames, f"frames differ:\n{mine['frames'][:3]}\n{frames[:3]}"):
            return


def json_lines():
    with_target(follow_json)


def end_by(number, options, pid):
    name = f"{number.name}{len(options)}.spool"
    recorder = start_recording(name, pid)
    tail = start_tool("tail", *options, name)
    lines = [tail.stdout.readline() for _ in range(5)]
    tail.send_signal(number)
    status, out, err = rest_of(tail)
    check(status == 0 and not err, f"{number.name}: exit status {status}: {err}")
    check(out == "" or out.endswith("\n"), f"the last line is cut: {out[-100:]!r}")
    for line in lines + out.splitlines():
        check(json.loads(line)["frames"] if options else sample_of(line.rstrip("\n")),
              f"not a sample: {line!r}")
    check(recorder.poll() is None, "the recorder ended with it")
    end_recording(recorder)


def ends_by_signal():
    with_target(lambda pid: [end_by(number, options, pid) for number, options in
                             ((signal.SIGINT, []), (signal.SIGINT, ["--json"]), (signal.SIGTERM, []))])


def finished_file_and_dead_process():
    """What is complete is printed whole; a process that is gone ends it at once."""
    record("whole.spool", ["-F", "999"], [target("deep"), "0.3"])
    p = subprocess.Popen(["true"])
    p.wait()
    r = tool("tail", "--until-exit", p.pid, "whole.spool", timeout=20)
    check(r.returncode == 0, r.stderr)
    check(len(r.stdout.splitlines()) == len(script("whole.spool")), "samples are missing")


def grows_byte_by_byte():
    """A file that someone copies slowly: half a record is waited for."""
    record("source.spool", ["-F", "999"], [target("deep"), "0.2"])
    data = open("source.spool", "rb").read()
    keeper = subprocess.Popen(["sleep", "60"])
    try:
        with open("slow.spool", "wb", buffering=0) as f:
            f.write(data[:4001])
            tail = start_tool("tail", "--until-exit", keeper.pid, "slow.spool")
            for at in range(4001, len(data), len(data) // 37):
                f.write(data[at:at + len(data) // 37])
                time.sleep(0.02)
        stop(keeper)
        status, out, err = rest_of(tail)
        check(status == 0, f"tail ended with {status}: {err}")
        check(len(out.splitlines()) == len(script("source.spool")), "samples are missing")
    finally:
        stop(keeper)


def says_what_is_wrong():
    record("good.spool", ["-F", "999"], [target("deep"), "0.2"])
    r = tool("tail", "missing.spool")
    check(r.returncode == 1 and "missing.spool" in r.stderr and "No such file" in r.stderr, r.stderr)
    data = open("good.spool", "rb").read()
    for change, text in ((lambda f: f.truncate(len(data) // 2), "became shorter"),
                         (lambda f: (f.seek(0, 2), f.write(b"\xff")), "unknown record tag 255"),
                         (lambda f: (f.seek(8), f.write(b"\x7f"), f.seek(0, 2), f.write(b"\x05")),
                          "was rewritten")):
        with open("bad.spool", "wb") as f:
            f.write(data)
        tail = start_tool("tail", "bad.spool")
        tail.stdout.readline()
        with open("bad.spool", "r+b") as f:
            change(f)
        status, _, err = rest_of(tail)
        check(status == 1 and "bad.spool" in err and text in err, f"{text}: {status} {err!r}")


def reader_goes_away():
    """With nothing more to print, no write tells that nobody reads."""
    record("quiet.spool", ["-F", "999"], [target("deep"), "0.2"])
    tail = start_tool("tail", "quiet.spool")
    tail.stdout.readline()
    tail.stdout.close()
    try:
        check(tail.wait(20) == 0, f"tail ended with {tail.returncode}: {tail.stderr.read()}")
    except subprocess.TimeoutExpired:
        check(False, "tail follows for nobody")
    stop(tail)


def renamed_over():
    """The file that was opened is followed, whatever its name means now."""
    record("old.spool", ["-F", "999"], [target("deep"), "0.2"])
    expected = len(script("old.spool"))
    record("new.spool", ["-F", "999"], [target("deep"), "0.1"])
    keeper = subprocess.Popen(["sleep", "60"])
    try:
        tail = start_tool("tail", "--until-exit", keeper.pid, "old.spool")
        first = tail.stdout.readline()
        os.replace("new.spool", "old.spool")
        stop(keeper)
        status, out, err = rest_of(tail)
        check(status == 0, f"tail ended with {status}: {err}")
        check(len((first + out).splitlines()) == expected, "the old content is not printed")
    finally:
        stop(keeper)


main(follows_until_the_recorder_ends, json_lines, ends_by_signal, finished_file_and_dead_process,
     grows_byte_by_byte, says_what_is_wrong, reader_goes_away, renamed_over)

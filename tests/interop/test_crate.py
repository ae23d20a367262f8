# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Another implementation reads what we write and writes what we read: not one field differs.

The peers are the Rust crate stackpulse 0.10.2 (format 3) and 0.12.3 (format 4), built once by cargo
into a cache folder outside of the tree.
"""
import os

from flow import *
from peers import build_peers

READ = RECORD = None


def peer_samples(version, spool):
    r = run(READ, "dump", version, spool)
    if r.returncode:
        raise RuntimeError(f"the peer refuses {spool}: {r.stderr[-1000:]}")
    samples = []
    for line in r.stdout.split("\n"):
        if line:
            sample = json.loads(line)
            samples.append((sample["timestamp_ns"], sample["pid"], sample["tid"],
                            [peer_frame(f) for f in sample["frames"]]))
    return samples


def peer_frame(frame):
    if frame["mode"] == "truncated":
        return ("truncated",)
    if "path_hex" not in frame:
        return (frame["mode"], int(frame["ip"], 16), None, None)
    return (frame["mode"], int(frame["ip"], 16), bytes.fromhex(frame["path_hex"]), int(frame["rel"], 16))


def our_frame(frame):
    if frame["mode"] == "truncated":
        return ("truncated",)
    if frame["module"] is None:
        return (frame["mode"], int(frame["ip"], 16), None, None)
    path = bytes.fromhex(frame["path_hex"]) if "path_hex" in frame else frame["path"].encode()
    return (frame["mode"], int(frame["ip"], 16), path, int(frame["rel"], 16))


def our_samples(spool):
    return [(s["timestamp_ns"], s["pid"], s["tid"],
             [our_frame(f) for f in s["frames"] if not f.get("inline")])
            for s in script(spool)]


def assert_equal_samples(version, spool):
    ours, theirs = our_samples(spool), peer_samples(version, spool)
    check(len(ours) == len(theirs), f"{spool}: {len(ours)} samples here, {len(theirs)} there")
    check(len(ours) > 0, f"{spool}: no samples")
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            print(f"here  {mine}\nthere {other}")
            check(False, f"{spool}: sample {number} differs")
            return
    frames = sum(len(s[3]) for s in ours)
    print(f"{spool}: {len(ours)} samples, {frames} frames are equal")


def vectors_read_alike():
    """Recordings in the tree, made by the peers on another machine."""
    folder = os.path.join(SOURCE, "tests/data/vectors/recordings")
    spools = sorted(glob.glob(os.path.join(folder, "*.spool"))
                    or glob.glob(os.path.join(SOURCE, "tests/data/**/recordings/*.spool"), recursive=True))
    check(spools, "no recordings in tests/data")
    for spool in spools:
        assert_equal_samples(os.path.basename(spool)[1], spool)


def our_recordings():
    """Each kind of program of the other flow tests, in both formats, read by the peer."""
    work = "j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done"
    project = f"i=0; while [ $i -lt 25 ]; do /bin/sh -c '{work}'; i=$((i+1)); done"
    python = newer_python() or find_program("python3")
    load = os.path.join(SOURCE, "tests/targets/pyload.py")
    with open("big", "wb") as f:
        f.write(os.urandom(1 << 16) * 200)
    commands = {
        "gzip": ["sh", "-c", "gzip -9 -c big >/dev/null"],
        "deep": [target("deep"), "0.5"],
        "inlines": [target("inlines", "inlines.cc", ["-std=c++17"]), "0.5"],
        "static": [target("deep_static", "deep.c", ["-static"]), "0.5"],
        "children": ["sh", "-c", project],
        "threads": [target("threads", flags=["-pthread"]), "4", "0.5"],
        "python": [python, *(["-X", "perf"] if newer_python() else []), load, "0.5"],
    }
    rustc = find_program("rustc", os.path.expanduser("~/.cargo/bin/rustc"))
    if rustc:
        commands["rust"] = [target("crunch", "crunch.rs", ["-O", "-Cdebuginfo=0"], rustc), "0.5"]
    go = find_program("go", "/usr/local/go/bin/go")
    if go:
        commands["go"] = [target("gopher", "gopher.go", compiler=go), "0.5"]
    for name, command in commands.items():
        for version in ("3", "4"):
            spool = f"{name}{version}.spool"
            record(spool, ["--format", version, "-F", "999"], command)
            assert_equal_samples(version, spool)
    kernel = ["--kernel", "-F", "999"]
    for version in ("3", "4"):
        r = tool("record", "-o", f"kernel{version}.spool", "--format", version, *kernel, "--",
                 "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=5000")
        if r.returncode == 0:
            assert_equal_samples(version, f"kernel{version}.spool")


def attached_recordings():
    threads = target("threads", flags=["-pthread"])
    for version in ("3", "4"):
        p = start_ready(threads, 8, 20)
        try:
            r = tool("record", "-o", f"attached{version}.spool", "--format", version, "-d", "1", "-p", p.pid)
            check(r.returncode == 0, r.stderr)
        finally:
            stop(p)
        assert_equal_samples(version, f"attached{version}.spool")


def cut_recordings():
    """A tail cut at any byte is recovered to the same samples on both sides."""
    for version in ("3", "4"):
        record("whole.spool", ["--format", version, "-F", "999"],
               [target("inlines", "inlines.cc", ["-std=c++17"]), "0.2"])
        data = open("whole.spool", "rb").read()
        for keep in range(len(data) - 40, len(data)):
            with open("cut.spool", "wb") as f:
                f.write(data[:keep])
            ours, theirs = our_samples("cut.spool"), peer_samples(version, "cut.spool")
            if not check(ours == theirs, f"format {version} cut to {keep} of {len(data)} bytes"):
                return


def their_recordings():
    for version in ("3", "4"):
        p = start_ready(target("threads", flags=["-pthread"]), 4, 20)
        spool = f"theirs{version}.spool"
        try:
            r = run(RECORD, version, p.pid, 1, spool)
            check(r.returncode == 0, f"the peer cannot record: {r.stderr}")
        finally:
            stop(p)
        assert_equal_samples(version, spool)
        names = share(folded(spool), lambda frames: frames[-1] in ("spin", "down"))
        check(names >= 0.9, f"{spool}: known leaves in only {names:.0%}")


if perf_works():
    READ, RECORD = build_peers("peer")
main(vectors_read_alike, our_recordings, attached_recordings, cut_recordings, their_recordings)

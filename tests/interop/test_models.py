# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""What our writer writes, another implementation reads: random recordings, sample by sample.

The crate's Snapshot, Replay and Tail must give the samples that the writer was given, annotations or
not. usage: test_models.py SPOOL_MODELS [COUNT [FIRST_SEED]]
"""
import os
import sys

from flow import *
from peers import build_peers

MODELS = os.path.abspath(sys.argv.pop(1))
COUNT = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 300
FIRST = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1
READERS = ("snapshot", "replay", "tail")
CHUNK = 500


def blocks(text):
    """The lines of each spool; the last one of each says how it ended."""
    found, lines = [], []
    for line in text.split("\n"):
        lines.append(line)
        if line == "end" or line.startswith("error "):
            found.append(lines)
            lines = []
    return found


def peer_blocks(requests):
    r = run(READ, "dump-many", input="".join(" ".join(request) + "\n" for request in requests),
            timeout=600)
    if r.returncode:
        raise RuntimeError(f"peer-read: {r.stderr[-1000:]}")
    return blocks(r.stdout)


def compare(first, count):
    """Writes models and asks each reader about each, with and without annotations."""
    os.makedirs("models", exist_ok=True)
    r = run(MODELS, first, count, "models", timeout=600)
    check(r.returncode == 0, r.stderr)
    expected = blocks(r.stdout)
    check(len(expected) == count, f"{len(expected)} models of {count}")
    requests = [(reader, "3" if seed % 2 else "4", f"models/{seed}.{kind}", seed - first)
                for seed in range(first, first + count) for kind in ("spool", "plain")
                for reader in READERS]
    found = peer_blocks([request[:3] for request in requests])
    check(len(found) == len(requests), f"{len(found)} answers of {len(requests)}")
    for (reader, version, path, index), lines in zip(requests, found):
        if lines != expected[index]:
            pair = next((p for p in zip(lines, expected[index]) if p[0] != p[1]), (None, None))
            check(False, f"{path} by {reader} {version}: {len(lines)} lines of "
                         f"{len(expected[index])}\n  there {pair[0]}\n  ours  {pair[1]}")
    return sum(len(lines) - 1 for lines in expected)


def random_models():
    samples = 0
    for first in range(FIRST, FIRST + COUNT, CHUNK):
        samples += compare(first, min(CHUNK, FIRST + COUNT - first))
    print(f"{COUNT} models, {samples} samples, twice through {len(READERS)} readers")
    check(samples > COUNT, "too few samples")


def recordings_without_annotations():
    """A recording and its copy without annotations are the same to each reader of the crates."""
    p = start_ready(target("threads", flags=["-pthread"]), 4, 60)
    requests = []
    try:
        for version in ("3", "4"):
            name, plain = f"real{version}.spool", "plain-"
            r = tool("record", "-q", "--format", version, "-o", name, "-d", "0.5", "-p", p.pid)
            check(r.returncode == 0, r.stderr)
            record(f"own{version}.spool", ["-q", "--format", version, "-F", "499"],
                   ["sh", "-c", f"{target('deep')} 0.2; j=0; while [ $j -lt 50000 ]; do j=$((j+1)); done"])
            for path in (name, f"own{version}.spool"):
                r = run(MODELS, "--strip", path, plain + path)
                check(r.returncode == 0, r.stderr)
                requests += [(reader, version, file) for reader in READERS
                             for file in (path, plain + path)]
    finally:
        stop(p)
    for version in ("3", "4"):
        check("//stackpulse/" in json.dumps(dump(f"real{version}.spool")),
              "there are no annotations to begin with")
        check("//stackpulse/" not in json.dumps(dump(f"plain-real{version}.spool")),
              "annotations were not removed")
    found = peer_blocks(requests)
    for (reader, version, path), noted, plain in zip(requests[::2], found[::2], found[1::2]):
        check(noted == plain and noted[-1] == "end" and len(noted) > 1,
              f"{path} by {reader} {version}: {len(noted)} and {len(plain)} lines, {noted[-1]}")


READ = build_peers("peer")[0] if perf_works() else None
main(random_models, recordings_without_annotations)

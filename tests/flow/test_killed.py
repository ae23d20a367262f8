# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""A recorder killed with SIGKILL at any moment leaves a spool that opens, or none, and no stopped target.

usage: test_killed.py [MOMENTS [SEED]]
"""
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

from flow import *

MOMENTS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 20
SEED = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1
AT_ONCE = 5
READERS = ("snapshot", "replay", "tail")


def until_named(pid):
    """Seconds from a recorder's start to its spool's name, about."""
    begin = time.monotonic()
    p = start_tool("record", "-q", "-o", "first.spool", "-p", pid)
    wait_for(lambda: os.path.exists("first.spool"))
    seconds = time.monotonic() - begin
    stop(p)
    return seconds


def killed_after(name, named, seconds, pid, version):
    """Starts a recorder of a process or, without one, of a command, and kills it so long after the
    start, or after its file has its name."""
    what = ["-p", str(pid)] if pid else ["--", target("deep"), "0.3"]
    begin = time.monotonic()
    p = start_tool("record", "-q", "-F", "2000", "--format", version, "-o", name, *what)
    if named:
        wait_for(lambda: os.path.exists(name))
        begin = time.monotonic()
    time.sleep(max(0, begin + seconds - time.monotonic()))
    stop(p)
    p.stdout.close()
    p.stderr.close()


def look_at(name, seconds, reader):
    """The outcome and the number of samples."""
    if not os.path.exists(name):
        return "none", 0
    r = tool("dump", "--reader", reader, name)
    document = json.loads(r.stdout) if r.stdout else {"outcome": r.stderr}
    os.unlink(name)
    check(document["outcome"] in ("valid", "recovered"),
          f"killed after {seconds:.4f} s: {document['outcome']} by {reader}: {document.get('error')}")
    return document["outcome"], len(document.get("document", {}).get("samples", []))


def moment(i, named, pid):
    """Kills at the moment that a number chooses: during the attach, or later."""
    rng = random.Random(SEED * 1000003 + i)
    seconds = rng.uniform(0, 2 * named if i % 2 else 1.2)
    name = f"killed{i}.spool"
    killed_after(name, i % 2 == 0, seconds, pid if i % 4 else None, rng.choice(["3", "4"]))
    return look_at(name, seconds, rng.choice(READERS))


def any_moment():
    target("deep")
    threads = start_ready(target("threads", flags=["-pthread"]), 8, 600)
    try:
        named = until_named(threads.pid)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ends = list(pool.map(lambda i: moment(i, named, threads.pid), range(MOMENTS)))
        check(wait_for(lambda: state_of(threads.pid) in ("R", "S"), 10),
              f"the target is in state {state_of(threads.pid)}")
    finally:
        stop(threads)
    outcomes = [outcome for outcome, _ in ends]
    samples = sum(count for _, count in ends)
    text = ", ".join(f"{outcomes.count(o)} {o}" for o in ("none", "valid", "recovered"))
    print(f"{MOMENTS} moments, named after {named:.3f} s: {text}, {samples} samples")
    # Else nothing was tried.
    check(outcomes.count("none") <= MOMENTS * 0.6 and samples, "too few spools were looked at")


main(any_moment)

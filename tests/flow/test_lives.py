# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Processes and threads with unusual lives: whoever did the work is named, by what it was then."""
import os
import re
import shutil

from flow import *

FLAGS = ["-pthread", "-ldl"]


def lives():
    return target("lives", flags=FLAGS)


def below(stacks, *chain):
    """Share of the stacks that hold that chain, whatever the last one calls."""
    def holds(names):
        n = len(chain)
        return any(tuple(names[i:i + n]) == chain for i in range(len(names) - n + 1))
    return share(stacks, holds)


def a_thread_that_executes_becomes_the_leader():
    """Four times in a row: no thread of an older program stays behind."""
    record("exec.spool", ["-F", "999"], [lives(), "exec-thread", "4"])
    stacks = folded("exec.spool")
    before = below(stacks, "start_thread", "exec_thread", "before_exec")
    after = below(stacks, "main", "live_exec_thread", "after_exec")
    check(before >= 0.25 and after >= 0.3 and before + after >= 0.9,
          f"before {before:.0%}, after {after:.0%}: {stacks[:5]}")
    samples = dump("exec.spool")["samples"]
    check(len({s["pid"] for s in samples}) == 1, "more than one process")
    last = samples[-50:]
    check({s["tid"] for s in last} == {samples[0]["pid"]}, "the last program has another thread id")


def a_vfork_child_is_a_process_of_its_own():
    record("vfork.spool", ["-F", "999"], [lives(), "vfork"])
    stacks = folded("vfork.spool")
    for name in ("vfork_child", "vfork_parent"):
        found = below(stacks, "main", "live_vfork", name)
        check(found >= 0.25, f"{name} in {found:.0%}: {stacks[:3]}")
    pids = {"vfork_child": set(), "vfork_parent": set()}
    for sample in script("vfork.spool"):
        for frame in sample["frames"]:
            pids.get(frame.get("name"), set()).add(sample["pid"])
    check(len(pids["vfork_parent"]) == 1, f"the parent is {pids['vfork_parent']}")
    check(len(pids["vfork_child"]) >= 6 and not pids["vfork_child"] & pids["vfork_parent"],
          f"the children are {pids['vfork_child']}")


def short_processes_are_named():
    record("forks.spool", ["-F", "999"], [lives(), "forks", "150"])
    stacks = folded("forks.spool")
    found = below(stacks, "main", "live_forks", "fork_child")
    check(found >= 0.6, f"fork_child in {found:.0%}: {stacks[:4]}")
    check(len({s["pid"] for s in dump("forks.spool")["samples"]}) >= 75, "few processes")
    unknown = share(stacks, lambda names: re.match(r"(0x|\[unknown)", names[-1]) is not None)
    check(unknown <= 0.02, f"{unknown:.0%} of the leaves have no module")


def short_threads_are_named():
    record("threads.spool", ["-F", "999"], [lives(), "threads", "100"])
    stacks = folded("threads.spool")
    found = below(stacks, "start_thread", "short_thread")
    check(found >= 0.8, f"short_thread in {found:.0%}: {stacks[:4]}")
    check(len({s["tid"] for s in dump("threads.spool")["samples"]}) >= 50, "few threads")


def programs_at_one_address_keep_their_names():
    flags = ["-no-pie", *FLAGS]
    last = target("lives_last", "lives.c", ["-DHOT=last_hot", *flags])
    inner = target("lives_inner", "lives.c", ["-DHOT=inner_hot", f'-DNEXT="{last}"', *flags])
    first = target("lives_first", "lives.c", ["-DHOT=first_hot", f'-DNEXT="{inner}"', *flags])
    record("chain.spool", ["-F", "999"], [first, "chain"])
    stacks = folded("chain.spool")
    for name in ("first_hot", "inner_hot", "last_hot"):
        found = below(stacks, "main", "live_chain", name)
        check(0.2 <= found <= 0.5, f"{name} in {found:.0%}: {stacks[:4]}")


def libraries_at_one_address_keep_their_names():
    for name in ("one", "two"):
        target(f"libreload_{name}.so", "hotlib.c", ["-shared", "-fPIC", f"-Dhot_spin={name}_spin"])
    r = tool("record", "-o", "reload.spool", "-F", "999", "--", lives(), "reload", TARGETS)
    check(r.returncode == 0, r.stderr)
    again = re.search(r"the same address (\d+) times", r.stdout)
    check(again is not None and int(again.group(1)) > 0, f"the loader chose other addresses: {r.stdout}")
    stacks = folded("reload.spool")
    for name in ("one_spin", "two_spin"):
        found = below(stacks, "main", "live_reload", name)
        check(0.35 <= found <= 0.6, f"{name} in {found:.0%}: {stacks[:4]}")


def a_process_goes_on_without_its_leader():
    record("leader.spool", ["-F", "999"], [lives(), "leader"])
    stacks = folded("leader.spool")
    found = below(stacks, "start_thread", "outlive")
    check(found >= 0.9, f"outlive in {found:.0%}: {stacks[:3]}")


def children_that_live_already_lose_nothing():
    p = start_ready(lives(), "family", "12")
    try:
        err = tool("record", "-o", "family.spool", "-F", "299", "-d", "2", "-p", p.pid).stderr
        samples, lost = numbers(err)
        check(lost == 0, f"{lost} lost of {samples}")
        pids = {s["pid"] for s in dump("family.spool")["samples"]}
        check(len(pids - {p.pid}) == 12, f"{len(pids)} processes have samples")
        check(below(folded("family.spool"), "live_family", "old_child") >= 0.95, "the children have no names")
    finally:
        run("pkill", "-KILL", "-P", p.pid)
        stop(p)


def a_setuid_program_ends_nothing():
    """The kernel takes the events off it; the recording goes on and the program works."""
    if os.geteuid() != 0:
        return
    folder, tool_copy = open_folder(), tool_for_nobody()
    private = os.path.join(folder, "private")
    shutil.copy(shutil.which("id"), private)
    os.chown(private, 0, 0)
    os.chmod(private, 0o4755)
    program = shutil.copy(lives(), folder)
    r = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
            tool_copy, "record", "-o", f"{folder}/x.spool", "--", program, "execute", private, "-u")
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    if r.stdout.strip() != "0":
        print(f"the folder is mounted without setuid: {r.stdout!r}")
    check(json.loads(tool("dump", f"{folder}/x.spool").stdout)["outcome"] == "valid", "the file is broken")


main(a_thread_that_executes_becomes_the_leader, a_vfork_child_is_a_process_of_its_own,
     short_processes_are_named, short_threads_are_named, programs_at_one_address_keep_their_names,
     libraries_at_one_address_keep_their_names, a_process_goes_on_without_its_leader,
     children_that_live_already_lose_nothing, a_setuid_program_ends_nothing)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Whatever refuses: the message names the object, the reason and what to do."""
import os
import resource

from flow import *


def refused(args, status, *words, **more):
    r = tool(*args, **more)
    check(r.returncode == status, f"{args}: exit status {r.returncode}, not {status}: {r.stderr}")
    for word in words:
        alternatives = word if isinstance(word, tuple) else (word,)
        check(any(w.lower() in r.stderr.lower() for w in alternatives),
              f"{args}: {word!r} is not in the message: {r.stderr}")
    check("Sanitizer" not in r.stderr, r.stderr)
    check(len(r.stderr) < 3000, f"{args}: a long message: {r.stderr[:3000]}")


def missing_pid():
    refused(["record", "-o", "x.spool", "-p", "4194301"], 125, "4194301",
            ("no such process", "does not exist", "not running"))


def pid_that_just_ended():
    p = subprocess.Popen(["true"])
    p.wait()
    refused(["record", "-o", "x.spool", "-p", p.pid], 125, str(p.pid))


def rate_above_the_limit():
    limit = int(open("/proc/sys/kernel/perf_event_max_sample_rate").read())
    refused(["record", "-F", limit + 1, "-o", "x.spool", "--", "true"], 125, str(limit + 1), str(limit),
            "perf_event_max_sample_rate")
    check(not os.path.exists("x.spool"), "a file is left behind")
    record("max.spool", ["-F", "max", "-q"], ["true"])


def no_permission():
    if os.geteuid() != 0:
        print("not root: another user's process stands in for it")
        refused(["record", "-o", "x.spool", "-d", "1", "-p", "1"], 125, "1",
                ("permission", "not permitted"))
        return
    folder, tool_copy = open_folder(), tool_for_nobody()
    p = subprocess.Popen(["sleep", "30"])
    try:
        r = run(*as_nobody(tool_copy, "record", "-o", f"{folder}/x.spool", "-p", p.pid))
        check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
        check(str(p.pid) in r.stderr and ("ermission" in r.stderr or "not permitted" in r.stderr),
              f"message: {r.stderr}")
        check(state_of(p.pid) == "S", "the target was disturbed")
        check(not os.path.exists(f"{folder}/x.spool"), "a file is left behind")
    finally:
        stop(p)
    r = run(*as_nobody(tool_copy, "record", "-o", "/root/x.spool", "--", "true"))
    check(r.returncode == 125 and "x.spool" in r.stderr, f"{r.returncode}: {r.stderr}")


def unprivileged_own_command():
    """An ordinary user records an own program, where the kernel's settings allow it."""
    paranoid = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    if os.geteuid() != 0:
        return
    folder, tool_copy = open_folder(), tool_for_nobody()
    r = run(*as_nobody(tool_copy, "record", "-o", f"{folder}/own.spool", "--", "sh", "-c",
                       "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
    if paranoid > 2:
        check(r.returncode == 125 and "perf_event_paranoid" in r.stderr, f"{r.returncode}: {r.stderr}")
    else:
        check(r.returncode == 0, f"perf_event_paranoid {paranoid}: {r.returncode}: {r.stderr}")
        check(numbers(r.stderr)[0] > 10, f"few samples: {r.stderr}")


def unwritable_output():
    os.mkdir("folder.spool")
    refused(["record", "-o", "folder.spool", "--", "true"], 125, "folder.spool", "directory")
    refused(["record", "-o", "no/such/folder/x.spool", "--", "true"], 125, "no/such/folder/x.spool",
            "no such file")
    refused(["record", "-o", "/proc/x.spool", "--", "true"], 125, "/proc/x.spool")


def small_disk(size):
    mount = os.path.join(WORK, "disk")
    os.makedirs(mount, exist_ok=True)
    if run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount).returncode:
        return None
    return mount


def full_disk():
    mount = small_disk("64k")
    if not mount:
        print("no right to mount: /dev/full stands in for a full disk")
        mount = None
    deep = target("deep")
    try:
        if mount:
            start = time.monotonic()
            r = tool("record", "-F", "max", "-o", f"{mount}/x.spool", "--", "sh", "-c",
                     f"head -c 63000 /dev/zero >{mount}/fill; for i in 1 2 3 4 5 6; do {deep} 0.5; done")
            check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
            check("x.spool" in r.stderr and "No space left" in r.stderr, f"message: {r.stderr}")
            check(time.monotonic() - start < 30, "took too long")
    finally:
        if mount:
            run("umount", "-l", mount)
    record("ok.spool", ["-F", "499"], [deep, "0.3"])
    for command in ("folded", "script", "report", "dump", "info"):
        with open("/dev/full", "w") as full:
            r = subprocess.run([TOOL, command, "ok.spool"], stdout=full, stderr=subprocess.PIPE, text=True)
        check(r.returncode == 1 and "No space left" in r.stderr,
              f"{command} >/dev/full: {r.returncode}: {r.stderr}")
    r = tool("flame", "ok.spool", "-o", "/dev/full")
    check(r.returncode == 1, f"flame -o /dev/full: {r.returncode}: {r.stderr}")


def largest_file_size():
    """RLIMIT_FSIZE: an error like a full disk, not a recorder that a signal ends."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    refused(["record", "-F", "max", "-o", "limited.spool", "--", target("deep"), "0.5"], 125,
            "limited.spool", "too large", "lacks the last of these samples", preexec_fn=limit)
    check(os.path.getsize("limited.spool") == 4096, "not filled to its limit")
    tool_ok("info", "limited.spool")


def few_descriptors():
    """What is short is said, and nothing is blamed on the output."""
    for count in range(6, 14):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        r = tool("record", "-q", "-o", "few.spool", "--", "true", preexec_fn=limit)
        check(r.returncode in (0, 125), f"{count} descriptors: {r.returncode}: {r.stderr}")
        if r.returncode:
            check("too many open files" in r.stderr.lower(), f"{count} descriptors: {r.stderr}")
        check("few.spool" not in r.stderr, f"{count} descriptors: {r.stderr}")


def soft_descriptor_limit():
    """Many processes need more than it; the command itself keeps it."""
    def limit():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, hard))
    many = f"ulimit -Sn; for i in $(seq 60); do sleep 2 & done; sleep 0.3; {target('deep')} 0.5; wait"
    r = tool("record", "-o", "many.spool", "--", "sh", "-c", many, preexec_fn=limit)
    check(r.returncode == 0, f"{r.returncode}: {r.stderr}")
    check(r.stdout.split()[0] == "24", f"the command's limit is {r.stdout}")
    check("too many" not in r.stderr.lower(), r.stderr)
    whole = share([s for s in folded("many.spool") if "leaf" in s[0]], lambda names: "main" in names)
    check(whole >= 0.9, f"only {whole:.0%} of the stacks are whole")


def no_proc():
    """A process that /proc does not show is not one that is gone."""
    if os.geteuid() != 0 or os.environ.get("STACKPULSE_SANITIZE", "none") != "none":
        print("needs a mount namespace, and a program that does without /proc")
        return
    p = subprocess.Popen(["sleep", "30"])
    try:
        without = ["unshare", "-m", "sh", "-c", 'umount -l /proc; exec "$@"', "sh", TOOL]
        r = run(*without, "record", "-o", "x.spool", "-p", str(p.pid))
        check(r.returncode == 125 and "not mounted" in r.stderr and "is gone" not in r.stderr,
              f"{r.returncode}: {r.stderr}")
    finally:
        stop(p)


def closed_pipe():
    """`folded | head` ends quietly."""
    record("pipe.spool", ["-F", "999"], [target("deep"), "0.5"])
    r = run("sh", "-c", f"{TOOL} script pipe.spool | head -n 1")
    check(not r.stderr.strip(), f"noise on a closed pipe: {r.stderr}")


def missing_file():
    for command in ("report", "folded", "script", "info", "replay", "resolve"):
        refused([command, "none.spool"], 1, "none.spool", "no such file")
    r = tool("dump", "none.spool")
    check(r.returncode == 1, f"dump: exit status {r.returncode}")


def foreign_files():
    with open("text.spool", "w") as f:
        f.write("this is a text, not a recording\n" * 10)
    open("empty.spool", "w").close()
    os.mkdir("dir.spool")
    for name in ("text.spool", "empty.spool", "dir.spool", "/bin/sh"):
        for command in ("report", "folded", "script", "info", "replay", "resolve"):
            refused([command, name], 1, os.path.basename(name))
        r = tool("dump", name)
        check(r.returncode == 1, f"dump {name}: exit status {r.returncode}")
        if os.path.isfile(name):
            check(json.loads(r.stdout)["outcome"] == "error", f"dump {name}: {r.stdout[:200]}")


def corrupt_spool():
    record("good.spool", ["-F", "499"], [target("deep"), "0.5"])
    good = open("good.spool", "rb").read()
    for position in range(0, len(good), max(1, len(good) // 60)):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        with open("bad.spool", "wb") as f:
            f.write(bad)
        r = tool("dump", "bad.spool")
        check(r.returncode in (0, 1), f"byte {position}: exit status {r.returncode}: {r.stderr[-300:]}")
        r = tool("folded", "bad.spool")
        check(r.returncode in (0, 1) and "Sanitizer" not in r.stderr,
              f"byte {position}: exit status {r.returncode}: {r.stderr[-300:]}")
        if r.returncode:
            check("bad.spool" in r.stderr, f"byte {position}: {r.stderr}")
    with open("cut.spool", "wb") as f:
        f.write(good[:-3])
    r = tool("info", "cut.spool")
    check(r.returncode == 0 and "recovered" in (r.stdout + r.stderr).lower(),
          f"a cut tail: {r.returncode}: {r.stdout[:500]}{r.stderr}")


def missing_modules():
    """Binaries that are gone by the time of the report: addresses, no wrong names, no failure."""
    import shutil
    shutil.copy(target("deep"), "gone")
    record("gone.spool", ["-F", "499"], ["./gone", "0.5"])
    os.remove("gone")
    stacks = folded("gone.spool")
    there = share(stacks, lambda names: any(n.startswith("gone+0x") for n in names))
    check(there >= 0.9, f"gone+0x... in only {there:.0%}: {stacks[:2]}")
    check(share(stacks, lambda names: "leaf" in names) == 0, "a name from a file that is gone")


main(missing_pid, pid_that_just_ended, rate_above_the_limit, no_permission, unprivileged_own_command,
     unwritable_output, full_disk, largest_file_size,
     few_descriptors, soft_descriptor_limit, no_proc, closed_pipe, missing_file, foreign_files, corrupt_spool, missing_modules)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The output file: .old, mode 0600, nothing left by a failure, whole after a signal, never the input."""
import os
import shutil
import signal
import stat

from flow import *


def old_one_is_kept():
    record("a.spool", ["-q"], ["true"])
    first = open("a.spool", "rb").read()
    record("a.spool", ["-q"], ["sh", "-c", "exit 0"])
    check(open("a.spool.old", "rb").read() == first, "a.spool.old is not the first recording")
    check(open("a.spool", "rb").read() != first, "a.spool is not the second recording")
    third = open("a.spool", "rb").read()
    record("a.spool", ["-q"], ["true"])
    check(open("a.spool.old", "rb").read() == third, "an older .old is not replaced")


def default_name():
    r = tool("record", "-q", "--", "true")
    check(r.returncode == 0 and os.path.exists("stackpulse.spool"), "no stackpulse.spool")
    check(tool("info").returncode == 0, "info without a file does not read stackpulse.spool")


def mode_0600():
    old = os.umask(0)
    try:
        record("mode.spool", ["-q"], ["true"])
    finally:
        os.umask(old)
    mode = stat.S_IMODE(os.stat("mode.spool").st_mode)
    check(mode == 0o600, f"mode {mode:o}")


def failed_attach_leaves_nothing():
    record("keep.spool", ["-q"], ["true"])
    before = open("keep.spool", "rb").read()
    r = tool("record", "-o", "keep.spool", "-p", "4194301")
    check(r.returncode == 125, f"exit status {r.returncode}: {r.stderr}")
    check(open("keep.spool", "rb").read() == before, "a failed attach touched the old file")
    check(not os.path.exists("keep.spool.old"), "a failed attach moved the old file")
    tool("record", "-o", "new.spool", "-p", "4194301")
    check(not os.path.exists("new.spool"), "a failed attach left a file")


def signal_ends_cleanly(number):
    deep = target("deep")
    name = f"signal{int(number)}.spool"
    target_process = subprocess.Popen([deep, "30"], stdout=subprocess.DEVNULL)
    try:
        p = start_tool("record", "-o", name, "-p", target_process.pid)
        wait_for(lambda: os.path.exists(name) and os.path.getsize(name) > 0, 10)
        time.sleep(1)
        p.send_signal(number)
        status, _, err = finish(p, 15)
        check(status == 0, f"{number.name}: exit status {status}: {err}")
        samples, _ = numbers(err)
        check(samples >= 100, f"{number.name}: only {samples} samples")
        parsed = json.loads(tool("dump", name).stdout)
        check(parsed["outcome"] == "valid", f"{number.name}: the file is {parsed['outcome']}")
        check(len(parsed["document"]["samples"]) == samples, f"{number.name}: samples are missing")
        check(target_process.poll() is None and state_of(target_process.pid) in "RS",
              f"{number.name}: the target does not run on")
    finally:
        stop(target_process)


def signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal_ends_cleanly(number)


def signal_while_a_command_runs():
    deep = target("deep")
    for number in (signal.SIGINT, signal.SIGTERM):
        p = start_tool("record", "-o", "run.spool", "--", deep, "20")
        wait_for(lambda: os.path.exists("run.spool"), 10)
        time.sleep(0.7)
        start = time.monotonic()
        p.send_signal(number)
        status, _, err = finish(p, 30)
        check(time.monotonic() - start < 5, f"{number.name}: took {time.monotonic() - start:.1f} s")
        check(numbers(err)[0] >= 50, f"{number.name}: {err}")
        check(json.loads(tool("dump", "run.spool").stdout)["outcome"] == "valid", "the file is cut")
        left = run("pgrep", "-f", f"^{deep} 20").stdout.split()
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        os.remove("run.spool")


def both_formats():
    deep = target("deep")
    for number in (3, 4):
        record(f"v{number}.spool", ["--format", number, "-F", "499"], [deep, "0.5"])
        check(open(f"v{number}.spool", "rb").read(7) == f"SPULSE{number}".encode(), f"magic of format {number}")
        document = dump(f"v{number}.spool")
        check(document["header"]["format"] == number, f"format {number}")
        check(len(document["samples"]) > 50, f"format {number}: few samples")


def old_format_takes_any_path():
    """Version 3 holds UTF-8 paths only: other bytes are replaced, as convert does."""
    os.mkdir(b"lat\xff1")
    shutil.copy(target("deep"), b"lat\xff1/deep")
    record("old.spool", ["--format", "3", "-F", "499"], [os.fsdecode(b"lat\xff1/deep"), "0.3"])
    paths = [module["path"] for module in dump("old.spool")["modules"]]
    check(any("lat\ufffd1/deep" in str(path) for path in paths), f"no such module in {paths}")


def readers_agree():
    deep = target("deep")
    record("both.spool", ["-F", "499"], ["sh", "-c", f"{deep} 0.3; {deep} 0.3"])
    first = tool_ok("dump", "--reader", "snapshot", "both.spool")
    second = tool_ok("dump", "--reader", "replay", "both.spool")
    check(first == second, "snapshot and replay differ")
    counts = tool_ok("replay", "both.spool") + tool_ok("replay", "--frames", "both.spool")
    samples = len(json.loads(first)["document"]["samples"])
    check(counts.count(str(samples)) >= 2, f"replay counts other samples than {samples}:\n{counts}")
    check(str(samples) in tool_ok("resolve", "both.spool"), "resolve counts other samples")
    check(sum(c for _, c in folded("both.spool")) == samples, "folded loses samples")
    check(len(script("both.spool")) == samples, "script loses samples")


def closed_standard_descriptors():
    """A closed stderr is not the spool: messages would be written into it."""
    record("some.spool", ["-q", "-F", "499"], [target("deep"), "0.2"])
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        for name, command in (("r.spool", "record -F 499 -o r.spool -- true"),
                              ("c.spool", "convert -o c.spool some.spool")):
            r = run("sh", "-c", f'exec "$0" {command} {closed}', TOOL)
            check(r.returncode == 0, f"{command} {closed}: exit status {r.returncode}")
            check(dump(name), f"{command} {closed}: {name} cannot be read")
    r = run("sh", "-c", 'exec "$0" record -q -o c.spool -- ls -l /proc/self/fd/ 2>&-', TOOL)
    check(r.returncode == 0 and not any(line.endswith("-> /") for line in r.stdout.splitlines()),
          f"the command got a stand-in:\n{r.stdout}")


def output_is_not_the_input():
    record("keep.spool", ["-q", "-F", "499"], [target("deep"), "0.1"])
    before = open("keep.spool", "rb").read()
    os.link("keep.spool", "linked.spool")
    os.symlink("keep.spool", "symbolic.spool")
    for command in ("folded", "script", "flame", "convert", "import"):
        for name in ("keep.spool", "./keep.spool", "linked.spool", "symbolic.spool"):
            r = tool(command, "-o", name, "keep.spool")
            check(r.returncode == 1 and "is what is read" in r.stderr, f"{command} {name}: {r.stderr}")
    check(open("keep.spool", "rb").read() == before, "the input was written to")


def temporary_name_is_not_followed():
    """Output in a folder that others write to: the name until the end may lead elsewhere."""
    record("in.spool", ["-q", "-F", "499"], [target("deep"), "0.1"])
    with open("victim", "w") as f:
        f.write("precious")
    r = run("sh", "-c", 'ln -s victim out.part$$; exec "$0" folded -o out in.spool', TOOL)
    check(r.returncode == 0, r.stderr)
    check(open("victim").read() == "precious", "the file behind a planted link was written to")
    check(os.path.isfile("out") and not os.path.islink("out"), "no output")


main(old_one_is_kept, default_name, mode_0600, failed_attach_leaves_nothing, signals,
     signal_while_a_command_runs, both_formats,
     old_format_takes_any_path, readers_agree,
     closed_standard_descriptors, output_is_not_the_input, temporary_name_is_not_followed)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The exit status of `record -- CMD` is CMD's own; 125, 126, 127 and 2 are ours."""
import os
import signal

from flow import *


def own_status():
    for status in (0, 1, 3, 77, 255):
        record("s.spool", ["-q"], ["sh", "-c", f"exit {status}"], status=status)


def killed_by_a_signal():
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        record("s.spool", ["-q"], ["sh", "-c", f"kill -{int(number)} $$"], status=128 + number)


def command_not_found():
    r = tool("record", "-o", "none.spool", "--", "no-such-command-anywhere")
    check(r.returncode == 127, f"exit status {r.returncode}, not 127")
    check("no-such-command-anywhere" in r.stderr, f"the message does not name it: {r.stderr}")
    r = tool("record", "-o", "none.spool", "--", "/no/such/path")
    check(r.returncode == 127, f"exit status {r.returncode}, not 127")
    check(not os.path.exists("none.spool"), "a file is left behind")


def command_not_executable():
    with open("plain", "w") as f:
        f.write("text")
    os.chmod("plain", 0o644)
    for path in ("./plain", "/etc"):
        r = tool("record", "-o", "none.spool", "--", path)
        check(r.returncode == 126, f"{path}: exit status {r.returncode}, not 126: {r.stderr}")
    check(not os.path.exists("none.spool"), "a file is left behind")


def our_own_failure():
    r = tool("record", "-o", "/nonexistent/folder/x.spool", "--", "true")
    check(r.returncode == 125, f"exit status {r.returncode}, not 125")
    check("/nonexistent/folder/x.spool" in r.stderr, f"the message does not name the file: {r.stderr}")


def wrong_usage():
    for args in (["record"], ["record", "--no-such-option", "--", "true"], ["record", "-F", "0x", "--", "true"],
                 ["record", "-F"], ["record", "--"], ["record", "-p", "abc"], ["record", "-p", "-3"],
                 ["record", "-p", "1", "--", "true"], ["record", "--format", "5", "--", "true"],
                 ["record", "--mode", "jump", "-p", "1"], ["record", "--stack-size", "-1", "--", "true"],
                 ["record", "-F", "0", "--", "true"], ["record", "--stack-size", "0", "--", "true"],
                 ["record", "--stack-size", "65529", "--", "true"], ["record", "-d", "soon", "--", "true"], ["no-such-command"], ["report", "--bogus"],
                 ["report", "a", "b", "c"], ["script", "--by", "process"]):
        r = tool(*args)
        check(r.returncode == 2, f"{args}: exit status {r.returncode}, not 2: {r.stderr}")
        check(r.stderr.strip() and not r.stdout, f"{args}: the message belongs on stderr")
    check(not os.path.exists("stackpulse.spool"), "a file is left behind")


def help_is_no_failure():
    r = tool("--help")
    check(r.returncode == 0 and "record" in r.stdout, "--help")
    for command in ("record", "report", "folded", "script", "info", "dump", "replay", "resolve", "flame"):
        r = tool(command, "--help")
        check(r.returncode == 0 and command in r.stdout and len(r.stdout) > 200,
              f"{command} --help is not enough: {r.stdout}{r.stderr}")
    r = tool("--version")
    check(r.returncode == 0 and "stackpulse" in r.stdout.lower(), "--version")


def first_mistakes_are_answered():
    """What is missing or of another kind comes with the command that helps."""
    os.makedirs(os.path.join(WORK, "empty"), exist_ok=True)
    r = tool("report", cwd=os.path.join(WORK, "empty"))
    check(r.returncode == 1 and "stackpulse record" in r.stderr, f"no recording: {r.stderr}")
    record("none.spool", [], ["true"])
    check("hardly any CPU time" in tool_ok("report", "none.spool"), "an empty report says nothing")
    check("without -p" in tool_ok("report", "-p", "1", "none.spool"), "an empty choice says nothing")
    with open(os.path.join(WORK, "perf.data"), "wb") as file:
        file.write(b"PERFILE2" + bytes(200))
    r = tool("report", "perf.data")
    check(r.returncode == 1 and "stackpulse import perf.data" in r.stderr, f"perf.data: {r.stderr}")


def command_keeps_its_input_and_output():
    r = run(TOOL, "record", "-q", "-o", "cat.spool", "--", "cat", input="through\n")
    check(r.stdout == "through\n", f"the command's output is {r.stdout!r}")


def command_keeps_its_priority():
    """The recorder takes a higher one for itself, where it may and was given none."""
    r = run(TOOL, "record", "-q", "-o", "nice.spool", "--", "nice")
    check(r.stdout == f"{os.nice(0)}\n", f"the command's priority is {r.stdout!r}")
    for given, taken in ((0, -10), (3, 3)):
        recorder = subprocess.Popen(["nice", "-n", str(given), TOOL, "record", "-q", "-o", "nice.spool", "--",
                                     "sleep", "1"], cwd=WORK)
        own = lambda: int(open(f"/proc/{recorder.pid}/stat").read().rpartition(")")[2].split()[16])
        if os.geteuid() == 0 and os.nice(0) == 0:
            check(wait_for(lambda: own() == taken), f"nice is {own()}, not {taken}")
        recorder.wait()


main(own_status, killed_by_a_signal, command_not_found, command_not_executable, our_own_failure,
     wrong_usage, help_is_no_failure, first_mistakes_are_answered, command_keeps_its_input_and_output,
     command_keeps_its_priority)

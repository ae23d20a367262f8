# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Every option that --help names is understood and is in the command's man page, and the other way round."""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.environ["STACKPULSE_SOURCE"]
TOOL = os.path.join(os.environ["STACKPULSE_BUILD"], "tools/stackpulse/stackpulse")

# A value that each kind of argument takes.
VALUES = {"HZ": "99", "SECONDS": "1.5", "PID": str(os.getpid()), "PID[,PID...]": f"{os.getpid()},1",
          "BYTES": "4096", "BYTES,...": "10,20", "VERSION": "4", "N": "1", "READER": "replay", "WHEN": "always",
          "TID[,TID...]": "7,8"}

faults = []


def check(condition, text):
    if not condition:
        print(f"FAULT: {text}")
        faults.append(text)
    return bool(condition)


def tool(*args):
    return subprocess.run([TOOL, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def commands():
    return re.findall(r"^  ([a-z]+)  +\S", tool("--help").stdout.split("Usage:")[1], re.M)


def options(help_text):
    """[(letter or "", name, argument or "")]"""
    found = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?: {2}|$)", help_text, re.M)
    return [o for o in found if o[1] != "help"]


def value_of(argument):
    return VALUES.get(argument) or argument.split("|")[0]


def understood(command, *words):
    """Whether everything before --help was taken."""
    r = tool(command, *words, "--help")
    return check(r.returncode == 0 and r.stdout.startswith("Usage:"),
                 f"{command} {' '.join(words)}: exit status {r.returncode}: {r.stderr}")


def check_parsing(command, letter, name, argument):
    if not argument:
        understood(command, f"--{name}")
        if letter:
            understood(command, f"-{letter}")
        r = tool(command, f"--{name}=1")
        check(r.returncode == 2 and "no value" in r.stderr, f"{command} --{name}=1: {r.stderr}")
        return
    value = value_of(argument)
    understood(command, f"--{name}", value)
    understood(command, f"--{name}={value}")
    if letter:
        understood(command, f"-{letter}", value)
        understood(command, f"-{letter}{value}")
    r = tool(command, f"--{name}")
    check(r.returncode == 2 and argument in r.stderr, f"{command} --{name}: {r.returncode}: {r.stderr}")


def check_help(command):
    text = tool(command, "--help").stdout
    found = options(text)
    lines = re.findall(r"^  (?:-\w, |    )--[\w-]+", text, re.M)
    check(len(found) + 1 >= len(lines) and (found or len(lines) <= 1), f"{command}: not every option was seen")
    check(tool("help", command).stdout == text, f"help {command} is not {command} --help")
    check(all(len(line) <= 80 for line in text.split("\n")), f"{command} --help is wider than 80 columns")
    names = [o[1] for o in found]
    check(len(set(names)) == len(names), f"{command} --help names an option twice")
    for option in found:
        check_parsing(command, *option)
    r = tool(command, "--no-such-option-anywhere")
    check(r.returncode == 2, f"{command} --no-such-option-anywhere: exit status {r.returncode}")
    return found


def check_page(command, found):
    path = os.path.join(SOURCE, f"docs/man/stackpulse-{command}.1.scd")
    if not check(os.path.exists(path), f"{command} has no man page"):
        return
    page = open(path).read()
    documented = set(re.findall(r"^\*(?:-\w\*, \*)?--([\w-]+)\*", page.split("# OPTIONS")[-1], re.M))
    for letter, name, _ in found:
        check(name in documented, f"{command} --{name} is not in its man page")
        if letter:
            check(re.search(rf"^\*-{letter}\*, \*--{name}\*", page, re.M),
                  f"{command} -{letter} is not with --{name} in its man page")
    unknown = documented - {o[1] for o in found} - {"help"}
    check(not unknown, f"the man page of {command} has options that it does not know: {unknown}")


def main():
    names = commands()
    check(len(names) >= 10, f"commands: {names}")
    whole = open(os.path.join(SOURCE, "docs/man/stackpulse.1.scd")).read()
    listed = open(os.path.join(SOURCE, "docs/man/meson.build")).read()
    for command in names:
        check_page(command, check_help(command))
        check(f"*stackpulse-{command}*(1)" in whole, f"stackpulse(1) does not name stackpulse-{command}(1)")
        check(f"'-{command}'" in listed, f"the man page of {command} is not installed")
    pages = {os.path.basename(p)[len("stackpulse-"):-len(".1.scd")]
             for p in glob.glob(os.path.join(SOURCE, "docs/man/stackpulse-*.1.scd"))}
    check(pages == set(names), f"man pages of no command: {pages - set(names)}")
    sys.exit(1 if faults else 0)


main()

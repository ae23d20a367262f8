# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The README tells the truth: its C code is part of a compiled example, its commands and files exist."""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.environ["STACKPULSE_SOURCE"]
TOOL = os.path.join(os.environ["STACKPULSE_BUILD"], "tools/stackpulse/stackpulse")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.S | re.M)


def main():
    text = open(os.path.join(SOURCE, "README.md")).read()
    examples = [open(f).read() for f in glob.glob(os.path.join(SOURCE, "examples/*.c"))]
    makefile = open(os.path.join(SOURCE, "Makefile")).read()
    faults = []

    for block in blocks(text, "c"):
        if not any(block.strip() in example for example in examples):
            faults.append(f"this code is in no example:\n{block}")
    for target in re.findall(r"\bmake ([a-z-]+)", " ".join(blocks(text, "sh"))):
        if not re.search(rf"^{target}:", makefile, flags=re.M):
            faults.append(f"no target {target} in the Makefile")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link and not os.path.exists(os.path.join(SOURCE, link)):
            faults.append(f"no file {link}")
    commands = re.findall(r"\bstackpulse ([a-z]+)\b", "\n".join(blocks(text, "sh") + re.findall(r"`([^`\n]+)`", text)))
    if not commands:
        faults.append("no command of the tool is shown")
    for command in sorted(set(commands)):
        r = subprocess.run([TOOL, command, "--help"], capture_output=True, text=True)
        if r.returncode:
            faults.append(f"stackpulse {command}: {r.stderr}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())

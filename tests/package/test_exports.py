# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The shared library exports exactly the functions that the public headers declare."""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.environ["STACKPULSE_SOURCE"]
BUILD = os.environ["STACKPULSE_BUILD"]


def declared():
    names = set()
    for path in glob.glob(os.path.join(SOURCE, "include/stackpulse/*.h")):
        text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
        text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*\n", "\n", text)
        for statement in re.findall(r"SPULSE_API\b(.*?);", text, flags=re.S):
            names.add(re.match(r"[^(]*?(\w+)\s*\(", statement, flags=re.S).group(1))
    return names


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    names, versions = set(), set()
    for line in out.split("\n"):
        fields = line.split()
        if len(fields) == 3:
            name, _, version = fields[2].partition("@@")
            if fields[1] == "A":
                versions.add(name)
            else:
                names.add(name)
                versions.add(version)
    return names, versions


def main():
    library = os.path.join(BUILD, "src/libstackpulse.so")
    have, versions = exported(library)
    want = declared()
    faults = 0
    for kind, names in (("declared but not exported", want - have),
                        ("exported but in no public header", have - want),
                        ("does not start with spulse_", {n for n in want if not n.startswith("spulse_")})):
        for name in sorted(names):
            print(f"{kind}: {name}")
            faults += 1
    if not all(re.fullmatch(r"STACKPULSE_\d+", v) for v in versions):
        print(f"symbol versions: {versions}")
        faults += 1
    soname = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
    if not re.search(r"SONAME.*\[libstackpulse\.so\.\d+\]", soname):
        print("no soname with a number")
        faults += 1
    print(f"{len(want)} functions, {faults} faults")
    return 1 if faults else 0


sys.exit(main())

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Each public header compiles alone, as strict C17 and as C++17, without a warning."""
import glob
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["STACKPULSE_SOURCE"]
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
MODES = {
    "c": [CC, "-std=c17", *WARN, "-Wstrict-prototypes", "-x", "c"],
    "c++": [CXX, "-std=c++17", *WARN, "-x", "c++"],
}
# A program in C++ that makes options and frees handles without a cast.
CPP_USE = """
#include <stackpulse/stackpulse.h>
int main() {
    SPULSE_CLEANUP(snapshot) snapshot = nullptr;
    spulse_recorder_options options;
    spulse_recorder_options_init(&options, sizeof(options));
    options.frequency = 99;
    spulse_import_options import;
    spulse_import_options_init(&import, sizeof(import));
    spulse_launch_options launch;
    spulse_launch_options_init(&launch, sizeof(launch));
    spulse_symbolizer_options symbolizer;
    spulse_symbolizer_options_init(&symbolizer, sizeof(symbolizer));
    return snapshot != nullptr;
}
"""


def main():
    headers = sorted(glob.glob(os.path.join(SOURCE, "include/stackpulse/*.h")))
    failed = 0
    if len(headers) < 5:
        print("no headers found")
        return 1
    texts = {h: f"#include <stackpulse/{os.path.basename(h)}>\n" * 2 + "typedef int not_empty;\n"
             for h in headers}
    with tempfile.TemporaryDirectory() as work:
        for language, command in MODES.items():
            programs = dict(texts)
            if language == "c++":
                programs["use from C++"] = CPP_USE
            for name, text in programs.items():
                path = os.path.join(work, "one.src")
                with open(path, "w") as f:
                    f.write(text)
                r = subprocess.run([*command, "-I", os.path.join(SOURCE, "include"), path])
                if r.returncode:
                    print(f"{name}: not clean as {language}")
                    failed += 1
    print(f"{len(headers)} headers, {failed} faults")
    return 1 if failed else 0


sys.exit(main())

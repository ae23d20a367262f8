# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""What uses threads runs without a data race, built with ThreadSanitizer."""
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["STACKPULSE_SOURCE"]
PROGRAMS = ["tests/unit/symbolize/test_threads", "tests/unit/image/test_imagecache",
            "tests/unit/spool/test_spool_channel"]


def fails(*command, **env):
    r = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    if r.returncode:
        print(f"{' '.join(command)}: {r.returncode}\n{r.stdout[-3000:]}\n{r.stderr[-6000:]}")
    return r.returncode != 0


def main():
    with tempfile.TemporaryDirectory() as build:
        if (fails("meson", "setup", build, SOURCE, "--buildtype=debugoptimized", "-Dtests=true",
                  "-Db_sanitize=thread", "-Db_lundef=false") or fails("ninja", "-C", build, *PROGRAMS)):
            return 1
        vectors = os.path.join(SOURCE, "tests/data/vectors")
        return max([fails(os.path.join(build, program), SPOOL_VECTORS=vectors,
                          TSAN_OPTIONS="halt_on_error=0:exitcode=66") for program in PROGRAMS])


sys.exit(main())

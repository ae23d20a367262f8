# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The other ways to build: without the optional parts, without any names, and with clang."""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["STACKPULSE_SOURCE"]
OFF = ["-Dlzma=disabled", "-Dzstd=disabled", "-Ddisasm=disabled", "-Ddebuginfod=disabled"]
# Perf maps, kernel symbols and a backend of the caller's work without a backend of ours.
NAMES = ["classify", "classify_maps", "kernel", "native_batch", "native_images", "stackcache", "update"]
VARIANTS = {
    "no native backend": (["-Dnative=disabled"], {}, False, NAMES),
    "nothing optional": (["-Dnative=disabled", *OFF], {}, False, []),
    "native only": (OFF, {}, True, []),
    "clang": ([], {"CC": "clang"}, True, []),
    "debug folders": (["-Ddebug_dirs=/opt/debug:/srv/debug"], {}, True, ["debugfile"]),
}


def fails(name, command, env):
    r = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    if r.returncode:
        print(f"{name}: {' '.join(command)}\n{r.stdout[-3000:]}\n{r.stderr[-1000:]}")
    return r.returncode != 0


def main():
    faults = 0
    with tempfile.TemporaryDirectory() as work:
        for number, (name, (options, env, native, tests)) in enumerate(VARIANTS.items()):
            if env.get("CC") and not shutil.which(env["CC"]):
                print(f"{name}: no {env['CC']} here")
                continue
            build = os.path.join(work, str(number))
            if (fails(name, ["meson", "setup", build, SOURCE, "-Dwerror=true",
                             f"-Dtests={'true' if tests else 'false'}", *options], env)
                    or fails(name, ["ninja", "-C", build], env)):
                faults += 1
                continue
            linked = subprocess.run(["ldd", os.path.join(build, "src/libstackpulse.so")],
                                    capture_output=True, text=True).stdout
            if ("libdw" in linked) != native:
                print(f"{name}: linked with {linked}")
                faults += 1
            if fails(name, [os.path.join(build, "stackpulse"), "--version"], {}):
                faults += 1
            if tests and fails(name, ["meson", "test", "-C", build, "--no-rebuild", *tests], {}):
                faults += 1
            print(f"{name}: built", flush=True)
    return 1 if faults else 0


sys.exit(main())

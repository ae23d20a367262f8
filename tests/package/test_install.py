# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""`meson install` gives a library that a program finds by pkg-config, shared and static."""
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["STACKPULSE_SOURCE"]
BUILD = os.environ["STACKPULSE_BUILD"]
CC = os.environ.get("CC", "cc")
SANITIZE = os.environ.get("STACKPULSE_SANITIZE", "none")
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <stackpulse/stackpulse.h>

int main(void)
{
	struct spulse_snapshot *snapshot = NULL;
	struct spulse_error *error = NULL;
	int r = spulse_snapshot_open("/nonexistent.spool", &snapshot, &error);

	printf("%s: %s\n", spulse_version(), spulse_error_message(error));
	if (r != -SPULSE_ERROR_IO || snapshot || !strstr(spulse_error_message(error), "/nonexistent.spool"))
		return 1;
	spulse_error_free(error);
	return 0;
}
"""


def run(*command, env=None):
    r = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if r.returncode:
        print(" ".join(command), r.stdout, r.stderr, sep="\n")
        sys.exit(1)
    return r.stdout


def main():
    with tempfile.TemporaryDirectory() as work:
        run("meson", "install", "-C", BUILD, "--no-rebuild", env={"DESTDIR": work})
        found = run("find", work, "-name", "stackpulse.pc", "-o", "-name", "libstackpulse.so", "-o",
                    "-name", "stackpulse", "-path", "*/bin/*", "-o", "-name", "libstackpulse.a").split()
        files = {os.path.basename(f): f for f in found}
        for name in ("stackpulse.pc", "libstackpulse.so", "libstackpulse.a", "stackpulse"):
            if name not in files:
                print(f"not installed: {name} (found {found})")
                return 1
        env = {"PKG_CONFIG_PATH": os.path.dirname(files["stackpulse.pc"]),
               "PKG_CONFIG_SYSROOT_DIR": work,
               "LD_LIBRARY_PATH": os.path.dirname(files["libstackpulse.so"])}
        source, program = os.path.join(work, "use.c"), os.path.join(work, "use")
        with open(source, "w") as f:
            f.write(PROGRAM)
        version = run("pkg-config", "--modversion", "stackpulse", env=env).strip()
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]

        flags = run("pkg-config", "--cflags", "--libs", "stackpulse", env=env).split()
        run(CC, "-std=c17", "-Wall", "-Werror", source, "-o", program, *flags, *sanitize, env=env)
        if not run(program, env=env).startswith(version + ": "):
            print("another version runs than pkg-config names")
            return 1

        flags = run("pkg-config", "--static", "--cflags", "--libs", "stackpulse", env=env).split()
        flags = [files["libstackpulse.a"] if f == "-lstackpulse" else f for f in flags]
        run(CC, "-std=c17", source, "-o", program, *flags, *sanitize, env=env)
        run(program, env={"LD_LIBRARY_PATH": ""})

        # The tool finds the library that it was installed with by itself.
        tool = run(files["stackpulse"], "--version", env={"LD_LIBRARY_PATH": ""})
        if version not in tool:
            print(f"the tool says {tool!r}, pkg-config {version}")
            return 1
        print(f"stackpulse {version} installed and used, shared and static")
    return 0


sys.exit(main())

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Builds the peers with cargo, into a cache folder outside of the tree."""
import os

from flow import *

CACHE = os.environ.get("STACKPULSE_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stackpulse-tests")
PEER = os.path.join(SOURCE, "tests/interop/peer")


def build_peers(folder, *options):
    """Gives the paths of peer-read and peer-record."""
    cargo = find_program("cargo", os.path.expanduser("~/.cargo/bin/cargo"))
    if not cargo:
        skip("no cargo")
    version = run(cargo, "--version").stdout.split()
    if len(version) < 2 or tuple(map(int, version[1].split(".")[:2])) < (1, 88):
        skip(f"no cargo of version 1.88 or later (found {' '.join(version[:2])})")
    target_dir = os.path.join(CACHE, folder)
    os.makedirs(target_dir, exist_ok=True)
    r = run(cargo, "build", "--release", "--locked", "--manifest-path", os.path.join(PEER, "Cargo.toml"),
            "--target-dir", target_dir, *options, timeout=1500)
    if r.returncode:
        raise SystemExit(f"cargo build: {r.stderr[-3000:]}")
    return [os.path.join(target_dir, "release", name) for name in ("peer-read", "peer-record")]

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Our walk and elfutils' at the same stops of real programs: usage test_unwinders.py PROGRAM [all].

Instruction by instruction, so that prologues, epilogues and linkage tables are among the stops. With
"all" every compiler and optimization level, and programs of the system.
"""
from flow import *

STOPS = os.path.abspath(sys.argv.pop(1))
ALL = "all" in sys.argv
del sys.argv[1:]
LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"] if ALL else ["-O2"]
COUNT = "60" if ALL else "10"
BUILT = os.path.join(TARGETS, "stops")


def compare(name, *command, tables=True):
    """Where there are tables, the chains are the same, stop by stop."""
    done = run(STOPS, COUNT, *command, timeout=300)
    if done.returncode == 77:
        skip("no ptrace")
    said = done.stdout.strip()
    counts = re.search(r"(\d+) stops, \d+ frames: (\d+) same, (\d+) .* up, (\d+) .* frames, ", said)
    if not check(counts, f"{name}: {said[-300:]} {done.stderr[-300:]}"):
        return
    stops, same, _, _ = map(int, counts.groups())
    check(done.returncode == 0, f"{name}: {said}")
    check(stops >= 24, f"{name}: only {stops} stops")
    if tables:
        check(same == stops, f"{name}: {said}")
    print(f"{name}: {said.split(chr(10))[-1]}", flush=True)


def build(source, compiler, *flags):
    """Compiles one program; None where the compiler is not there."""
    if not find_program(compiler):
        return None
    os.makedirs(BUILT, exist_ok=True)
    name = "-".join([os.path.basename(source), compiler, *flags]).replace("/", "_")
    out = os.path.join(BUILT, name)
    if not os.path.exists(out):
        done = run(compiler, "-o", out, os.path.join(SOURCE, source), *flags)
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
    return out


def compilers(*names):
    return [name for name in names if find_program(name)]


def c_programs():
    for compiler in compilers("gcc", "clang"):
        for level in LEVELS:
            program = build("tests/targets/zipper.c", compiler, level, "-lz")
            compare(os.path.basename(program), program, "60")
    for compiler in compilers("gcc", "clang"):
        for level in LEVELS[2:] or LEVELS:
            program = build("tests/targets/deep.c", compiler, level)
            compare(os.path.basename(program), program, "60")


def cxx_programs():
    for compiler in compilers("g++", "clang++"):
        for level in LEVELS if ALL else []:
            program = build("bench/workloads/tmpl.cc", compiler, level, "-std=c++17")
            compare(os.path.basename(program), program, "1000000")


def signals():
    """Handlers at any instruction: the interrupted function and all its callers are there."""
    program = build("tests/targets/alarms.c", "gcc", "-O2")
    compare("signals", program)


def kinds_of_links():
    kinds = [["-static-pie"], ["-static"], ["-no-pie", "-fcf-protection=full", "-Wl,-z,lazy"]]
    for kind in kinds if ALL else kinds[2:]:
        program = build("tests/targets/zipper.c", "gcc", "-O2", *kind, "-lz")
        compare(os.path.basename(program), program, "60")


def rust_program():
    rustc = find_program("rustc", os.path.expanduser("~/.cargo/bin/rustc"))
    if ALL and rustc:
        program = target("crunch", "crunch.rs", ["-O"], compiler=rustc)
        compare("rust", program, "60")


def programs_of_the_system():
    if not ALL:
        return
    text = os.path.join(WORK, "text")
    with open(text, "w") as f:
        f.writelines(f"{n * 7919 % 1000003} line\n" for n in range(1000000))
    for name, *command in (("sort", "sort", "-R", text), ("xz", "xz", "-9", "-c", text),
                           ("gzip", "gzip", "-9", "-c", text),
                           ("openssl rsa", "openssl", "speed", "rsa2048"),
                           ("openssl sha", "openssl", "speed", "sha256")):
        if find_program(command[0]):
            compare(name, *command)
    python = find_program("/usr/bin/python3")
    if python:
        compare("python", python, "-c", "while 1: sorted(str(i) for i in range(9999))")


def programs_without_tables():
    """What is known by frame pointers: we may have more than libdwfl, never less or other."""
    node = find_program("node")
    if ALL and node:
        compare("node", node, "-e", "for(;;) JSON.stringify([1,2,3])", tables=False)


main(c_programs, cxx_programs, signals, kinds_of_links, rust_program, programs_of_the_system,
     programs_without_tables, perf=False)

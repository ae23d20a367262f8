# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The live example names what runs now, also of a program and a library that were replaced."""
import os
import re

from flow import *

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW);
	void (*work)(void) = lib ? (void (*)(void))dlsym(lib, "work") : 0;
	time_t end = time(0) + 12;

	if (!work)
		return 1;
	printf("READY\\n");
	fflush(stdout);
	while (time(0) < end)
		work();
}
"""
LIBRARY = """
static volatile long sum;
__attribute__((noinline)) static void %s(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}
void work(void) { %s(); sum++; }
"""


def build(name, source, *flags):
    path = os.path.join(WORK, name)
    with open(path + ".c", "w") as f:
        f.write(source)
    subprocess.run(["cc", "-O1", "-g", "-o", path, path + ".c", *flags], check=True)
    return path


def shares(text):
    """The last table that was shown."""
    table = text.strip().split("\n\n")[-1]
    return {m[2]: float(m[1]) for m in re.finditer(r"^ *([\d.]+) %  (.*)$", table, re.M)}


def replaced_library():
    program = build("program", PROGRAM, "-ldl")
    lib = build("lib.so", LIBRARY % ("right_hot", "right_hot"), "-shared", "-fPIC")
    other = build("other.so", LIBRARY % ("wrong_hot", "wrong_hot"), "-shared", "-fPIC")
    p = subprocess.Popen([program, lib], stdout=subprocess.PIPE, text=True)
    live = None
    try:
        check(p.stdout.readline() == "READY\n", "the program does not run")
        live = subprocess.Popen([os.path.join(BUILD, "examples/live_top"), str(p.pid), "4"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = live.stdout.readline()
        check(first.endswith(" samples\n"), f"nothing is shown: {first!r}")
        os.replace(other, lib)
        out, err = live.communicate(timeout=60)
    finally:
        stop(p)
        if live:
            stop(live)
    check(live.returncode == 0, f"exit status {live.returncode}: {err}")
    seen = shares(out)
    check(seen.get("right_hot", 0) > 80, f"right_hot is missing: {seen}")
    check("wrong_hot" not in seen, f"the new file's names are shown: {seen}")


def example_refuses():
    r = run(os.path.join(BUILD, "examples/live_top"), "4194301", "1")
    check(r.returncode == 1 and r.stderr, f"no such process: {r.returncode} {r.stderr!r}")


def backend_of_ones_own():
    lib = build("named.so", LIBRARY % ("secret_hot", "secret_hot"), "-shared", "-fPIC")
    program = build("program2", PROGRAM, "-ldl")
    spool, table = os.path.join(WORK, "own.spool"), os.path.join(WORK, "table")
    symbols = subprocess.run(["nm", "-S", lib], capture_output=True, text=True).stdout
    start, size = re.search(r"^(\w+) (\w+) \w secret_hot$", symbols, re.M).groups()
    end = int(start, 16) + int(size, 16)
    with open(table, "w") as f:
        f.write(f"named.so {start} {end:x} told_by_table /a/table.c 7\n")
    p = subprocess.Popen([program, lib], stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        r = run(TOOL, "record", "-o", spool, "-p", p.pid, "--duration", "1s", timeout=60)
    finally:
        stop(p)
    check(r.returncode == 0, f"record: {r.returncode} {r.stderr}")
    r = run(os.path.join(BUILD, "examples/native_backend"), spool, table)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    lines = r.stdout.split("\n")
    check(lines.count("told_by_table /a/table.c:7") > 20, "the table's name is missing")
    check("secret_hot" not in r.stdout, "the built-in name is shown")
    check(any(line.startswith("main ") for line in lines), "main is missing")


main(replaced_library, example_refuses, backend_of_ones_own)

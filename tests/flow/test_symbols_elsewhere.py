# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""A recording is named by the files of its own host, wherever they are, and by no others."""
import re

from flow import *

LIBRARY = """
static volatile long sum;
static inline __attribute__((always_inline)) void lib_inner(int i) { sum += i; sum ^= %d; }
__attribute__((noinline)) static void lib_hot(void)
{
	for (int i = 0; i < 1000000; i++)
		lib_inner(i);
}
void work(void) { lib_hot(); sum++; }
"""
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
void work(void);
/* A loop of its own in memory without a file: dec %rdi; jne -5; ret */
static const unsigned char loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
int main(void)
{
	time_t end = time(0) + 2;
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	printf("%d %p\\n", getpid(), code);
	fflush(stdout);
	while (time(0) < end) {
		work();
		((void (*)(long))code)(1000000);
	}
}
"""


def build(folder, number=3, *flags):
    """The program and its library, in a folder."""
    os.makedirs(folder, exist_ok=True)
    for name, text in ("lib.c", LIBRARY % number), ("program.c", PROGRAM):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    for command in (["cc", "-O2", "-g", "-shared", "-fPIC", "-Wl,--build-id", *flags, "-o", "lib.so", "lib.c"],
                    ["cc", "-O2", "-g", "-Wl,--build-id", "-o", "program", "program.c", "./lib.so"]):
        subprocess.run(command, cwd=folder, check=True)


def names(spool, *options):
    return {name for stack, _ in folded(spool, *options) for name in stack}


def report(spool, *options):
    return tool_ok("info", "--symbols", spool, *options)


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path).stdout)[1]


def prepare():
    """Records a program here, then takes its files away into a tree like another host's."""
    build(HOME)
    p = run(TOOL, "record", "-o", SPOOL, "-F", "499", "--", "./program", cwd=HOME)
    check(p.returncode == 0, f"record: {p.returncode} {p.stderr}")
    pid, code = p.stdout.split()
    os.makedirs(os.path.dirname(TREE + HOME))
    os.rename(HOME, TREE + HOME)
    return int(pid), int(code, 16)


def files_below_another_root():
    seen = names(SPOOL, "--no-perf-maps")
    check("lib_hot" not in seen and any(n.startswith("lib.so+0x") for n in seen), f"without files: {seen}")
    seen = names(SPOOL, "--sysroot", TREE)
    check({"main", "work", "lib_hot", "lib_inner"} <= seen, f"names are missing below the root: {seen}")
    check(TREE + HOME + "/lib.so" in report(SPOOL, "--sysroot", TREE), "the report does not name the file")
    text = tool_ok("script", SPOOL, "--sysroot", TREE)
    check(re.search(r"lib\.c:3\b", text), "lines are missing below the root")


def another_build_is_refused():
    """The same place, the same names, other code: better no name than a wrong one."""
    other = os.path.join(WORK, "other")
    build(other, 5)
    moved = os.path.join(WORK, "wrong-tree")
    shutil.copytree(TREE, moved)
    os.replace(os.path.join(other, "lib.so"), moved + HOME + "/lib.so")
    seen = names(SPOOL, "--sysroot", moved)
    check("main" in seen, f"the program's own names are gone too: {seen}")
    check("lib_hot" not in seen and "work" not in seen, f"another build's names are shown: {seen}")
    check(any(n.startswith("lib.so+0x") for n in seen), f"{seen}")
    have, want = build_id(moved + HOME + "/lib.so"), build_id(TREE + HOME + "/lib.so")
    text = report(SPOOL, "--sysroot", moved)
    check(have in text and want in text, f"the report does not say why: {text[:2000]}")


def a_file_that_was_replaced_here():
    """The same without another root: a new build stands at the recorded path."""
    build(HOME, 7)
    seen = names(SPOOL)
    check("lib_hot" not in seen and "work" not in seen, f"a new build's names are shown: {seen}")
    # The recorded build comes back, as another file: its build ID tells.
    shutil.copy(TREE + HOME + "/lib.so", HOME + "/lib.so")
    seen = names(SPOOL)
    check({"work", "lib_hot", "lib_inner"} <= seen, f"the recorded build is not known again: {seen}")
    shutil.rmtree(HOME)


def debug_files_elsewhere():
    """The tree has stripped files; debug files stand in a folder of their own."""
    stripped, debug = os.path.join(WORK, "stripped"), os.path.join(WORK, "debug")
    shutil.copytree(TREE, stripped)
    for name in "lib.so", "program":
        path, id_ = stripped + HOME + "/" + name, build_id(TREE + HOME + "/" + name)
        os.makedirs(os.path.join(debug, ".build-id", id_[:2]), exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", path,
                        os.path.join(debug, ".build-id", id_[:2], id_[2:] + ".debug")], check=True)
        subprocess.run(["strip", path], check=True)
    seen = names(SPOOL, "--sysroot", stripped)
    check("work" in seen and "lib_hot" not in seen, f"a stripped library shows exported names only: {seen}")
    seen = names(SPOOL, "--sysroot", stripped, "--debug-dir", f"/nowhere:{debug}")
    check({"main", "work", "lib_hot", "lib_inner"} <= seen, f"debug files are not used: {seen}")
    r = run(TOOL, "folded", SPOOL, "--sysroot", stripped, env={**os.environ, "STACKPULSE_DEBUG_DIRS": debug})
    check("lib_inner" in r.stdout, "STACKPULSE_DEBUG_DIRS is not used")
    check(".debug: used" in report(SPOOL, "--sysroot", stripped, "--debug-dir", debug), "the report says nothing")


def perf_maps_elsewhere():
    maps = os.path.join(WORK, "maps")
    os.makedirs(maps)
    with open(os.path.join(maps, f"perf-{PID}.map"), "w") as f:
        f.write(f"{CODE:x} 6 my jitted loop\n")
    check("my jitted loop" in names(SPOOL, "--perf-map-dir", maps), "the perf map is not used")
    check("my jitted loop" not in names(SPOOL), "a perf map out of nowhere")
    check("my jitted loop" not in names(SPOOL, "--perf-map-dir", maps, "--no-perf-maps"), "--no-perf-maps")


def kernel_symbols_elsewhere():
    """Addresses of the kernel are named by the file, never by this host's symbols then."""
    r = tool("record", "-o", "kernel.spool", "--kernel", "-F", "499", "--", "dd", "if=/dev/zero", "of=/dev/null",
             "bs=1M", "count=20000")
    if r.returncode or "[kernel]+0x" not in " ".join(names("kernel.spool", "--no-kernel-symbols")):
        print(f"no kernel frames here: {r.stderr[-300:]}")
        return
    with open("kallsyms", "w") as f:
        f.write("ffffffff80000000 T _text\nffffffffff700000 T the_end\n" if os.uname().machine == "x86_64" else
                "ffff800000000000 T _text\nfffffffffff00000 T the_end\n")
    seen = names("kernel.spool", "--kallsyms", "kallsyms")
    check("_text" in seen and not any(n.startswith("[kernel]+") for n in seen), f"{seen}")
    r = tool("folded", "kernel.spool", "--kallsyms", "nowhere")
    check(r.returncode == 1 and "nowhere" in r.stderr, f"a missing file: {r.returncode} {r.stderr}")


if os.uname().machine != "x86_64":
    skip("the program has machine code of x86-64")
HOME = os.path.join(WORK, "home")
TREE = os.path.join(WORK, "tree")
SPOOL = os.path.join(WORK, "recorded.spool")
PID, CODE = prepare() if perf_works() else (0, 0)
main(files_below_another_root, another_build_is_refused, a_file_that_was_replaced_here, debug_files_elsewhere,
     perf_maps_elsewhere, kernel_symbols_elsewhere)

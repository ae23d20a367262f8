# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Names and lines are found wherever compilers and packagers keep them."""
import os
import re

from flow import *

SOURCE_TEXT = """
volatile long sum;
static inline __attribute__((always_inline)) void inner(int i) { sum += i; sum ^= 3; }
__attribute__((noinline)) void hot(int n)
{
	for (int i = 0; i < n; i++)
		inner(i);
}
int main(int argc, char **argv) { hot(argc); return 0; }
"""


def sh(*args, cwd=WORK):
    return subprocess.run(args, cwd=cwd, capture_output=True, text=True, timeout=60)


def compile_program(name, *flags, cc="cc"):
    folder = os.path.join(WORK, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "code.c"), "w") as f:
        f.write(SOURCE_TEXT)
    for step in ([cc, "-O2", *flags, "-c", "-o", "code.o", "code.c"],
                 [cc, *flags, "-o", "program", "code.o"]):
        r = sh(*step, cwd=folder)
        if r.returncode:
            return None
    return os.path.join(folder, "program")


def function(path):
    """Addresses of hot(), while the file still has symbols."""
    m = re.search(r"^(\w+) (\w+) T hot$", sh("nm", "-S", path).stdout, re.M)
    return range(int(m[1], 16), int(m[1], 16) + int(m[2], 16))


def look_up(path, addresses, *options):
    r = run(TOOL, "symbolize", "-e", path, *options, *[hex(a) for a in addresses])
    check(r.returncode == 0, f"{path}: exit status {r.returncode}: {r.stderr}")
    return r.stdout


def has_everything(what, path, addresses, *options):
    text = look_up(path, addresses, *options)
    check("hot\n" in text and "main" not in text, f"{what}: hot is not named:\n{text[:300]}")
    check("inner\n" in text, f"{what}: the inlined call is missing")
    check(re.search(r"code\.c:3:", text), f"{what}: lines are missing")


def has_names_only(what, path, addresses, *options):
    text = look_up(path, addresses, *options)
    check("hot\n" in text, f"{what}: hot is not named:\n{text[:300]}")


def versions_and_compressions():
    for compiler in ("cc", "clang"):
        for version in (2, 3, 4, 5):
            path = compile_program(f"{compiler}-{version}", f"-gdwarf-{version}", cc=compiler)
            if path:
                has_everything(f"{compiler} DWARF {version}", path, function(path))
    path = compile_program("plain", "-g")
    addresses = function(path)
    for kind in ("zlib", "zlib-gnu", "zstd"):
        packed = f"{path}-{kind}"
        if not sh("objcopy", f"--compress-debug-sections={kind}", path, packed).returncode:
            sh("objcopy", "-N", "hot", packed)
            has_everything(kind, packed, addresses)


def split():
    for compiler, version in (("cc", 4), ("cc", 5), ("clang", 4), ("clang", 5)):
        name = f"split-{compiler}-{version}"
        path = compile_program(name, f"-gdwarf-{version}", "-gsplit-dwarf", cc=compiler)
        if not path:
            continue
        folder = os.path.dirname(path)
        addresses = function(path)
        sh("objcopy", "-N", "hot", path)
        has_everything(name, path, addresses)
        # Some packers cannot read every compiler's files; that is not ours to test.
        packed = not sh("llvm-dwp", "-o", "program.dwp", "code.dwo", cwd=folder).returncode \
            if (compiler, version) != ("cc", 5) else False
        os.unlink(os.path.join(folder, "code.dwo"))
        if packed:
            has_everything(f"{name} in a package", path, addresses)
            os.unlink(path + ".dwp")
        text = look_up(path, addresses)
        check("hot\n" not in text and "frame_dummy" not in text,
              f"{name}: a name out of nowhere: {text[:200]}")


def separate_files():
    path = compile_program("separate", "-g", "-Wl,--build-id")
    addresses = function(path)
    build_id = re.search(r"Build ID: (\w+)", sh("readelf", "-n", path).stdout)[1]
    root = os.path.join(WORK, "root")
    os.makedirs(os.path.join(root, ".build-id", build_id[:2]))
    debug = os.path.join(root, ".build-id", build_id[:2], build_id[2:] + ".debug")
    sh("objcopy", "--only-keep-debug", path, debug)
    stripped = path + "-stripped"
    sh("strip", "-o", stripped, path)
    check("hot\n" not in look_up(stripped, addresses), "a stripped file knows a name")
    has_everything("build ID", stripped, addresses, "--debug-dir", root)
    linked = path + "-linked"
    shutil.copy(debug, path + ".debug")
    sh("objcopy", f"--add-gnu-debuglink={path}.debug", stripped, linked)
    has_everything("debug link", linked, addresses)
    mini = path + "-mini"
    sh("strip", "--strip-debug", "-o", path + ".syms", path)
    if not sh("xz", "-k", path + ".syms").returncode:
        sh("objcopy", f"--add-section=.gnu_debugdata={path}.syms.xz", stripped, mini)
        has_names_only("mini debug information", mini, addresses)


SHARED_HEADER = """
struct long_structure_name { long first_member_name, second_member_name; };
enum long_enumeration_name { long_enumerator_one, long_enumerator_two };
static volatile long shared_sum;
static inline __attribute__((always_inline)) void inner(int i) { shared_sum += i; shared_sum ^= 3; }
static inline __attribute__((always_inline)) long other(struct long_structure_name *s)
{ return s->first_member_name + s->second_member_name; }
"""
SHARED_SOURCE = """
#include "shared.h"
__attribute__((noinline)) void hot(int n)
{
	for (int i = 0; i < n; i++)
		inner(i);
}
int main(int argc, char **argv)
{
	struct long_structure_name s = { argc, argc };

	hot(argc);
	return other(&s) == long_enumerator_two;
}
"""


def two_programs(folder, version):
    os.makedirs(folder)
    with open(os.path.join(folder, "shared.h"), "w") as f:
        f.write(SHARED_HEADER)
    for name in "one", "two":
        with open(os.path.join(folder, name + ".c"), "w") as f:
            f.write(SHARED_SOURCE)
        subprocess.run(["cc", "-O2", "-g", f"-gdwarf-{version}", "-Wl,--build-id", "-o", name, name + ".c"],
                       cwd=folder, check=True)
    return os.path.join(folder, "one")


def inner_is_named(path, addresses, *options):
    """Whether the inlined call has its name; its line must be there in any case."""
    text = look_up(path, addresses, *options)
    check(re.search(r"shared\.h:5:", text), f"{path}: the inlined call's line is missing")
    check("hot\n" in text and "other\n" not in text, f"{path}: hot is not named")
    return "inner\n" in text


def shared_files():
    """What dwz moved into a file of its own is found by its path, or by its build ID."""
    if not shutil.which("dwz"):
        return
    for version in (4, 5):
        for how, name in (([], "relative.alt"), (["-M", os.path.join(WORK, f"{version}/abs.alt")], "abs.alt")):
            folder = os.path.join(WORK, str(version), "named" if how else "plain")
            path = two_programs(folder, version)
            addresses = function(path)
            alt = os.path.join(WORK, f"{version}/abs.alt") if how else os.path.join(folder, name)
            r = sh("dwz", "-m", alt if how else name, *how, "one", "two", cwd=folder)
            if r.returncode or b".gnu_debugaltlink" not in open(path, "rb").read():
                print(f"dwz shares nothing of DWARF {version}: {r.stderr}")
                continue
            check(inner_is_named(path, addresses), f"DWARF {version}, {name}: inner has no name")
            id_ = re.search(r"Build ID: (\w+)", sh("readelf", "-n", alt).stdout)[1]
            root = os.path.join(folder, "root")
            os.makedirs(os.path.join(root, ".build-id", id_[:2]))
            os.rename(alt, os.path.join(root, ".build-id", id_[:2], id_[2:] + ".debug"))
            check(not inner_is_named(path, addresses), f"DWARF {version}: a name out of nowhere")
            check(inner_is_named(path, addresses, "--debug-dir", root),
                  f"DWARF {version}, by build ID: inner has no name")
            # Another file at the place: refused.
            shutil.copy(path, alt)
            check(not inner_is_named(path, addresses), f"DWARF {version}: another file's names")


main(versions_and_compressions, split, separate_files, shared_files, perf=False)

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codemap/codemap.h"

static void test_names_of_runtimes(void **state)
{
	static const char *const yes[] = {
		"python", "python3", "Python3.11", "python3.13t", "python3.12d", "python3.13td",
		"python3.12.1", "python3 (deleted)", "PYTHON", "libpython3.12.so",
		"libpython3.12.so.1.0", "libpython3.12d.dylib", "libpython3.so", "LibPython3.13t.so",
		"libpython3.12.so.1.0 (deleted)",
	};
	static const char *const no[] = {
		"", "pytho", "python312", "python3.", "python3..1", "python.3", "python3.12-config",
		"pythonista", "python 3", "libpython.so", "libpython3.12.a", "libpython3.12",
		"libpython3.12.sox", "libpython3.12.dylib.1", "xpython3", "python3t3",
		"_ctypes.cpython-312-x86_64-linux-gnu.so", "libpython312.so", "pythonw", "python3T",
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!codemap_is_python_basename(yes[i], strlen(yes[i])))
			fail_msg("no: %s", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (codemap_is_python_basename(no[i], strlen(no[i])))
			fail_msg("yes: %s", no[i]);
}

static void test_paths_that_maps_may_name(void **state)
{
	static const char *const yes[] = {
		"//anon", "[anon]", "[anon:v8]", "[anon:", "[heap]", "[stack]", "[stack:12]",
		"/dev/zero", "/dev/zero (deleted)", "/anon_hugepage", "/anon_hugepage (deleted)",
		"/SYSV00000000", "/SYSV00000000 (deleted)",
	};
	static const char *const no[] = {
		"", "//anonx", "[anon]x", "[anonx", "[heap]x", "[vdso]", "[uprobes]", "[vsyscall]",
		"/memfd:jit", "/memfd:doublemapper (deleted)", "/usr/bin/python3", "/tmp/dev/zero",
		"/dev/zer", "anon",
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!codemap_is_perfmap_path(yes[i], strlen(yes[i])))
			fail_msg("no: %s", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (codemap_is_perfmap_path(no[i], strlen(no[i])))
			fail_msg("yes: %s", no[i]);
}

#define BLOCK(text) (text), sizeof(text) - 1

static void test_switches(void **state)
{
	(void)state;
	assert_true(codemap_python_perf_enabled(BLOCK("A=1\0PYTHONPERFSUPPORT=1\0B=2\0"), "", 0));
	assert_true(codemap_python_perf_enabled(BLOCK("PYTHONPERFSUPPORT=1"), NULL, 0));
	assert_false(codemap_python_perf_enabled(BLOCK("PYTHONPERFSUPPORT=10\0"), "", 0));
	assert_false(codemap_python_perf_enabled(BLOCK("XPYTHONPERFSUPPORT=1\0"), "", 0));
	assert_false(codemap_python_perf_enabled(NULL, 0, NULL, 0));
	assert_true(codemap_python_perf_enabled("", 0, BLOCK("python\0-Xperf\0x.py\0")));
	assert_true(codemap_python_perf_enabled("", 0, BLOCK("python\0-X\0perf\0")));
	assert_true(codemap_python_perf_enabled("", 0, BLOCK("python\0-X\0perf,x\0")));
	assert_true(codemap_python_perf_enabled("", 0, BLOCK("python\0-X\0dev\0-X\0perf")));
	assert_false(codemap_python_perf_enabled("", 0, BLOCK("python\0-X\0perf_jit\0")));
	assert_false(codemap_python_perf_enabled("", 0, BLOCK("python\0-X\0dev\0perf\0")));
	assert_false(codemap_python_perf_enabled("", 0, BLOCK("python\0perf\0-X\0")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_runtimes),
		cmocka_unit_test(test_paths_that_maps_may_name),
		cmocka_unit_test(test_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

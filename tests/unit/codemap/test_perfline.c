/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codemap/perfline.h"

static const struct {
	const char *line;
	uint64_t start, end;
	const char *name;
} good[] = {
	{"1000 10 name", 0x1000, 0x1010, "name"},
	{"1000 10 name with blanks", 0x1000, 0x1010, "name with blanks"},
	{"1000\t10\tname", 0x1000, 0x1010, "name"},
	{"  1000  10 name", 0x1000, 0x1010, "name"},
	{"1000 10   name ", 0x1000, 0x1010, "  name "},
	{"1000 10  ", 0x1000, 0x1010, " "},
	{"0x1000 0x10 n", 0x1000, 0x1010, "n"},
	{"0x0x1000 10 n", 0x1000, 0x1010, "n"},
	{"+1000 +10 n", 0x1000, 0x1010, "n"},
	{"aBcD F n", 0xabcd, 0xabdc, "n"},
	{"0000000000000000001000 10 n", 0x1000, 0x1010, "n"},
	{"fffffffffffffff0 f n", 0xfffffffffffffff0, UINT64_MAX, "n"},
	{"1000 10 \xff\xfe", 0x1000, 0x1010, "\xff\xfe"},
};

static void test_good_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct perfmap_text name;
		uint64_t start, end;

		if (!perfline_parse(good[i].line, strlen(good[i].line), &start, &end, &name))
			fail_msg("refused: %s", good[i].line);
		assert_int_equal(start, good[i].start);
		assert_int_equal(end, good[i].end);
		assert_int_equal(name.len, strlen(good[i].name));
		assert_memory_equal(name.bytes, good[i].name, name.len);
	}
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"", " ", "1000", "1000 ", "1000 10", "1000 10 ", "x 10 n", "1000 y n", "1000 0 n",
		"0X1000 10 n", "1000 0X10 n", "-1000 10 n", "0x 10 n", "+ 10 n", "+0x1000 10 n",
		"++1000 10 n", "1000\xc2\xa0" "10\xc2\xa0n", "1000\v10 n",
		"10000000000000000 10 n", "fffffffffffffff0 10 n", "1000 ffffffffffffffff n",
		"1000,10 n", "10 00 n",
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct perfmap_text name;
		uint64_t start, end;

		if (perfline_parse(bad[i], strlen(bad[i]), &start, &end, &name))
			fail_msg("accepted: %s", bad[i]);
	}
}

static const struct {
	const char *name, *function, *file;
} python[] = {
	{"py::work:/a/b.py", "work", "/a/b.py"},
	{"py::work:/a/b.py:12", "work", "/a/b.py"},
	{"py::<module>:<frozen x>", "<module>", "<frozen x>"},
	{"py::f", "f", "~"},
	{"py::f g:h", "f", "g:h"},
	{"py::f g:h:12", "f", "g:h"},
	{"py:: f:g ", "f", "g"},
	{"py::f : g", "f", ": g"},
	{"py::f:", "f", "~"},
	{"py::f: ", "f", "~"},
	{"py::f:file:", "f", "file:"},
	{"py::f::123", "f", ":123"},
	{"py::f:version:123", "f", "version"},
	{"py::f:version", "f", "version"},
	{"py::f:1:2:3", "f", "1:2"},
	{"py::f:12", "f", "12"},
	{"py::a.<locals>.b:/x y/z.py", "a.<locals>.b", "/x y/z.py"},
	{"py::", NULL, NULL},
	{"py::  ", NULL, NULL},
	{"py:::file", NULL, NULL},
	{"py:f", NULL, NULL},
	{"Py::f", NULL, NULL},
	{"jit py::f", NULL, NULL},
};

static void test_python_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(python); i++) {
		struct perfmap_text name = {python[i].name, strlen(python[i].name)};
		struct perfmap_text function, file;
		bool is = perfline_python(&name, &function, &file);

		if (is != (python[i].function != NULL))
			fail_msg("%s: %d", python[i].name, is);
		if (!is)
			continue;
		if (function.len != strlen(python[i].function) ||
		    memcmp(function.bytes, python[i].function, function.len) != 0 ||
		    file.len != strlen(python[i].file) ||
		    memcmp(file.bytes, python[i].file, file.len) != 0)
			fail_msg("%s: %.*s, %.*s", python[i].name, (int)function.len,
				 function.bytes, (int)file.len, file.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_python_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

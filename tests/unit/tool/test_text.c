/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "text.h"

static void expect_escaped(const char *text, enum text_mode mode, const char *wanted)
{
	char buf[128];
	size_t len = text_escape(buf, sizeof(buf), text, strlen(text), mode);

	assert_string_equal(buf, wanted);
	assert_int_equal(len, strlen(wanted));
}

static void names_in_files(void **state)
{
	(void)state;
	expect_escaped("std::vector<int>", TEXT_NAME, "std::vector<int>");
	expect_escaped("a;b\\c\nd\re", TEXT_NAME, "a\\x3bb\\x5cc\\x0ad\\x0de");
	/* Everything else stays, even what is no text. */
	expect_escaped("\x01\x1b[31m\xff\xc3\xa4", TEXT_NAME, "\x01\x1b[31m\xff\xc3\xa4");
}

static void names_on_terminals(void **state)
{
	(void)state;
	expect_escaped("a;b", TEXT_NAME_TERMINAL, "a\\x3bb");
	expect_escaped("\x1b]0;x\x07", TEXT_NAME_TERMINAL, "\\x1b]0\\x3bx\\x07");
	expect_escaped("\xff\xfe", TEXT_NAME_TERMINAL, "\\xff\\xfe");
	expect_escaped("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", TEXT_NAME_TERMINAL,
		       "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	/* A control sequence introducer and an override of the reading direction in UTF-8. */
	expect_escaped("\xc2\x9b\xe2\x80\xae", TEXT_NAME_TERMINAL, "\\xc2\\x9b\\xe2\\x80\\xae");
	/* Cut off in the middle of a character. */
	expect_escaped("x\xe2\x82", TEXT_NAME_TERMINAL, "x\\xe2\\x82");
}

static void messages(void **state)
{
	(void)state;
	expect_escaped("a;b\\c\nd", TEXT_LINE, "a;b\\c\\x0ad");
	expect_escaped("a;b\\c\x1b", TEXT_TERMINAL, "a;b\\c\\x1b");
}

static void cut_to_fit(void **state)
{
	char buf[6];

	(void)state;
	assert_int_equal(text_escape(buf, sizeof(buf), "abcdefgh", 8, TEXT_NAME), 5);
	assert_string_equal(buf, "abcde");
	/* Neither half an escape nor half a character. */
	assert_int_equal(text_escape(buf, sizeof(buf), "ab;c", 4, TEXT_NAME), 2);
	assert_int_equal(text_escape(buf, sizeof(buf), "abc\xe2\x82\xac", 6, TEXT_NAME), 3);
	assert_int_equal(text_escape(buf, 0, "a", 1, TEXT_NAME), 0);
}

static void utf8(void **state)
{
	static const char *const bad[] = {
		"\x80",		"\xc0\xaf",	    "\xc1\xbf",		"\xe0\x80\xaf",
		"\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xc3",		"\xe2\x82"};
	uint32_t code_point;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(text_is_utf8(bad[i], strlen(bad[i])));
	assert_true(text_is_utf8("", 0));
	assert_true(text_is_utf8("a\0b", 3));
	assert_int_equal(text_utf8_length("\xf4\x8f\xbf\xbf", 4, &code_point), 4);
	assert_int_equal(code_point, 0x10ffff);
	assert_int_equal(text_utf8_length("\xed\x9f\xbf", 3, &code_point), 3);
	assert_int_equal(code_point, 0xd7ff);
}

static void numbers(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(text_count(buf, 0), "0");
	assert_string_equal(text_count(buf, 999), "999");
	assert_string_equal(text_count(buf, 1000), "1,000");
	assert_string_equal(text_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(text_bytes(buf, 1023), "1023 B");
	assert_string_equal(text_bytes(buf, 1536), "1.5 KiB");
	assert_string_equal(text_bytes(buf, UINT64_MAX), "16.0 EiB");
	assert_string_equal(text_duration(buf, 1500), "2 us");
	assert_string_equal(text_duration(buf, 20000000), "20 ms");
	assert_string_equal(text_duration(buf, 1500000000), "1.5 s");
	assert_string_equal(text_duration(buf, 63000000000), "1 min 03 s");
	assert_string_equal(text_duration(buf, 7500000000000), "2 h 05 min");
}

static void closest_name(void **state)
{
	static const char *const names[] = {"record", "report", "replay", "resolve", "flame"};

	(void)state;
	assert_string_equal(text_closest("recrod", names, 5), "record");
	assert_string_equal(text_closest("reprot", names, 5), "report");
	assert_string_equal(text_closest("rec", names, 5), "record");
	assert_string_equal(text_closest("flamegraph", names, 1) ? "x" : "none", "none");
	assert_null(text_closest("zzzzzz", names, 5));
	assert_null(text_closest("a-very-long-word-that-no-table-has-at-all", names, 5));
	assert_string_equal(text_basename("/a/b"), "b");
	assert_string_equal(text_basename("b"), "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_in_files), cmocka_unit_test(names_on_terminals),
		cmocka_unit_test(messages),	  cmocka_unit_test(cut_to_fit),
		cmocka_unit_test(utf8),		  cmocka_unit_test(numbers),
		cmocka_unit_test(closest_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

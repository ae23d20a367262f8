/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

#include "failalloc.h"

static void test_parts_join(void **state)
{
	struct strbuf sb = { 0 };

	(void)state;
	strbuf_puts(&sb, "one");
	strbuf_putc(&sb, ' ');
	strbuf_add(&sb, "two!", 3);
	strbuf_printf(&sb, " %d %s", 3, "four");
	assert_string_equal(sb.data, "one two 3 four");
	assert_int_equal(sb.len, 14);
	assert_false(sb.failed);
	strbuf_release(&sb);
	assert_null(sb.data);
}

static void test_long_output_grows(void **state)
{
	struct strbuf sb = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		strbuf_printf(&sb, "%0100d", i);
	assert_int_equal(sb.len, 100000);
	assert_int_equal(strlen(sb.data), 100000);
	assert_memory_equal(sb.data + 99997, "999", 4);
	strbuf_release(&sb);
}

static void test_bytes_with_nul(void **state)
{
	struct strbuf sb = { 0 };

	(void)state;
	strbuf_add(&sb, "a\0b", 3);
	strbuf_add(&sb, NULL, 0);
	assert_int_equal(sb.len, 3);
	assert_memory_equal(sb.data, "a\0b", 4);
	strbuf_release(&sb);
}

static void test_reset_keeps_memory(void **state)
{
	struct strbuf sb = { 0 };
	size_t cap;

	(void)state;
	strbuf_printf(&sb, "%0500d", 1);
	cap = sb.cap;
	strbuf_reset(&sb);
	assert_int_equal(sb.len, 0);
	assert_string_equal(sb.data, "");
	assert_int_equal(sb.cap, cap);
	strbuf_release(&sb);
}

static void test_take_is_never_null_for_empty(void **state)
{
	struct strbuf sb = { 0 };
	char *s = strbuf_take(&sb);

	(void)state;
	assert_non_null(s);
	assert_string_equal(s, "");
	assert_null(sb.data);
	free(s);
}

static void test_failure_sticks(void **state)
{
	struct strbuf sb = { 0 };

	(void)state;
	strbuf_puts(&sb, "kept");
	failalloc_set(1, false);
	strbuf_printf(&sb, "%0100d", 1);
	failalloc_set(0, false);
	assert_true(sb.failed);
	strbuf_puts(&sb, "ignored");
	assert_string_equal(sb.data, "kept");
	assert_null(strbuf_take(&sb));
	assert_null(sb.data);
	strbuf_add(&sb, "", SIZE_MAX);
	assert_true(sb.failed);
	strbuf_release(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_join),
		cmocka_unit_test(test_long_output_grows),
		cmocka_unit_test(test_bytes_with_nul),
		cmocka_unit_test(test_reset_keeps_memory),
		cmocka_unit_test(test_take_is_never_null_for_empty),
		cmocka_unit_test(test_failure_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

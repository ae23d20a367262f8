/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "proc/procfs.h"

static struct proc_cpus cpus;

static int teardown(void **state)
{
	(void)state;
	vec_free(&cpus.cpus);
	return 0;
}

static void expect(const char *text, size_t n, const uint32_t *numbers)
{
	assert_true(proc_parse_cpu_list(text, &cpus));
	assert_int_equal(cpus.cpus.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cpus.cpus.data[i], numbers[i]);
}

#define EXPECT(text, ...) \
	expect(text, ARRAY_LEN(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ })

static void test_lists_and_ranges(void **state)
{
	(void)state;
	EXPECT("0\n", 0);
	EXPECT("0-3\n", 0, 1, 2, 3);
	EXPECT("0,2-3,8\n", 0, 2, 3, 8);
	EXPECT("5-5,1", 1, 5);
	EXPECT("3,1,2,1-2", 1, 2, 3);
}

static void test_bad_lists_are_refused(void **state)
{
	static const char *const bad[] = {
		"", "\n", "x", "1-", "-1", "3-1", "1,", ",1", "1 2", "0-99999999999", "70000",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(proc_parse_cpu_list(bad[i], &cpus));
}

static void test_repeated_ranges_stay_bounded(void **state)
{
	struct strbuf text = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		strbuf_puts(&text, "0-60000,");
	strbuf_puts(&text, "1");
	assert_false(proc_parse_cpu_list(text.data, &cpus));
	assert_true(cpus.cpus.len <= 65536);
	strbuf_release(&text);
}

static void test_stat_labels(void **state)
{
	(void)state;
	assert_true(proc_parse_stat_cpus("cpu  1 2 3\ncpu7 1 2\ncpu2 3 4\ncpu2 1 1\nintr 5 cpu9 \n",
					 &cpus));
	assert_int_equal(cpus.cpus.len, 2);
	assert_int_equal(cpus.cpus.data[0], 2);
	assert_int_equal(cpus.cpus.data[1], 7);
	assert_false(proc_parse_stat_cpus("cpu  1 2 3\nintr 5\n", &cpus));
	assert_false(proc_parse_stat_cpus("", &cpus));
}

static void test_this_machine(void **state)
{
	(void)state;
	assert_int_equal(proc_online_cpus(&cpus, NULL), 0);
	assert_int_equal(cpus.cpus.len, sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_teardown(test, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_lists_and_ranges),
		CASE(test_bad_lists_are_refused),
		CASE(test_repeated_ranges_stay_bounded),
		CASE(test_stat_labels),
		CASE(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

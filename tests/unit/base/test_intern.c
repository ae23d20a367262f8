/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/intern.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "failalloc.h"

static void test_equal_strings_share_an_id(void **state)
{
	struct interner in = { 0 };
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 5000; i++) {
			int len = snprintf(name, sizeof(name), "name-%u", i);

			assert_int_equal(intern(&in, name, len), i);
		}
	assert_int_equal(in.strings.len, 5000);
	assert_string_equal(in.strings.data[4321].bytes, "name-4321");
	interner_release(&in);
	assert_null(in.slots);
}

static void test_strings_are_bytes(void **state)
{
	struct interner in = { 0 };

	(void)state;
	assert_int_equal(intern(&in, "", 0), 0);
	assert_int_equal(intern(&in, "a\0b", 3), 1);
	assert_int_equal(intern(&in, "a\0c", 3), 2);
	assert_int_equal(intern(&in, "a", 1), 3);
	assert_int_equal(intern(&in, "a\0b", 3), 1);
	assert_int_equal(intern(&in, "", 0), 0);
	assert_memory_equal(in.strings.data[1].bytes, "a\0b", 4);
	interner_release(&in);
}

static void test_copies_never_move(void **state)
{
	struct interner in = { 0 };
	const char *first = intern_string(&in, "first", 5);
	char name[32];

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_non_null(intern_string(&in, name, snprintf(name, sizeof(name), "%d", i)));
	assert_ptr_equal(intern_string(&in, "first", 5), first);
	assert_string_equal(first, "first");
	interner_release(&in);
}

/* Whatever allocation fails, the interner stays usable and gives each string one id. */
static void test_every_failed_allocation(void **state)
{
	(void)state;
	for (long nth = 1;; nth++) {
		struct interner in = { 0 };
		char name[32];
		bool hit;

		failalloc_set(nth, false);
		for (int i = 0; i < 300; i++)
			intern(&in, name, snprintf(name, sizeof(name), "s%d", i));
		hit = failalloc_hit();
		failalloc_set(0, false);
		for (int i = 0; i < 300; i++) {
			int len = snprintf(name, sizeof(name), "s%d", i);
			uint32_t id = intern(&in, name, len);

			assert_true(id < 300);
			assert_string_equal(in.strings.data[id].bytes, name);
		}
		assert_int_equal(in.strings.len, 300);
		interner_release(&in);
		if (!hit)
			break;
		assert_true(nth < 100);
	}
}

enum { NAMES = 40000, PLACES = 1 << 16 };

static double seconds_to_intern(char (*names)[8])
{
	struct interner in = { 0 };
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_int_equal(intern(&in, names[i], 8), i);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	interner_release(&in);
	return (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Strings that someone chose so that a table known to him has them all in one place. */
static void test_chosen_strings_cost_no_more(void **state)
{
	static char any[NAMES][8], chosen[NAMES][8];
	double fair, hostile;
	uint64_t number = 0;

	(void)state;
	for (uint64_t i = 0; i < NAMES; i++)
		memcpy(any[i], &i, sizeof(i));
	for (size_t i = 0; i < NAMES; i++) {
		do {
			number++;
		} while ((hash_bytes(&number, 8, 0) & (PLACES - 1)) >= PLACES / 256);
		memcpy(chosen[i], &number, 8);
	}
	fair = seconds_to_intern(any);
	hostile = seconds_to_intern(chosen);
	print_message("%.4f s, chosen ones %.4f s\n", fair, hostile);
	assert_true(hostile < 40 * fair + 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_strings_share_an_id),
		cmocka_unit_test(test_strings_are_bytes),
		cmocka_unit_test(test_copies_never_move),
		cmocka_unit_test(test_every_failed_allocation),
		cmocka_unit_test(test_chosen_strings_cost_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

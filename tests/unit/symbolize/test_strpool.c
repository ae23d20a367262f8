/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "symbolize/strpool.h"

static void equal_strings_are_one(void **state)
{
	struct strpool pool = { 0 };
	const char *a = strpool_get(&pool, "name", 4), *b = strpool_get(&pool, "names", 4);

	(void)state;
	assert_ptr_equal(a, b);
	assert_int_equal(strpool_len(a), 4);
	assert_string_equal(a, "name");
	assert_ptr_not_equal(strpool_get(&pool, "", 0), a);
	strpool_release(&pool);
}

static void a_string_goes_with_its_last_reference(void **state)
{
	struct strpool pool = { 0 };
	const char *a = strpool_get(&pool, "x", 1);

	(void)state;
	assert_ptr_equal(strpool_ref(a), a);
	strpool_put(&pool, a);
	assert_int_equal(pool.count, 1);
	strpool_put(&pool, a);
	assert_int_equal(pool.count, 0);
	strpool_put(&pool, NULL);
	assert_null(strpool_ref(NULL));
	strpool_release(&pool);
}

/* Taking out of a chain must leave its other members findable. */
static void removal_keeps_all_others(void **state)
{
	enum { N = 5000 };
	static const char *strings[N];
	struct strpool pool = { 0 };
	char text[16];

	(void)state;
	for (int i = 0; i < N; i++)
		strings[i] = strpool_get(&pool, text, (size_t)sprintf(text, "%d", i));
	for (int i = 0; i < N; i += 3)
		strpool_put(&pool, strings[i]);
	for (int i = 0; i < N; i++) {
		const char *again = strpool_get(&pool, text, (size_t)sprintf(text, "%d", i));

		if (i % 3)
			assert_ptr_equal(again, strings[i]);
		assert_string_equal(again, text);
	}
	assert_int_equal(pool.count, N);
	strpool_release(&pool);
}

enum { NAMES = 40000, PLACES = 1 << 16 };

static double seconds_to_get(char (*names)[8])
{
	struct strpool pool = { 0 };
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < NAMES; i++)
		assert_non_null(strpool_get(&pool, names[i], 8));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(pool.count, NAMES);
	strpool_release(&pool);
	return (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Strings that someone chose so that a pool known to him has them all in one place. */
static void chosen_strings_cost_no_more(void **state)
{
	static char any[NAMES][8], chosen[NAMES][8];
	double fair, hostile;
	uint64_t number = 0;

	(void)state;
	for (uint64_t i = 0; i < NAMES; i++) {
		memcpy(any[i], &i, sizeof(i));
		do {
			number++;
		} while ((hash_bytes(&number, 8, 0) & (PLACES - 1)) >= PLACES / 256);
		memcpy(chosen[i], &number, 8);
	}
	fair = seconds_to_get(any);
	hostile = seconds_to_get(chosen);
	print_message("%.4f s, chosen ones %.4f s\n", fair, hostile);
	assert_true(hostile < 40 * fair + 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_strings_are_one),
		cmocka_unit_test(a_string_goes_with_its_last_reference),
		cmocka_unit_test(removal_keeps_all_others),
		cmocka_unit_test(chosen_strings_cost_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

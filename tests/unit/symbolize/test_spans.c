/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/util.h"
#include "symbolize/native/spans.h"

static void inner_ranges_hide_outer_ones(void **state)
{
	struct span_range ranges[] = {
		{ 10, 100, 0, 0 }, { 20, 60, 1, 1 }, { 30, 40, 2, 2 }, { 60, 70, 1, 3 },
		{ 200, 210, 0, 4 },
	};
	struct spans spans;

	(void)state;
	assert_true(spans_build(&spans, ranges, ARRAY_LEN(ranges)));
	assert_int_equal(spans_find(&spans, 9), SPAN_NONE);
	assert_int_equal(spans_find(&spans, 10), 0);
	assert_int_equal(spans_find(&spans, 20), 1);
	assert_int_equal(spans_find(&spans, 35), 2);
	assert_int_equal(spans_find(&spans, 40), 1);
	assert_int_equal(spans_find(&spans, 60), 3);
	assert_int_equal(spans_find(&spans, 70), 0);
	assert_int_equal(spans_find(&spans, 99), 0);
	assert_int_equal(spans_find(&spans, 100), SPAN_NONE);
	assert_int_equal(spans_find(&spans, 205), 4);
	assert_int_equal(spans_find(&spans, UINT64_MAX), SPAN_NONE);
	spans_release(&spans);
}

static void nothing_is_found_in_nothing(void **state)
{
	struct span_range empty = { 5, 5, 0, 0 };
	struct spans spans;

	(void)state;
	assert_true(spans_build(&spans, NULL, 0));
	assert_int_equal(spans_find(&spans, 0), SPAN_NONE);
	assert_true(spans_build(&spans, &empty, 1));
	assert_int_equal(spans_find(&spans, 5), SPAN_NONE);
	spans_release(&spans);
}

/* Well nested or not: the answer always covers the address, and is none only where none does. */
static void any_input_gives_a_covering_range_or_none(void **state)
{
	enum { N = 40, SPACE = 120, ROUNDS = 300 };
	struct span_range ranges[N], kept[N];
	struct spans spans;

	(void)state;
	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < N; i++) {
			ranges[i].low = (uint64_t)(rand() % SPACE);
			ranges[i].high = ranges[i].low + (uint64_t)(rand() % 20);
			ranges[i].depth = (uint32_t)(rand() % 4);
			ranges[i].id = i;
			kept[i] = ranges[i];
		}
		assert_true(spans_build(&spans, ranges, N));
		for (uint64_t at = 0; at < SPACE + 20; at++) {
			uint32_t id = spans_find(&spans, at);
			bool covered = false;

			for (size_t i = 0; i < N; i++)
				covered |= kept[i].low <= at && at < kept[i].high;
			assert_int_equal(id != SPAN_NONE, covered);
			if (id != SPAN_NONE)
				assert_true(kept[id].low <= at && at < kept[id].high);
		}
		spans_release(&spans);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_ranges_hide_outer_ones),
		cmocka_unit_test(nothing_is_found_in_nothing),
		cmocka_unit_test(any_input_gives_a_covering_range_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

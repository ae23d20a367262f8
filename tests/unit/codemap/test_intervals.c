/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codemap/intervals.h"
#include "random.h"

/* The rule itself, by looking at every item in order of adding. */
static const struct interval *find_slowly(const struct interval *items, size_t count,
					  uint64_t address)
{
	const struct interval *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (items[i].start <= address && address < items[i].end &&
		    (!best || items[i].start >= best->start))
			best = &items[i];
	return best;
}

static void assert_same(const struct intervals *set, const struct interval *items, size_t count,
			uint64_t address)
{
	const struct interval *want = find_slowly(items, count, address);
	const struct interval *got = intervals_find(set, address);

	assert_int_equal(got != NULL, want != NULL);
	if (want)
		assert_int_equal(got->name, want->name);
}

static void check_random(uint64_t seed, size_t count, uint64_t spread, uint64_t longest)
{
	struct interval *items = calloc(count, sizeof(*items));
	struct interval *copy = calloc(count, sizeof(*items));
	struct random rng = {.state = seed};
	struct intervals set = {0};
	size_t added = 0;

	for (size_t i = 0; i < count; i++) {
		items[i].start = random_below(&rng, spread);
		items[i].end = items[i].start + 1 + random_below(&rng, longest);
		items[i].name = i;
	}
	memcpy(copy, items, count * sizeof(*items));
	while (added < count) {
		size_t more = 1 + random_below(&rng, count / 3 + 1);

		more = MIN(more, count - added);
		assert_true(intervals_add(&set, copy + added, more));
		added += more;
		for (int i = 0; i < 300; i++)
			assert_same(&set, items, added, random_below(&rng, spread + longest));
	}
	for (size_t keep = count; keep > 0; keep /= 3) {
		intervals_cut(&set, keep);
		for (int i = 0; i < 100; i++)
			assert_same(&set, items, keep, random_below(&rng, spread + longest));
	}
	intervals_release(&set);
	free(items);
	free(copy);
}

static void test_like_the_rule(void **state)
{
	static const size_t counts[] = {1, 2, 15, 16, 17, 100, 257, 1000, 4100};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		check_random(i + 1, counts[i], 100, 30);
		check_random(i + 2, counts[i], 100000, 10);
		check_random(i + 3, counts[i], 1u << 30, 1u << 29);
		check_random(i + 4, counts[i], UINT64_MAX / 2, UINT64_MAX / 4);
	}
}

/* A miss behind very many short ranges inside a huge one, and a deep nest, must be quick. */
static void test_no_walk_over_ended_ranges(void **state)
{
	enum { COUNT = 1 << 18 };
	struct interval *items = calloc(COUNT + 1, sizeof(*items));
	struct intervals set = {0};
	(void)state;

	items[0] = (struct interval){.start = 0, .end = UINT64_MAX, .name = 0};
	for (uint32_t i = 1; i <= COUNT; i++)
		items[i] = (struct interval){.start = i, .end = i + 1, .name = i};
	assert_true(intervals_add(&set, items, COUNT + 1));
	for (int i = 0; i < 200000; i++)
		assert_int_equal(intervals_find(&set, COUNT + 100 + i)->name, 0);
	intervals_release(&set);

	for (uint32_t i = 0; i < COUNT; i++)
		items[i] = (struct interval){.start = i, .end = 3 * (uint64_t)COUNT - i, .name = i};
	assert_true(intervals_add(&set, items, COUNT));
	for (int i = 0; i < 200000; i++)
		assert_int_equal(intervals_find(&set, 3 * COUNT - 1 - i)->name, MIN(i, COUNT - 1));
	intervals_release(&set);
	free(items);
}

static void test_empty(void **state)
{
	struct intervals set = {0};
	(void)state;

	assert_null(intervals_find(&set, 5));
	assert_true(intervals_add(&set, NULL, 0));
	assert_null(intervals_find(&set, 5));
	assert_false(intervals_cut(&set, 0));
	intervals_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_rule),
		cmocka_unit_test(test_no_walk_over_ended_ranges),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

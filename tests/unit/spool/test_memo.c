/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A stack that is found is the one that was added; old ones give way, memory does not grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "spool/memo.h"

enum { LENGTHS = 300, KEYS = 40000 };

/* The words of a key: any number gives others, and neighbours differ in one word only. */
static size_t make_words(uint32_t *words, uint32_t number)
{
	struct random rng = { .state = number / 4 };
	size_t count = 1 + random_below(&rng, LENGTHS - 1);

	for (size_t i = 0; i < count; i++)
		words[i] = random_below(&rng, 1000);
	words[random_below(&rng, count)] += number % 4 * 1000;
	return count;
}

static uint32_t find(const struct memo *memo, uint32_t number, uint32_t kind, uint32_t epoch)
{
	uint32_t words[LENGTHS];
	struct memo_key key = memo_key(words, make_words(words, number), kind);

	return memo_find(memo, &key, epoch);
}

static void add(struct memo *memo, uint32_t number, uint32_t kind, uint32_t epoch)
{
	uint32_t words[LENGTHS];
	struct memo_key key = memo_key(words, make_words(words, number), kind);

	memo_add(memo, &key, number * 2 + kind, epoch);
}

/* More than there is room for. */
static void test_found(void **state)
{
	struct memo memo = { 0 };
	size_t found = 0;

	(void)state;
	assert_true(memo_init(&memo));
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t kind = i % 5 == 0, other = i / 2;

		assert_int_equal(find(&memo, i, kind, 0), UINT32_MAX);
		add(&memo, i, kind, MEMO_ALWAYS);
		assert_int_equal(find(&memo, i, kind, 7), i * 2 + kind);
		assert_int_equal(find(&memo, i, !kind, 7), UINT32_MAX);
		kind = other % 5 == 0;
		if (find(&memo, other, kind, 0) != UINT32_MAX) {
			assert_int_equal(find(&memo, other, kind, 0), other * 2 + kind);
			found++;
		}
	}
	assert_in_range(found, KEYS / 20, KEYS - 1);
	memo_release(&memo);
}

/* What is added last is known, whatever the limit. */
static void test_limit(void **state)
{
	struct memo memo = { 0 };

	(void)state;
	assert_true(memo_init(&memo));
	memo_limit(&memo, 1000);
	for (uint32_t i = 0; i < 5000; i++) {
		add(&memo, i, 0, MEMO_ALWAYS);
		assert_int_equal(find(&memo, i, 0, 0), i * 2);
		assert_in_range(memo.used, 1, 1000);
	}
	assert_int_equal(find(&memo, 0, 0, 0), UINT32_MAX);
	memo_release(&memo);
}

static void test_epochs(void **state)
{
	struct memo memo = { 0 };

	(void)state;
	assert_true(memo_init(&memo));
	add(&memo, 1, 0, 5);
	assert_int_equal(find(&memo, 1, 0, 5), 2);
	assert_int_equal(find(&memo, 1, 0, 6), UINT32_MAX);
	add(&memo, 1, 0, 6);
	assert_int_equal(find(&memo, 1, 0, 6), 2);
	memo_release(&memo);
}

/* One that is longer than all there is room for is not kept, and nothing is harmed. */
static void test_too_long(void **state)
{
	struct memo memo = { 0 };
	size_t count = 3 << 20;
	uint32_t *words = calloc(count, sizeof(*words));
	struct memo_key key = memo_key(words, count, 0);

	(void)state;
	assert_true(memo_init(&memo));
	memo_add(&memo, &key, 1, MEMO_ALWAYS);
	assert_int_equal(memo_find(&memo, &key, 0), UINT32_MAX);
	add(&memo, 9, 0, MEMO_ALWAYS);
	assert_int_equal(find(&memo, 9, 0, 0), 18);
	memo_release(&memo);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

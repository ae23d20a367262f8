/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

#include <string.h>

#include "failalloc.h"
#include "random.h"

static void test_blocks_are_aligned_and_apart(void **state)
{
	struct arena arena = { 0 };
	struct random rng = { .state = 1 };
	unsigned char *blocks[2000];
	size_t sizes[2000];

	(void)state;
	for (int i = 0; i < 2000; i++) {
		sizes[i] = random_below(&rng, 10) ? random_below(&rng, 60) : random_below(&rng, 9000);
		blocks[i] = arena_alloc(&arena, sizes[i]);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 8, 0);
		memset(blocks[i], i & 0xff, sizes[i]);
	}
	for (int i = 0; i < 2000; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(blocks[i][k], i & 0xff);
	arena_release(&arena);
	assert_null(arena.chunk);
	assert_int_equal(arena.total, 0);
}

static void test_strndup_adds_a_nul(void **state)
{
	struct arena arena = { 0 };

	(void)state;
	assert_string_equal(arena_strndup(&arena, "abcdef", 3), "abc");
	assert_string_equal(arena_strndup(&arena, NULL, 0), "");
	assert_memory_equal(arena_strndup(&arena, "a\0b", 3), "a\0b", 4);
	arena_release(&arena);
}

static void test_a_block_larger_than_a_chunk(void **state)
{
	struct arena arena = { 0 };
	char *small = arena_alloc(&arena, 8);
	char *big = arena_alloc(&arena, 5 << 20);

	(void)state;
	assert_non_null(small);
	assert_non_null(big);
	memset(big, 1, 5 << 20);
	arena_release(&arena);
}

static void test_impossible_sizes_are_refused(void **state)
{
	struct arena arena = { 0 };

	(void)state;
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 7));
	assert_null(arena_strndup(&arena, "", SIZE_MAX));
	assert_non_null(arena_alloc(&arena, 1));
	arena_release(&arena);
}

static void test_out_of_memory(void **state)
{
	struct arena arena = { 0 };
	char *kept = arena_strndup(&arena, "kept", 4);

	(void)state;
	failalloc_set(1, true);
	assert_null(arena_alloc(&arena, 100000));
	failalloc_set(0, false);
	assert_string_equal(kept, "kept");
	assert_non_null(arena_alloc(&arena, 100000));
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_are_aligned_and_apart),
		cmocka_unit_test(test_strndup_adds_a_nul),
		cmocka_unit_test(test_a_block_larger_than_a_chunk),
		cmocka_unit_test(test_impossible_sizes_are_refused),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

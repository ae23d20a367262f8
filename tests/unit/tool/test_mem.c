/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "mem.h"

static void map_of_many(void **state)
{
	struct idmap map = {0};
	int is_new;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		/* Keys that share their low or their high halves. */
		uint64_t key = i % 2 ? (uint64_t)i << 32 : i;

		assert_int_equal(idmap_intern(&map, key, i, &is_new), i);
		assert_true(is_new);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t key = i % 2 ? (uint64_t)i << 32 : i;

		assert_int_equal(idmap_intern(&map, key, 7, &is_new), i);
		assert_false(is_new);
	}
	assert_int_equal(map.count, 100000);
	idmap_set(&map, 4, 77);
	assert_int_equal(idmap_intern(&map, 4, 0, &is_new), 77);
	idmap_release(&map);
	assert_null(map.keys);
}

static void pushing(void **state)
{
	uint32_t *items = NULL;
	size_t count = 0, cap = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		MEM_PUSH(items, count, cap) = i;
	assert_int_equal(count, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_of_many),
		cmocka_unit_test(pushing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

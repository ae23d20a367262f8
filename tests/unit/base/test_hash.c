/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

#include <string.h>
#include <time.h>

#include "failalloc.h"
#include "random.h"

enum { KEYS = 500, STEPS = 200000 };

/* The plain model: a value and a flag for each key that can occur. */
struct model {
	uint64_t keys[KEYS], values[KEYS];
	bool present[KEYS];
	size_t count;
};

/* Keys that share their low bits, so that runs of slots form, plus the extremes. */
static void model_init(struct model *model, struct random *rng)
{
	memset(model, 0, sizeof(*model));
	for (int i = 0; i < KEYS; i++)
		model->keys[i] = i % 2 ? (uint64_t)i << 32 : random_u64(rng);
	model->keys[0] = 0;
	model->keys[2] = UINT64_MAX;
}

static void assert_same(const struct u64map *map, const struct model *model)
{
	struct u64map_slot *slot;
	size_t i = 0, seen = 0;
	uint64_t *value;

	assert_int_equal(map->count, model->count);
	for (int k = 0; k < KEYS; k++) {
		value = u64map_get(map, model->keys[k]);
		assert_int_equal(value != NULL, model->present[k]);
		if (value)
			assert_int_equal(*value, model->values[k]);
	}
	while ((slot = u64map_next(map, &i)))
		seen++;
	assert_int_equal(seen, model->count);
}

static void random_step(struct u64map *map, struct model *model, struct random *rng)
{
	int k = random_below(rng, KEYS);
	bool added;
	uint64_t *value;

	switch (random_below(rng, 3)) {
	case 0:
		assert_int_equal(u64map_remove(map, model->keys[k]), model->present[k]);
		model->count -= model->present[k];
		model->present[k] = false;
		return;
	case 1:
		value = u64map_add(map, model->keys[k], &added);
		assert_non_null(value);
		assert_int_equal(added, !model->present[k]);
		assert_int_equal(*value, model->present[k] ? model->values[k] : 0);
		break;
	default:
		assert_true(u64map_set(map, model->keys[k], 0));
	}
	model->count += !model->present[k];
	model->present[k] = true;
	model->values[k] = random_u64(rng);
	*u64map_get(map, model->keys[k]) = model->values[k];
}

static void test_map_equals_a_model(void **state)
{
	struct random rng = { .state = 42 };
	struct u64map map = { 0 };
	struct model model;

	(void)state;
	model_init(&model, &rng);
	for (int i = 0; i < STEPS; i++) {
		random_step(&map, &model, &rng);
		if (i % 1000 == 0)
			assert_same(&map, &model);
	}
	assert_same(&map, &model);
	assert_true(map.mask + 1 <= 1024);
	u64map_release(&map);
	assert_null(map.slots);
}

static void test_empty_map(void **state)
{
	struct u64map map = { 0 };
	size_t i = 0;

	(void)state;
	assert_null(u64map_get(&map, 0));
	assert_false(u64map_remove(&map, 0));
	assert_null(u64map_next(&map, &i));
	u64map_release(&map);
}

static void test_failed_growth_keeps_entries(void **state)
{
	struct u64map map = { 0 };
	uint64_t n = 0;

	(void)state;
	failalloc_set(1, true);
	assert_null(u64map_add(&map, 1, NULL));
	assert_false(u64map_set(&map, 1, 1));
	failalloc_set(0, false);
	for (; n < 12; n++)
		assert_true(u64map_set(&map, n, n));
	failalloc_set(1, true);
	while (u64map_set(&map, n, n + 1))
		n++;
	failalloc_set(0, false);
	assert_int_equal(map.count, n);
	for (uint64_t k = 0; k < n; k++)
		assert_non_null(u64map_get(&map, k));
	assert_true(u64map_set(&map, n, n));
	u64map_release(&map);
}

static void test_bytes_hash_by_length_and_content(void **state)
{
	char a[40] = { 0 }, b[41] = { 0 };

	(void)state;
	for (size_t len = 0; len <= 40; len++) {
		assert_int_equal(hash_bytes(a, len, 7), hash_bytes(b, len, 7));
		assert_int_equal(hash_bytes(a, len, 7), hash_bytes(b + 1, len, 7));
		assert_true(hash_bytes(a, len, 7) != hash_bytes(a, len, 8));
		if (len)
			assert_true(hash_bytes(a, len, 7) != hash_bytes(a, len - 1, 7));
	}
	for (int i = 0; i < 40; i++) {
		b[i] = 1;
		assert_true(hash_bytes(a, 40, 7) != hash_bytes(b, 40, 7));
		b[i] = 0;
	}
}

enum { MANY = 60000, PLACES = 1 << 17 };

static double seconds_to_add(const uint64_t *keys)
{
	struct u64map map = { 0 };
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (size_t i = 0; i < MANY; i++)
		assert_true(u64map_set(&map, keys[i], i));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(map.count, MANY);
	u64map_release(&map);
	return (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Those that meet in a table whose hash is known, and those that meet by any XOR with hash_u64. */
static void choose_keys(uint64_t *known, uint64_t *mixed)
{
	uint64_t key = 0;

	for (uint64_t i = 0; i < MANY; i++) {
		do {
			key++;
		} while ((hash_salted(key, 0) & (PLACES - 1)) >= PLACES / 256);
		known[i] = key;
		mixed[i] = i << 46 | i << 14;
	}
	assert_int_equal(hash_u64(mixed[1] ^ 99) & 0xffff, hash_u64(mixed[777] ^ 99) & 0xffff);
}

static void test_chosen_keys_cost_no_more(void **state)
{
	static uint64_t any[MANY], known[MANY], mixed[MANY];
	double fair, hostile[2];

	(void)state;
	for (uint64_t i = 0; i < MANY; i++)
		any[i] = i * 97;
	choose_keys(known, mixed);
	fair = seconds_to_add(any);
	hostile[0] = seconds_to_add(known);
	hostile[1] = seconds_to_add(mixed);
	print_message("%.4f s, chosen ones %.4f and %.4f s\n", fair, hostile[0], hostile[1]);
	assert_true(hostile[0] < 40 * fair + 0.1);
	assert_true(hostile[1] < 40 * fair + 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_equals_a_model),
		cmocka_unit_test(test_empty_map),
		cmocka_unit_test(test_failed_growth_keeps_entries),
		cmocka_unit_test(test_bytes_hash_by_length_and_content),
		cmocka_unit_test(test_chosen_keys_cost_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

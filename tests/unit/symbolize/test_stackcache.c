/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "symkit.h"

static void count_drop(void *data, void *value)
{
	*(int *)data += *(int *)value;
}

/* The current stack of the batch, resolved, and its key. */
static const struct spulse_resolved *next(struct kit *kit, struct spulse_stack_key *key)
{
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack = NULL;

	assert_int_equal(spulse_stacks_next(kit->stacks, &stack, NULL), 1);
	*key = spulse_stack_key(stack);
	assert_int_equal(spulse_symbolizer_resolve(kit->symbolizer, stack, &resolved, NULL), 0);
	return resolved;
}

static void follow_external(struct kit *kit)
{
	struct spulse_symbolizer_options options = kit_options(kit, NULL, NULL);

	options.stack_cache = SPULSE_CACHE_EXTERNAL;
	kit_follow(kit, &options);
	kit_update(kit);
}

static void keeps_and_finds(void **state)
{
	SPULSE_CLEANUP(stack_cache) cache = NULL;
	const struct spulse_resolved *resolved;
	struct spulse_stack_key key;
	int one = 1, ten = 10, dropped = 0;
	void *found = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10));
	follow_external(&kit);
	assert_int_equal(spulse_stack_cache_new(kit.symbolizer, 8, count_drop, &dropped, &cache,
						NULL), 0);
	resolved = next(&kit, &key);
	assert_false(spulse_stack_cache_lookup(cache, key, &found));
	assert_int_equal(spulse_stack_cache_insert(cache, key, resolved, &one, NULL), 1);
	assert_true(spulse_stack_cache_lookup(cache, key, &found));
	assert_ptr_equal(found, &one);
	/* Another value for the same stack gives the first one up. */
	assert_int_equal(spulse_stack_cache_insert(cache, key, resolved, &ten, NULL), 1);
	assert_int_equal(dropped, 1);
	assert_int_equal(spulse_stack_cache_count(cache), 1);
	key.source++;
	assert_false(spulse_stack_cache_lookup(cache, key, &found));
	assert_int_equal(spulse_stack_cache_insert(cache, key, resolved, &one, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_stack_cache_clear(cache);
	assert_int_equal(dropped, 11);
	assert_int_equal(spulse_stack_cache_count(cache), 0);
	spulse_stack_cache_free(cache);
	cache = NULL;
	kit_close(&kit);
}

static void provisional_stacks_are_refused(void **state)
{
	SPULSE_CLEANUP(stack_cache) cache = NULL;
	const struct spulse_resolved *resolved;
	struct spulse_stack_key key;
	int one = 1, dropped = 0;
	struct kit kit;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, kit_path(&kit, "absent.so"));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	follow_external(&kit);
	assert_int_equal(spulse_stack_cache_new(kit.symbolizer, 8, count_drop, &dropped, &cache,
						NULL), 0);
	resolved = next(&kit, &key);
	assert_int_equal(spulse_stack_cache_insert(cache, key, resolved, &one, NULL), 0);
	assert_int_equal(dropped, 0);
	spulse_stack_cache_free(cache);
	cache = NULL;
	kit_close(&kit);
}

static void full_cache_is_emptied(void **state)
{
	struct spulse_stack_cache *cache, *none;
	const struct spulse_resolved *resolved;
	struct spulse_stack_key key;
	int one = 1, dropped = 0;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	for (uint64_t i = 0; i < 3; i++)
		KIT_SAMPLE(&kit, KIT_PID, kit_user(i));
	follow_external(&kit);
	assert_int_equal(spulse_stack_cache_new(kit.symbolizer, 2, count_drop, &dropped, &cache,
						NULL), 0);
	assert_int_equal(spulse_stack_cache_new(kit.symbolizer, 0, NULL, NULL, &none, NULL), 0);
	for (int i = 0; i < 3; i++) {
		resolved = next(&kit, &key);
		assert_int_equal(spulse_stack_cache_insert(cache, key, resolved, &one, NULL), 1);
		assert_int_equal(spulse_stack_cache_insert(none, key, resolved, &one, NULL), 0);
	}
	assert_int_equal(dropped, 2);
	assert_int_equal(spulse_stack_cache_count(cache), 1);
	spulse_stack_cache_free(cache);
	spulse_stack_cache_free(none);
	assert_int_equal(dropped, 3);
	kit_close(&kit);
}

static void invalidation_drops_the_process(void **state)
{
	struct spulse_stack_cache *cache;
	const struct spulse_resolved *resolved;
	struct spulse_stack_key first, second;
	int one = 1, dropped = 0;
	void *found;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	KIT_SAMPLE(&kit, KIT_OTHER, kit_user(0x1010));
	follow_external(&kit);
	assert_int_equal(spulse_stack_cache_new(kit.symbolizer, 8, count_drop, &dropped, &cache,
						NULL), 0);
	resolved = next(&kit, &first);
	assert_int_equal(spulse_stack_cache_insert(cache, first, resolved, &one, NULL), 1);
	resolved = next(&kit, &second);
	assert_int_equal(spulse_stack_cache_insert(cache, second, resolved, &one, NULL), 1);
	kit_perf_map(&kit, KIT_PID, "1000 100 named\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	spulse_stack_cache_apply(cache, kit_update(&kit));
	assert_int_equal(dropped, 1);
	assert_false(spulse_stack_cache_lookup(cache, first, &found));
	assert_true(spulse_stack_cache_lookup(cache, second, &found));
	spulse_stack_cache_free(cache);
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_and_finds),
		cmocka_unit_test(provisional_stacks_are_refused),
		cmocka_unit_test(full_cache_is_emptied),
		cmocka_unit_test(invalidation_drops_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

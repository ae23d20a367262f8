/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What was resolved once costs no memory, and memory that runs out costs nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "failalloc.h"
#include "symkit.h"

enum { STACKS = 300 };

/* Native, JIT, kernel and bare frames, a marker, and a stack that comes again. */
static void put_stacks(struct kit *kit, uint32_t id)
{
	for (uint64_t i = 0; i < STACKS; i++)
		KIT_SAMPLE(kit, i % 2 ? KIT_PID : KIT_OTHER, kit_kernel(0xffffffff81000100 + i % 9),
			   i % 2 ? kit_pinned(id, 0x10000, 0x11000 + i % 50) : kit_user(i % 40),
			   kit_user(0x1000 + i % 16), spulse_frame_truncated_marker());
}

static void prepare_files(struct kit *kit)
{
	kit_elf(kit, "lib.so", NULL);
	kit_perf_map(kit, KIT_PID, "1000 8 one\n1008 8 py::two:/a/two.py\n");
}

static struct spulse_symbolizer_options options_of(const struct kit *kit)
{
	return kit_kallsyms(kit, "ffffffff81000000 T _text\nffffffff81000104 T vfs_read\n");
}

static void a_known_stack_allocates_nothing(void **state)
{
	struct spulse_symbolizer_options options;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	prepare_files(&kit);
	put_stacks(&kit, kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "lib.so")));
	options = options_of(&kit);
	kit_read(&kit, &options);
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < STACKS; i++) {
			const struct spulse_resolved *resolved = NULL;
			const struct spulse_stack *stack = NULL;

			assert_int_equal(spulse_snapshot_stack(kit.snapshot, i, &stack, NULL), 1);
			failalloc_set(0, false);
			assert_int_equal(spulse_symbolizer_resolve(kit.symbolizer, stack, &resolved,
								   NULL), 0);
			if (pass)
				assert_int_equal(failalloc_count(), 0);
			assert_int_equal(spulse_resolved_count(resolved), 4);
		}
	}
	kit_close(&kit);
}

/* One batch of what was seen before; how many allocations reading and resolving it took. */
static long batch_costs(struct kit *kit)
{
	const struct spulse_invalidation *stale = NULL;
	const struct spulse_resolved *resolved;
	const struct spulse_stack *stack;
	long count;

	assert_int_equal(spulse_spool_writer_flush(kit->writer, NULL), 0);
	failalloc_set(0, false);
	assert_int_equal(spulse_tail_poll(kit->tail, &kit->batch, NULL), 0);
	assert_int_equal(spulse_symbolizer_update(kit->symbolizer, kit->batch, &stale, NULL), 0);
	count = failalloc_count();
	assert_int_equal(spulse_batch_stacks(kit->batch, &kit->stacks, NULL), 0);
	failalloc_set(0, false);
	while (spulse_stacks_next(kit->stacks, &stack, NULL) > 0)
		assert_int_equal(spulse_symbolizer_resolve(kit->symbolizer, stack, &resolved, NULL),
				 0);
	count += failalloc_count();
	spulse_stacks_free(kit->stacks);
	kit->stacks = NULL;
	return count;
}

static void a_batch_of_known_stacks_allocates_nothing(void **state)
{
	struct spulse_symbolizer_options options;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	prepare_files(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "lib.so"));
	put_stacks(&kit, id);
	options = options_of(&kit);
	options.threads = 1;
	kit_follow(&kit, &options);
	assert_true(batch_costs(&kit) > 0);
	for (int i = 0; i < 3; i++) {
		put_stacks(&kit, id);
		/* The first one may still make room for what only comes again. */
		if (i)
			assert_int_equal(batch_costs(&kit), 0);
		else
			batch_costs(&kit);
	}
	assert_int_equal(batch_costs(&kit), 0); /* nothing new at all */
	kit_close(&kit);
}

/* Resolves all stacks with the nth allocation failing; false when none failed. */
static bool resolve_without_memory(struct kit *kit, long nth, bool all)
{
	struct spulse_symbolizer_options options = options_of(kit);
	struct spulse_symbolizer *symbolizer = NULL;
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack = NULL;
	struct spulse_error *err = NULL;
	bool hit;
	int r;

	options.threads = 1;
	failalloc_set(nth, all);
	r = spulse_symbolizer_new(spulse_snapshot_source(kit->snapshot), &options, &symbolizer, &err);
	for (size_t i = 0; i < 8 && !r; i++) {
		r = spulse_snapshot_stack(kit->snapshot, i, &stack, &err);
		if (r == 1)
			r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, &err);
	}
	hit = failalloc_hit();
	failalloc_set(0, false);
	/* The backend's own failure comes with its cause, if there was memory for that. */
	if (r && r != -SPULSE_ERROR_NO_MEMORY && r != -SPULSE_ERROR_NATIVE_SYMBOLIZER)
		fail_msg("allocation %ld: %d", nth, r);
	if (r)
		assert_int_equal(spulse_error_kind(err), -r);
	spulse_error_free(err);
	/* The symbolizer is as good as before. */
	for (size_t i = 0; symbolizer && i < 8; i++) {
		assert_int_equal(spulse_snapshot_stack(kit->snapshot, i, &stack, NULL), 1);
		assert_int_equal(spulse_symbolizer_resolve(symbolizer, stack, &resolved, NULL), 0);
		assert_int_equal(spulse_resolved_count(resolved), 4);
		assert_string_equal(kit_name_at(resolved, 3), "<stack truncated>");
	}
	spulse_symbolizer_free(symbolizer);
	return hit;
}

static void memory_may_run_out_anywhere(void **state)
{
	struct kit kit;
	long nth;

	(void)state;
	kit_open(&kit);
	prepare_files(&kit);
	put_stacks(&kit, kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "lib.so")));
	assert_int_equal(spulse_spool_writer_finish(kit.writer, NULL), 0);
	assert_int_equal(spulse_snapshot_open(kit.spool, &kit.snapshot, NULL), 0);
	for (int all = 0; all < 2; all++) {
		for (nth = 1; resolve_without_memory(&kit, nth, all); nth++)
			assert_true(nth < 10000);
		assert_true(nth > 20);
	}
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_stack_allocates_nothing),
		cmocka_unit_test(a_batch_of_known_stacks_allocates_nothing),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

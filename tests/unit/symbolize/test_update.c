/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What changes between the batches of a tail, and what a caller is told of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/symbolizer.h"
#include "symkit.h"

static size_t listed(const struct spulse_invalidation *invalidation)
{
	size_t count;

	spulse_invalidation_processes(invalidation, &count);
	return count;
}

static void new_modules_outdate_nothing(void **state)
{
	const struct spulse_invalidation *stale;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/old");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	kit_follow(&kit, NULL);
	stale = kit_update(&kit);
	assert_false(spulse_invalidation_all(stale));
	assert_int_equal(listed(stale), 0);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "old+0x10");
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/new");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 0);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "new+0x10");
	kit_close(&kit);
}

static void process_end_is_told_one_update_later(void **state)
{
	const struct spulse_invalidation *stale;
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	assert_int_equal(spulse_spool_writer_retire_process(kit.writer, KIT_PID, NULL), 0);
	kit_follow_fake(&kit, &fake);
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 0);
	/* The batch that tells of the end still needs its names. */
	assert_string_equal(kit_name(kit_next_frame(&kit)), "level0");
	assert_int_equal(fake.retires, 0);
	KIT_SAMPLE(&kit, KIT_OTHER, kit_user(1));
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 1);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	assert_false(spulse_invalidation_affects(stale, KIT_OTHER));
	assert_int_equal(fake.retires, 1);
	assert_int_equal(fake.closes, 1);
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 0);
	kit_close(&kit);
	assert_int_equal(fake.closes, 1);
}

static void module_end_lists_no_process(void **state)
{
	const struct spulse_invalidation *stale;
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id, unused;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	unused = kit_module(&kit, KIT_PID, 0x20000, 0x21200, kit_path(&kit, "lib.so"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	assert_int_equal(spulse_spool_writer_retire_module(kit.writer, id, NULL), 0);
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	kit_next(&kit);
	assert_int_equal(spulse_spool_writer_retire_module(kit.writer, unused, NULL), 0);
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 0);
	assert_false(spulse_invalidation_all(stale));
	assert_int_equal(fake.retires, 1);
	/* A module that no lookup reached is no news to the backend. */
	kit_update(&kit);
	assert_int_equal(fake.retires, 1);
	kit_close(&kit);
}

static void grown_perf_map_outdates_its_own_frames(void **state)
{
	const struct spulse_invalidation *stale;
	const struct spulse_resolved *resolved;
	struct spulse_frame_id elf, miss;
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	kit_perf_map(&kit, KIT_PID, "1000 100 one\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010), kit_user(0x2010),
		   kit_pinned(id, 0x10000, 0x11000));
	KIT_SAMPLE(&kit, KIT_OTHER, kit_user(0x2010));
	kit_follow_fake(&kit, &fake);
	assert_int_equal(listed(kit_update(&kit)), 0);
	resolved = kit_next(&kit);
	assert_string_equal(kit_name(spulse_resolved_at(resolved, 0)), "one");
	assert_string_equal(kit_name(spulse_resolved_at(resolved, 1)), "<0x2010>");
	miss = spulse_resolved_id(resolved, 1);
	elf = spulse_resolved_id(resolved, 2);
	kit_perf_map(&kit, KIT_PID, "1000 100 one\n2000 100 two\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010), kit_user(0x2010),
		   kit_pinned(id, 0x10000, 0x11000));
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 1);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	assert_null(spulse_symbolizer_frame(kit.symbolizer, miss));
	resolved = kit_next(&kit);
	assert_string_equal(kit_name(spulse_resolved_at(resolved, 1)), "two");
	assert_true(spulse_resolved_id(resolved, 1).serial != miss.serial);
	assert_true(spulse_resolved_id(resolved, 2).serial == elf.serial);
	assert_true(spulse_resolved_id(resolved, 2).owner == elf.owner);
	assert_int_equal(fake.calls, 1);
	kit_close(&kit);
}

static void perf_map_that_appears_or_goes(void **state)
{
	const struct spulse_invalidation *stale;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	kit_follow(&kit, NULL);
	kit_update(&kit);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "<0x1010>");
	kit_perf_map(&kit, KIT_PID, "1000 100 one\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	stale = kit_update(&kit);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	assert_string_equal(kit_name(kit_next_frame(&kit)), "one");
	/* A process that the batch does not name is not looked at. */
	kit_perf_map(&kit, KIT_PID, "1000 100 uno\n");
	KIT_SAMPLE(&kit, KIT_OTHER, kit_user(0x1010));
	assert_int_equal(listed(kit_update(&kit)), 0);
	assert_int_equal(unlink(kit_path(&kit, "perf-4000000.map")), 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	stale = kit_update(&kit);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	assert_string_equal(kit_name(kit_next_frame(&kit)), "<0x1010>");
	kit_close(&kit);
}

static void perf_map_of_an_ended_process_serves_its_last_batch(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "1000 200 one\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	kit_follow(&kit, NULL);
	kit_update(&kit);
	kit_next(&kit);
	assert_int_equal(unlink(kit_path(&kit, "perf-4000000.map")), 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1110));
	assert_int_equal(spulse_spool_writer_retire_process(kit.writer, KIT_PID, NULL), 0);
	assert_int_equal(listed(kit_update(&kit)), 0);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "one");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1120));
	assert_int_equal(listed(kit_update(&kit)), 1);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "<0x1120>");
	kit_close(&kit);
}

static void backend_generation_outdates_its_process(void **state)
{
	const struct spulse_invalidation *stale;
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	kit_next(&kit);
	assert_int_equal(fake.refreshes, 1);
	assert_int_equal(listed(kit_update(&kit)), 0);
	assert_int_equal(fake.refreshes, 2);
	fake.generation = 7;
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	stale = kit_update(&kit);
	assert_int_equal(listed(stale), 1);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	kit_next(&kit);
	assert_int_equal(fake.calls, 2);
	assert_int_equal(listed(kit_update(&kit)), 0);
	kit_close(&kit);
}

/* Both processes are outdated; the second one cannot say so at first. */
static void a_failed_update_loses_no_invalidation(void **state)
{
	const struct spulse_invalidation *stale = NULL;
	struct fake_backend fake = { 0 };
	struct spulse_error *err = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_elf(&kit, "lib.so", NULL);
	for (pid_t pid = KIT_PID; pid <= KIT_OTHER; pid++) {
		uint32_t id = kit_module(&kit, pid, 0x10000, 0x11200, kit_path(&kit, "lib.so"));

		KIT_SAMPLE(&kit, pid, kit_pinned(id, 0x10000, 0x11000));
	}
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	while (kit_next(&kit))
		;
	fake.generation = 5;
	fake.fail_refresh = 2;
	kit_module(&kit, KIT_PID, 0x30000, 0x40000, "/more");
	assert_int_equal(spulse_spool_writer_flush(kit.writer, NULL), 0);
	assert_int_equal(spulse_tail_poll(kit.tail, &kit.batch, NULL), 0);
	assert_int_equal(spulse_symbolizer_update(kit.symbolizer, kit.batch, &stale, &err),
			 -SPULSE_ERROR_NATIVE_SYMBOLIZER);
	assert_int_equal(spulse_error_code(spulse_error_cause(err)), 19);
	spulse_error_free(err);
	assert_null(stale);
	/* The same batch again. */
	assert_int_equal(spulse_symbolizer_update(kit.symbolizer, kit.batch, &stale, NULL), 0);
	assert_int_equal(listed(stale), 2);
	assert_int_equal(listed(kit_update(&kit)), 0);
	kit_close(&kit);
}

static void perf_map_that_becomes_usable(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	/* Behind a link it is not read. */
	kit_file(&kit, "elsewhere", "1000 100 one\n", 13);
	assert_int_equal(symlink(kit_path(&kit, "elsewhere"), kit_path(&kit, "perf-4000000.map")),
			 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	kit_follow(&kit, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(listed(kit_update(&kit)), 0);
		assert_string_equal(kit_name(kit_next_frame(&kit)), "<0x1010>");
		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	}
	assert_int_equal(unlink(kit_path(&kit, "perf-4000000.map")), 0);
	kit_perf_map(&kit, KIT_PID, "1000 100 one\n");
	assert_int_equal(listed(kit_update(&kit)), 1);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "one");
	assert_int_equal(listed(kit_update(&kit)), 0);
	kit_close(&kit);
}

/* After exec the process is another one with the same number. */
static void exec_starts_anew(void **state)
{
	const struct spulse_invalidation *stale;
	struct fake_backend fake = { .levels = 1 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "1000 100 jitted\n");
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "old.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000), kit_user(0x1010));
	assert_int_equal(spulse_spool_writer_retire_process(kit.writer, KIT_PID, NULL), 0);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "new.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000), kit_user(0x1010));
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	assert_string_equal(kit_name_at(kit_next(&kit), 1), "jitted");
	assert_null(kit_next(&kit)); /* a batch ends with a retirement */
	assert_int_equal(unlink(kit_path(&kit, "perf-4000000.map")), 0);
	stale = kit_update(&kit);
	assert_true(spulse_invalidation_affects(stale, KIT_PID));
	assert_int_equal(fake.closes, 1);
	assert_string_equal(kit_name_at(kit_next(&kit), 1), "<0x1010>");
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.calls, 2);
	kit_close(&kit);
}

/* So many frames go that memory is tidied: the others keep identity, chain and order. */
static void what_stays_keeps_its_identity(void **state)
{
	enum { JITTED = 9000 };
	struct spulse_frame_id before[3];
	const struct spulse_resolved *resolved;
	struct fake_backend fake = { .levels = 3 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	kit_perf_map(&kit, KIT_PID, "100000 100000 all\n");
	for (uint64_t i = 0; i < JITTED; i++)
		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x100000 + i));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	for (size_t i = 0; i < JITTED; i++)
		assert_string_equal(kit_name(kit_next_frame(&kit)), "all");
	resolved = kit_next(&kit);
	for (size_t i = 0; i < 3; i++)
		before[i] = spulse_resolved_id(resolved, i);
	kit_perf_map(&kit, KIT_PID, "100000 100000 other\n");
	for (uint64_t i = 0; i < JITTED; i++)
		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x100000 + i));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	assert_int_equal(listed(kit_update(&kit)), 1);
	for (size_t i = 0; i < JITTED; i++)
		assert_string_equal(kit_name(kit_next_frame(&kit)), "other");
	resolved = kit_next(&kit);
	assert_int_equal(spulse_resolved_count(resolved), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);

		assert_int_equal(spulse_resolved_id(resolved, i).serial, before[i].serial);
		assert_ptr_equal(spulse_symbolizer_frame(kit.symbolizer, before[i]), frame);
		assert_int_equal(spulse_resolved_frame_inline_depth(frame), 2 - i);
	}
	assert_int_equal(fake.calls, 1);
	kit_close(&kit);
}

static void other_readers_are_refused(void **state)
{
	const struct spulse_invalidation *stale = NULL;
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack;
	struct spulse_tail *other;
	const struct spulse_batch *batch;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/lib");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	kit_follow(&kit, NULL);
	assert_int_equal(spulse_tail_open(kit.spool, &other, NULL), 0);
	assert_int_equal(spulse_tail_poll(other, &batch, NULL), 0);
	assert_int_equal(spulse_symbolizer_update(kit.symbolizer, batch, &stale, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_null(stale);
	assert_int_equal(spulse_batch_stacks(batch, &stacks, NULL), 0);
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
	assert_int_equal(spulse_symbolizer_resolve(kit.symbolizer, stack, &resolved, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_stacks_free(stacks);
	stacks = NULL;
	/* One batch twice: its modules are known. */
	kit_update(&kit);
	kit_module(&kit, KIT_PID, 0x30000, 0x40000, "/more");
	kit_update(&kit);
	assert_int_equal(spulse_symbolizer_update(kit.symbolizer, kit.batch, &stale, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_tail_free(other);
	kit_close(&kit);
}

static void kernel_symbols_serve_every_batch(void **state)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000100 T vfs_read\n";
	struct spulse_symbolizer_options options;
	const struct spulse_invalidation *stale;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	options = kit_kallsyms(&kit, text);
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffff81000010));
	kit_follow(&kit, &options);
	kit_update(&kit);
	assert_string_equal(kit_name(kit_next_frame(&kit)), "_text");
	/* A table that has everything is not outdated by a kernel module. */
	kit_kernel_module(&kit, 0xffffffffc0000000, 0xffffffffc0001000, "[mod]");
	KIT_SAMPLE(&kit, KIT_OTHER, kit_kernel(0xffffffff81000110));
	stale = kit_update(&kit);
	assert_false(spulse_invalidation_all(stale));
	assert_string_equal(kit_name(kit_next_frame(&kit)), "vfs_read");
	kit_close(&kit);
}

/* Addresses of this host's kernel are looked up when the first of them is seen. */
static void host_kernel_symbols_wait_for_the_first_kernel_frame(void **state)
{
	struct spulse_symbolizer_options options;
	struct kernel_table *full = kernel_host_full();
	struct kit kit;

	(void)state;
	kit_open(&kit);
	options = kit_options(&kit, NULL, NULL);
	options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_HOST;
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	kit_follow(&kit, &options);
	kit_update(&kit);
	kit_next(&kit);
	assert_false(kit.symbolizer->kernel_loaded);
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffff81000010));
	kit_update(&kit);
	kit_next(&kit);
	assert_true(kit.symbolizer->kernel_loaded);
	/* Only a table of single addresses is outdated by a kernel mapping. */
	kit_kernel_module(&kit, 0xffffffffc0000000, 0xffffffffc0001000, "[mod]");
	assert_int_equal(spulse_invalidation_all(kit_update(&kit)), full == NULL);
	kernel_table_unref(full);
	kit_close(&kit);
}

static void memory_stays_with_the_living(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_elf(&kit, "lib.so", NULL);
	kit_follow_fake(&kit, &fake);
	kit_update(&kit);
	for (pid_t pid = KIT_PID; pid < KIT_PID + 300; pid++) {
		uint32_t id = kit_module(&kit, pid, 0x10000, 0x11200, kit_path(&kit, "lib.so"));

		KIT_SAMPLE(&kit, pid, kit_pinned(id, 0x10000, 0x11000), kit_user(1));
		assert_int_equal(spulse_spool_writer_retire_process(kit.writer, pid, NULL), 0);
		kit_update(&kit);
		assert_non_null(kit_next(&kit));
		assert_null(kit_next(&kit));
		assert_true(fake.opens - fake.closes <= 2);
	}
	kit_close(&kit);
	assert_int_equal(fake.opens, 300);
	assert_int_equal(fake.closes, 300);
	assert_int_equal(fake.retires, 299);
}

static void held_frames_outlive_their_process(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "1000 100 one\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1010));
	assert_int_equal(spulse_spool_writer_retire_process(kit.writer, KIT_PID, NULL), 0);
	kit_follow(&kit, NULL);
	kit_update(&kit);
	frame = spulse_resolved_frame_ref(kit_next_frame(&kit));
	kit_update(&kit);
	assert_string_equal(kit_name(frame), "one");
	kit_close(&kit);
	assert_string_equal(kit_name(frame), "one");
	spulse_resolved_frame_unref(frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_modules_outdate_nothing),
		cmocka_unit_test(process_end_is_told_one_update_later),
		cmocka_unit_test(module_end_lists_no_process),
		cmocka_unit_test(grown_perf_map_outdates_its_own_frames),
		cmocka_unit_test(perf_map_that_appears_or_goes),
		cmocka_unit_test(perf_map_of_an_ended_process_serves_its_last_batch),
		cmocka_unit_test(backend_generation_outdates_its_process),
		cmocka_unit_test(a_failed_update_loses_no_invalidation),
		cmocka_unit_test(perf_map_that_becomes_usable),
		cmocka_unit_test(exec_starts_anew),
		cmocka_unit_test(what_stays_keeps_its_identity),
		cmocka_unit_test(other_readers_are_refused),
		cmocka_unit_test(kernel_symbols_serve_every_batch),
		cmocka_unit_test(host_kernel_symbols_wait_for_the_first_kernel_frame),
		cmocka_unit_test(memory_stays_with_the_living),
		cmocka_unit_test(held_frames_outlive_their_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

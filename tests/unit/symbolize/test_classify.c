/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The order of resolution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "symbolize/symbolizer.h"
#include "symkit.h"

/* ---- what a frame is ---- */

static void bare_address(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0xABCDEF));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "<0xabcdef>");
	assert_int_equal(spulse_resolved_frame_display_name_len(frame), strlen("<0xabcdef>"));
	assert_false(spulse_resolved_frame_has_symbol(frame));
	assert_null(spulse_resolved_frame_name(frame));
	assert_string_equal(spulse_resolved_frame_module(frame), "");
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_UNKNOWN);
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_ADDRESS_ONLY);
	assert_int_equal(spulse_resolved_frame_pc(frame), 0xABCDEF);
	kit_close(&kit);
}

static void truncation_marker_is_no_address(void **state)
{
	const struct spulse_resolved *resolved;
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0), spulse_frame_truncated_marker());
	kit_read(&kit, NULL);
	resolved = kit_resolve(&kit, 0);
	assert_int_equal(spulse_resolved_count(resolved), 2);
	assert_string_equal(kit_name(spulse_resolved_at(resolved, 0)), "<0x0>");
	frame = spulse_resolved_at(resolved, 1);
	assert_string_equal(kit_name(frame), "<stack truncated>");
	assert_int_equal(spulse_resolved_frame_flags(frame), SPULSE_FRAME_TRUNCATED_STACK);
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_UNKNOWN);
	assert_int_equal(spulse_resolved_frame_pc(frame), 0);
	assert_string_equal(spulse_resolved_frame_module(frame), "");
	kit_close(&kit);
}

static void module_without_symbols_shows_an_offset(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/nowhere/lib.so (deleted)");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10ABC));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "lib.so+0xabc");
	assert_string_equal(spulse_resolved_frame_module(frame), "/nowhere/lib.so");
	assert_string_equal(spulse_resolved_frame_module_basename(frame), "lib.so");
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_NATIVE);
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_ADDRESS_ONLY);
	assert_int_equal(spulse_resolved_frame_offset(frame), 0);
	assert_int_equal(spulse_resolved_frame_flags(frame), 0);
	kit_close(&kit);
}

static void module_with_symbols(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11023));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x11123));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "alpha");
	assert_string_equal(spulse_resolved_frame_module(frame), "lib.so");
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_ELF);
	assert_int_equal(spulse_resolved_frame_offset(frame), 0x23);
	assert_int_equal(spulse_resolved_frame_line(frame), -1);
	assert_int_equal(spulse_resolved_frame_inline_depth(frame), 0);
	/* Not pinned: bound by its range. */
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "beta");
	kit_close(&kit);
}

static void kernel_frame_without_symbols(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_kernel_module(&kit, 0xffffffff81000000, 0xffffffff82000000, "[kernel.kallsyms]_text");
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffff81000123));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "[kernel]+0xffffffff81000123");
	assert_string_equal(spulse_resolved_frame_module(frame), "[kernel]");
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_KERNEL);
	assert_int_equal(spulse_resolved_frame_offset(frame), 0);
	kit_close(&kit);
}

static void kernel_symbols_come_with_their_module(void **state)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000100 T vfs_read\n"
				   "ffffffffc0000000 t tls_push\t[tls]\n";
	struct spulse_symbolizer_options options;
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffff81000123));
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffffc0000010));
	options = kit_kallsyms(&kit, text);
	kit_read(&kit, &options);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "vfs_read");
	assert_string_equal(spulse_resolved_frame_module(frame), "[kernel]");
	assert_int_equal(spulse_resolved_frame_offset(frame), 0x23);
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_KERNEL_SYMBOLS);
	assert_int_equal(spulse_resolved_frame_flags(frame), 0);
	assert_string_equal(spulse_resolved_frame_module(kit_frame(&kit, 1)), "[tls]");
	kit_close(&kit);
}

/* Of a file, only what the source needs is kept until more is asked for. */
static void a_kernel_address_of_no_stack_is_found(void **state)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000100 T vfs_read\n"
				   "ffffffff81000200 T vfs_write\n";
	struct spulse_symbolizer_options options;
	struct kernel_hit hit;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffff81000123));
	options = kit_kallsyms(&kit, text);
	kit_read(&kit, &options);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "vfs_read");
	assert_int_equal(kit.symbolizer->kernel->count, 1);
	assert_true(symbolizer_kernel(kit.symbolizer, 0xffffffff81000210, &hit));
	assert_string_equal(hit.name, "vfs_write");
	assert_int_equal(hit.offset, 0x10);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "vfs_read");
	kit_close(&kit);
}

static void another_kernel_has_other_symbols(void **state)
{
	struct spulse_symbolizer_options options;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_annotate(&kit, -1, "kernel", "1.0-of-another-host");
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0xffffffffffff0000));
	options = kit_options(&kit, NULL, NULL);
	options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_HOST;
	kit_read(&kit, &options);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "[kernel]+0xffffffffffff0000");
	kit_close(&kit);
}

/* ---- binding ---- */

static void frames_bind_to_their_own_kind(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_OTHER, 0x10000, 0x20000, "/other");
	kit_kernel_module(&kit, 0x10000, 0x20000, "/kernel");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "<0x10010>");
	kit_close(&kit);
}

static void newest_module_wins(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/old");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x18010));
	kit_module(&kit, KIT_PID, 0x18000, 0x19000, "/new");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x18010));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "old+0x8010");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "new+0x10");
	assert_string_equal(kit_name(kit_frame(&kit, 2)), "old+0x10");
	kit_close(&kit);
}

static void retired_module_serves_its_own_time(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/lib");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	assert_int_equal(spulse_spool_writer_retire_module(kit.writer, id, NULL), 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10010));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "lib+0x10");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "<0x10010>");
	assert_string_equal(kit_name(kit_frame(&kit, 2)), "lib+0x10");
	kit_close(&kit);
}

static void a_frame_binds_to_what_was_known_when_it_was_written(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/later");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "<0x10010>");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "later+0x10");
	kit_close(&kit);
}

static void kernel_frames_never_bind_to_user_modules(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/user");
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0x10010));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "[kernel]+0x10010");
	assert_string_equal(spulse_resolved_frame_module(frame), "[kernel]");
	kit_close(&kit);
}

static void an_offset_that_overflows_is_no_module(void **state)
{
	const struct spulse_module_fields fields = {
		.size = sizeof(fields), .pid = KIT_PID, .start = 0x10000, .end = 0x20000,
		.file_offset = UINT64_MAX - 0x10, .path = "/odd", .path_len = 4 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	assert_int_equal(spulse_spool_writer_module(kit.writer, &fields, &id, NULL), 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10011));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "odd+0xffffffffffffffff");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "<0x10011>");
	kit_close(&kit);
}

/* A frame has a new identity where it may mean something else, and only there. */
static void identities_follow_the_mappings(void **state)
{
	struct spulse_frame_id loose[3], pinned[2];
	struct kit kit;
	uint32_t id;

	(void)state;
	/* Modules that have no file: what has one might get a better name later. */
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, "[old]");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010), kit_pinned(id, 0x10000, 0x10020));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010), kit_user(5));
	kit_module(&kit, KIT_PID, 0x10000, 0x20000, "[new]");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010), kit_pinned(id, 0x10000, 0x10020));
	kit_read(&kit, NULL);
	for (size_t i = 0; i < 3; i++) {
		const struct spulse_resolved *resolved = kit_resolve(&kit, i);

		loose[i] = spulse_resolved_id(resolved, 0);
		if (i != 1)
			pinned[i / 2] = spulse_resolved_id(resolved, 1);
	}
	assert_int_equal(loose[0].serial, loose[1].serial); /* shared by later stacks */
	assert_true(loose[2].serial != loose[0].serial);
	assert_int_equal(pinned[0].serial, pinned[1].serial);
	kit_close(&kit);
}

static void identities_of_two_symbolizers_differ(void **state)
{
	struct spulse_symbolizer_options options;
	struct spulse_symbolizer *first;
	struct spulse_frame_id a, b;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(5));
	kit_read(&kit, NULL);
	first = kit.symbolizer;
	a = spulse_resolved_id(kit_resolve(&kit, 0), 0);
	options = kit_options(&kit, NULL, NULL);
	assert_int_equal(spulse_symbolizer_new(spulse_snapshot_source(kit.snapshot), &options,
					       &kit.symbolizer, NULL), 0);
	b = spulse_resolved_id(kit_resolve(&kit, 0), 0);
	assert_int_equal(a.serial, b.serial);
	assert_true(a.owner != b.owner);
	assert_non_null(spulse_symbolizer_frame(kit.symbolizer, b));
	assert_null(spulse_symbolizer_frame(kit.symbolizer, a));
	spulse_symbolizer_free(first);
	kit_close(&kit);
}

/* ---- recorded JIT symbols ---- */

static void jit_symbols_never_fall_through(void **state)
{
	const struct spulse_jit_symbol symbols[] = {
		{ 0x10000, 0x10200, "outer", 5 },
		{ 0x10040, 0x10080, "inner", 5 },
	};
	struct spulse_module_fields fields = { .size = sizeof(fields), .pid = KIT_PID,
					       .start = 0x10000, .end = 0x11000, .path = "//anon",
					       .path_len = 6 };
	const struct spulse_resolved_frame *frame;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "10000 1000 wrong\n");
	assert_int_equal(spulse_spool_writer_jit_module(kit.writer, &fields, symbols, 2, &id, NULL),
			 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10050));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10090));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10900));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "inner");
	assert_int_equal(spulse_resolved_frame_offset(frame), 0x10);
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_JIT);
	assert_int_equal(spulse_resolved_frame_flags(frame), SPULSE_FRAME_JIT);
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "outer");
	assert_string_equal(kit_name(kit_frame(&kit, 2)), "<0x10900>");
	kit_close(&kit);
}

static void off_cpu_frames_keep_their_name(void **state)
{
	const struct spulse_frame frame = { 0x10, 0x1010, 0, SPULSE_FRAME_KERNEL };
	struct kit kit;

	(void)state;
	kit_open(&kit);
	assert_int_equal(kit_kernel_module(&kit, 0x1000, 0x2000, "[off-cpu]"), 0);
	KIT_SAMPLE(&kit, KIT_PID, frame);
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "[off-cpu]");
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_address),
		cmocka_unit_test(truncation_marker_is_no_address),
		cmocka_unit_test(module_without_symbols_shows_an_offset),
		cmocka_unit_test(module_with_symbols),
		cmocka_unit_test(kernel_frame_without_symbols),
		cmocka_unit_test(kernel_symbols_come_with_their_module),
		cmocka_unit_test(a_kernel_address_of_no_stack_is_found),
		cmocka_unit_test(another_kernel_has_other_symbols),
		cmocka_unit_test(frames_bind_to_their_own_kind),
		cmocka_unit_test(newest_module_wins),
		cmocka_unit_test(retired_module_serves_its_own_time),
		cmocka_unit_test(a_frame_binds_to_what_was_known_when_it_was_written),
		cmocka_unit_test(kernel_frames_never_bind_to_user_modules),
		cmocka_unit_test(an_offset_that_overflows_is_no_module),
		cmocka_unit_test(identities_follow_the_mappings),
		cmocka_unit_test(identities_of_two_symbolizers_differ),
		cmocka_unit_test(jit_symbols_never_fall_through),
		cmocka_unit_test(off_cpu_frames_keep_their_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

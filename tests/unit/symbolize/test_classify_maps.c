/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Perf maps against everything else that may name a frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "symkit.h"

static void perf_map_names_anonymous_memory(void **state)
{
	static const char *const paths[] = {
		"//anon", "[anon]", "[anon:jit]", "[heap]", "[stack]", "[stack:12]",
		"/dev/zero", "/dev/zero (deleted)", "/anon_hugepage (deleted)", "/SYSV00000000",
	};
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "10000 100 jitted code\n");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		uint32_t id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, paths[i]);

		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
		KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10010));
	}
	kit_read(&kit, NULL);
	for (size_t i = 0; i < 2 * sizeof(paths) / sizeof(*paths); i++)
		assert_string_equal(kit_name(kit_frame(&kit, i)), "jitted code");
	kit_close(&kit);
}

static void perf_map_leaves_files_alone(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/libpython3.12.so.1.0", "/memfd:code (deleted)", "[vdso]", "[uprobes]",
		"/bin/program", "anon", "",
	};
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "10000 100 jitted\n");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		uint32_t id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, paths[i]);

		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x10010));
		KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10010));
	}
	kit_read(&kit, NULL);
	for (size_t i = 0; i < 2 * sizeof(paths) / sizeof(*paths); i++) {
		assert_string_not_equal(kit_name(kit_frame(&kit, i)), "jitted");
		assert_non_null(strstr(kit_name(kit_frame(&kit, i)), "+0x10"));
	}
	kit_close(&kit);
}

static void perf_map_frames(void **state)
{
	const struct spulse_resolved_frame *frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "1000 100 _Znative()\n2000 100 py::work:/a/b.py:12\n");
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1020));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x2020));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1820));
	KIT_SAMPLE(&kit, KIT_OTHER, kit_user(0x1020));
	KIT_SAMPLE(&kit, KIT_PID, kit_kernel(0x1020));
	kit_read(&kit, NULL);
	frame = kit_frame(&kit, 0);
	assert_string_equal(kit_name(frame), "_Znative()");
	assert_string_equal(spulse_resolved_frame_module(frame), kit_path(&kit, "perf-4000000.map"));
	assert_int_equal(spulse_resolved_frame_offset(frame), 0x20);
	assert_int_equal(spulse_resolved_frame_origin(frame), SPULSE_ORIGIN_PERF_MAP);
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_NATIVE);
	assert_int_equal(spulse_resolved_frame_flags(frame), SPULSE_FRAME_JIT);
	frame = kit_frame(&kit, 1);
	assert_string_equal(kit_name(frame), "work");
	assert_string_equal(spulse_resolved_frame_file(frame), "/a/b.py");
	assert_string_equal(spulse_resolved_frame_basename(frame), "b.py");
	assert_int_equal(spulse_resolved_frame_kind(frame), SPULSE_FRAME_KIND_PYTHON);
	assert_int_equal(spulse_resolved_frame_flags(frame), SPULSE_FRAME_JIT);
	assert_int_equal(spulse_resolved_frame_line(frame), -1);
	assert_int_equal(spulse_resolved_frame_end_line(frame), -1);
	assert_int_equal(spulse_resolved_frame_end_column(frame), -1);
	assert_int_equal(spulse_resolved_frame_opcode(frame), -1);
	assert_false(spulse_resolved_frame_is_entry(frame));
	assert_string_equal(kit_name(kit_frame(&kit, 2)), "<0x1820>");
	assert_string_equal(kit_name(kit_frame(&kit, 3)), "<0x1020>");
	assert_string_equal(kit_name(kit_frame(&kit, 4)), "[kernel]+0x1020");
	kit_close(&kit);
}

static void perf_maps_can_be_left_out(void **state)
{
	const pid_t listed[] = { KIT_OTHER };

	(void)state;
	for (int mode = SPULSE_PERF_MAPS_NONE; mode <= SPULSE_PERF_MAPS_LISTED; mode++) {
		struct spulse_symbolizer_options options;
		struct kit kit;

		kit_open(&kit);
		kit_perf_map(&kit, KIT_PID, "1000 100 named\n");
		kit_perf_map(&kit, KIT_OTHER, "1000 100 other\n");
		KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1020));
		KIT_SAMPLE(&kit, KIT_OTHER, kit_user(0x1020));
		options = kit_options(&kit, NULL, NULL);
		options.perf_maps = mode;
		options.perf_map_pids = listed;
		options.perf_map_pid_count = 1;
		kit_read(&kit, &options);
		assert_string_equal(kit_name(kit_frame(&kit, 0)), "<0x1020>");
		assert_string_equal(kit_name(kit_frame(&kit, 1)),
				    mode == SPULSE_PERF_MAPS_LISTED ? "other" : "<0x1020>");
		kit_close(&kit);
	}
}

static void snapshot_reads_a_perf_map_once(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x1020));
	KIT_SAMPLE(&kit, KIT_PID, kit_user(0x2020));
	kit_perf_map(&kit, KIT_PID, "1000 100 first\n");
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "first");
	kit_perf_map(&kit, KIT_PID, "1000 100 first\n2000 100 second\n");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "<0x2020>");
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_map_names_anonymous_memory),
		cmocka_unit_test(perf_map_leaves_files_alone),
		cmocka_unit_test(perf_map_frames),
		cmocka_unit_test(perf_maps_can_be_left_out),
		cmocka_unit_test(snapshot_reads_a_perf_map_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

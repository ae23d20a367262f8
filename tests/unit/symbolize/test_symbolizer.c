/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What a symbolizer refuses, with which kind of error, and what is no error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symkit.h"

typedef struct spulse_symbolizer_options options_t;
static struct kit *current;
static struct spulse_native_backend faulty;
static const pid_t bad_pids[] = { 7, 0 };

static void perf_maps_out_of_range(options_t *o) { o->perf_maps = SPULSE_PERF_MAPS_LISTED + 1; }
static void kernel_out_of_range(options_t *o) { o->kernel_symbols = SPULSE_KERNEL_SYMBOLS_NONE + 1; }
static void cache_out_of_range(options_t *o) { o->stack_cache = SPULSE_CACHE_EXTERNAL + 1; }
static void servers_out_of_range(options_t *o) { o->debug_servers = SPULSE_DEBUG_SERVERS_NONE + 1; }
static void pids_missing(options_t *o) { o->perf_map_pid_count = 1; }

static void pid_zero(options_t *o)
{
	o->perf_map_pids = bad_pids;
	o->perf_map_pid_count = 2;
}

static void without_open(options_t *o)
{
	faulty = fake_backend_vtable;
	faulty.open = NULL;
	o->native = &faulty;
}

static void without_symbolize(options_t *o)
{
	faulty = fake_backend_vtable;
	faulty.symbolize = NULL;
	o->native = &faulty;
}

static void too_small_backend(options_t *o)
{
	faulty = fake_backend_vtable;
	faulty.size = 8;
	o->native = &faulty;
}

static void kernel_file(options_t *o, const char *name)
{
	o->kernel_symbols = SPULSE_KERNEL_SYMBOLS_FILE;
	o->kernel_symbols_path = name ? kit_path(current, name) : NULL;
}

static void kernel_path_missing(options_t *o) { kernel_file(o, NULL); }
static void kernel_file_missing(options_t *o) { kernel_file(o, "absent"); }
static void kernel_file_folder(options_t *o) { kernel_file(o, "folder"); }
static void kernel_file_link(options_t *o) { kernel_file(o, "link"); }
static void kernel_file_big(options_t *o) { kernel_file(o, "big"); }

static const struct refusal {
	void (*change)(options_t *options);
	enum spulse_error_kind kind;
	const char *says;
} refusals[] = {
	{ perf_maps_out_of_range, SPULSE_ERROR_INVALID_INPUT, "perf_maps" },
	{ kernel_out_of_range, SPULSE_ERROR_INVALID_INPUT, "kernel_symbols" },
	{ cache_out_of_range, SPULSE_ERROR_INVALID_INPUT, "stack_cache" },
	{ servers_out_of_range, SPULSE_ERROR_INVALID_INPUT, "debug_servers" },
	{ pids_missing, SPULSE_ERROR_INVALID_INPUT, "perf_map_pids" },
	{ pid_zero, SPULSE_ERROR_INVALID_INPUT, "process id 0" },
	{ without_open, SPULSE_ERROR_INVALID_INPUT, "open" },
	{ without_symbolize, SPULSE_ERROR_INVALID_INPUT, "symbolize" },
	{ too_small_backend, SPULSE_ERROR_INVALID_INPUT, "backend" },
	{ kernel_path_missing, SPULSE_ERROR_INVALID_INPUT, "kernel_symbols_path" },
	{ kernel_file_missing, SPULSE_ERROR_IO, "absent" },
	{ kernel_file_folder, SPULSE_ERROR_INVALID_INPUT, "folder" },
	{ kernel_file_link, SPULSE_ERROR_INVALID_INPUT, "link" },
	{ kernel_file_big, SPULSE_ERROR_IO, "big" },
};

static void make_files(struct kit *kit)
{
	kit_file(kit, "big", "", 0);
	assert_int_equal(truncate(kit_path(kit, "big"), (64 << 20) + 1), 0);
	assert_int_equal(mkdir(kit_path(kit, "folder"), 0700), 0);
	assert_int_equal(symlink("big", kit_path(kit, "link")), 0);
}

static void options_are_checked(void **state)
{
	struct kit kit;

	(void)state;
	kit_open(&kit);
	current = &kit;
	make_files(&kit);
	kit_read(&kit, NULL);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		const struct refusal *refusal = &refusals[i];
		struct fake_backend fake = { 0 };
		struct spulse_symbolizer_options options =
			kit_options(&kit, &fake_backend_vtable, &fake);
		struct spulse_symbolizer *symbolizer = NULL;
		struct spulse_error *err = NULL;
		int r;

		refusal->change(&options);
		r = spulse_symbolizer_new(spulse_snapshot_source(kit.snapshot), &options,
					  &symbolizer, &err);
		if (r != -(int)refusal->kind || spulse_error_kind(err) != refusal->kind ||
		    !strstr(spulse_error_message(err), refusal->says))
			fail_msg("%s: %d, %s", refusal->says, r, spulse_error_message(err));
		assert_null(symbolizer);
		/* The backend's data stays the caller's. */
		assert_int_equal(fake.releases, 0);
		spulse_error_free(err);
	}
	kit_close(&kit);
}

/* Fields of a later version must be left alone; those of an earlier one need not be there. */
static void options_may_be_older_but_not_newer(void **state)
{
	struct {
		struct spulse_symbolizer_options known;
		uint64_t later;
	} options = { 0 };
	struct spulse_symbolizer *symbolizer = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_read(&kit, NULL);
	options.known = kit_options(&kit, NULL, NULL);
	options.known.size = sizeof(options);
	options.later = 1;
	assert_int_equal(spulse_symbolizer_new(spulse_snapshot_source(kit.snapshot), &options.known,
					       &symbolizer, NULL),
			 -SPULSE_ERROR_UNSUPPORTED);
	options.later = 0;
	assert_int_equal(spulse_symbolizer_new(spulse_snapshot_source(kit.snapshot), &options.known,
					       &symbolizer, NULL), 0);
	spulse_symbolizer_free(symbolizer);
	options.known.size = offsetof(struct spulse_symbolizer_options, debug_dirs);
	options.known.debug_servers = 99; /* behind what the caller says to know */
	assert_int_equal(spulse_symbolizer_new(spulse_snapshot_source(kit.snapshot), &options.known,
					       &symbolizer, NULL), 0);
	spulse_symbolizer_free(symbolizer);
	spulse_symbolizer_free(NULL);
	kit_close(&kit);
}

static void calls_are_checked(void **state)
{
	const uint64_t address = 0x1004;
	const struct spulse_resolved *resolved = NULL;
	struct spulse_symbolizer *symbolizer = NULL;
	const char *text = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_module(&kit, KIT_PID, 0x10000, 0x11200, "/absent");
	kit_read(&kit, NULL);
	assert_int_equal(spulse_symbolizer_new(NULL, NULL, &symbolizer, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_symbolizer_new_for_modules(NULL, 1, NULL, &symbolizer, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_symbolizer_module_report(kit.symbolizer, 1, &text, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_symbolizer_module_report(kit.symbolizer, 0, &text, NULL), 0);
	assert_int_equal(spulse_symbolizer_resolve_addresses(kit.symbolizer, &address, 1, &resolved,
							     NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_null(resolved);
	assert_null(symbolizer);
	kit_close(&kit);
}

static void one_file_that_cannot_be_read(void **state)
{
	static const struct {
		const char *name;
		enum spulse_error_kind kind;
	} cases[] = {
		{ "absent", SPULSE_ERROR_IO }, { "folder", SPULSE_ERROR_UNSUPPORTED },
		{ "text", SPULSE_ERROR_UNSUPPORTED }, { "empty", SPULSE_ERROR_UNSUPPORTED },
	};
	struct kit kit;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	assert_int_equal(mkdir(kit_path(&kit, "folder"), 0700), 0);
	kit_file(&kit, "text", "some text that is no program", 27);
	kit_file(&kit, "empty", "", 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct spulse_symbolizer *symbolizer = NULL;
		struct spulse_error *err = NULL;
		int r = spulse_symbolizer_new_for_file(kit_path(&kit, cases[i].name), NULL,
						       &symbolizer, &err);

		if (r != -(int)cases[i].kind || !strstr(spulse_error_message(err), cases[i].name))
			fail_msg("%s: %d, %s", cases[i].name, r, spulse_error_message(err));
		assert_null(symbolizer);
		spulse_error_free(err);
	}
	kit_close(&kit);
}

/* Missing symbols, files, perf maps: the frame keeps what is known. */
static void what_is_missing_is_no_error(void **state)
{
	struct spulse_symbolizer_options options;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x20000, "/absent/lib.so");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x10010), kit_user(0x90000),
		   kit_kernel(0xffffffffffff0000), spulse_frame_truncated_marker());
	options = kit_options(&kit, NULL, NULL);
	options.perf_map_dir = "/absent";
	options.debug_dirs = "/absent:/also/absent";
	options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_HOST;
	kit_read(&kit, &options);
	assert_int_equal(spulse_symbolizer_prepare(kit.symbolizer, NULL), 0);
	assert_int_equal(spulse_resolved_count(kit_resolve(&kit, 0)), 4);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 0), "lib.so+0x10");
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(options_may_be_older_but_not_newer),
		cmocka_unit_test(calls_are_checked),
		cmocka_unit_test(one_file_that_cannot_be_read),
		cmocka_unit_test(what_is_missing_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

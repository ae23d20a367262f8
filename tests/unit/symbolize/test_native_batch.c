/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What a backend of one's own is asked, when, and what becomes of its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "symkit.h"

static int try_resolve(struct kit *kit, size_t index, struct spulse_error **err)
{
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack = NULL;

	assert_int_equal(spulse_snapshot_stack(kit->snapshot, index, &stack, NULL), 1);
	return spulse_symbolizer_resolve(kit->symbolizer, stack, &resolved, err);
}

/* ---- batches ---- */

static void misses_of_a_stack_are_one_call(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11100), kit_pinned(id, 0x10000, 0x11000),
		   kit_user(5));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000), kit_pinned(id, 0x10000, 0x11100),
		   kit_pinned(id, 0x10000, 0x11150));
	kit_read_fake(&kit, &fake);
	assert_true(spulse_symbolizer_has_native_backend(kit.symbolizer));
	kit_resolve(&kit, 0);
	assert_int_equal(fake.calls, 1);
	assert_int_equal(fake.last_count, 2);
	assert_int_equal(fake.addresses[0], 0x11100);
	assert_int_equal(fake.addresses[1], 0x11000);
	assert_int_equal(fake.image_addresses[0], 0x1100);
	kit_resolve(&kit, 0);
	assert_int_equal(fake.calls, 1);
	/* Only what is new. */
	kit_resolve(&kit, 1);
	assert_int_equal(fake.calls, 2);
	assert_int_equal(fake.last_count, 1);
	assert_int_equal(fake.opens, 1);
	kit_close(&kit);
	assert_int_equal(fake.closes, 1);
	assert_int_equal(fake.releases, 1);
}

static void processes_have_states_of_their_own(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_elf(&kit, "lib.so", NULL);
	for (pid_t pid = KIT_PID; pid <= KIT_OTHER; pid++) {
		uint32_t id = kit_module(&kit, pid, 0x10000, 0x11200, kit_path(&kit, "lib.so"));

		KIT_SAMPLE(&kit, pid, kit_pinned(id, 0x10000, 0x11000));
	}
	/* No native frame: no state. */
	KIT_SAMPLE(&kit, KIT_OTHER + 1, kit_user(5));
	kit_read_fake(&kit, &fake);
	assert_int_equal(fake.opens, 0);
	for (size_t i = 0; i < 3; i++)
		kit_resolve(&kit, i);
	assert_int_equal(fake.opens, 2);
	kit_close(&kit);
	assert_int_equal(fake.closes, 2);
}

static void prepare_asks_for_everything_once(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	for (uint64_t i = 0; i < 64; i++)
		KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000 + i));
	kit_read_fake(&kit, &fake);
	assert_int_equal(spulse_symbolizer_prepare(kit.symbolizer, NULL), 0);
	assert_int_equal(fake.calls, 1);
	assert_int_equal(fake.lookups, 64);
	for (size_t i = 0; i < 64; i++)
		assert_string_equal(kit_name_at(kit_resolve(&kit, i), 0), "level0");
	assert_int_equal(fake.calls, 1);
	kit_close(&kit);
}

/* ---- answers ---- */

static void levels_are_innermost_first(void **state)
{
	struct fake_backend fake = { .levels = 3, .module = "shown.so", .flags = SPULSE_SYMBOL_HIDDEN };
	const struct spulse_resolved *resolved;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "python3.12", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000), kit_user(7));
	kit_read_fake(&kit, &fake);
	resolved = kit_resolve(&kit, 0);
	assert_int_equal(spulse_resolved_count(resolved), 4);
	for (unsigned int i = 0; i < 3; i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);

		assert_int_equal(spulse_resolved_frame_inline_depth(frame), 2 - i);
		assert_int_equal(spulse_resolved_frame_line(frame), 10 + i);
		assert_int_equal(spulse_resolved_frame_column(frame), 3);
		assert_int_equal(spulse_resolved_frame_pc(frame), 0x11000);
		assert_string_equal(spulse_resolved_frame_module(frame), "shown.so");
		assert_true(spulse_resolved_frame_should_ignore(frame));
		assert_true(spulse_resolved_frame_is_python_runtime(frame));
		assert_int_equal(spulse_resolved_frame_flags(frame),
				 SPULSE_FRAME_PYTHON_RUNTIME | SPULSE_FRAME_HIDDEN_DEFAULT);
	}
	assert_string_equal(kit_name_at(resolved, 0), "level0");
	assert_string_equal(kit_name_at(resolved, 2), "level2");
	assert_string_equal(kit_name_at(resolved, 3), "<0x7>");
	assert_null(spulse_resolved_at(resolved, 4));
	kit_close(&kit);
}

static void a_runtime_may_stay_visible(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "python3.12", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11000));
	kit_read_fake(&kit, &fake);
	assert_int_equal(spulse_resolved_frame_flags(kit_frame(&kit, 0)),
			 SPULSE_FRAME_PYTHON_RUNTIME);
	kit_close(&kit);
}

static void no_answer_is_final(void **state)
{
	struct fake_backend fake = { .silent = true };
	const struct spulse_resolved *resolved;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "python3.12", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read_fake(&kit, &fake);
	resolved = kit_resolve(&kit, 0);
	assert_string_equal(kit_name_at(resolved, 0), "python3.12+0x1004");
	assert_int_equal(spulse_resolved_frame_flags(spulse_resolved_at(resolved, 0)),
			 SPULSE_FRAME_PYTHON_RUNTIME | SPULSE_FRAME_HIDDEN_DEFAULT);
	assert_true(spulse_resolved_is_cacheable(resolved));
	kit_resolve(&kit, 0);
	assert_int_equal(fake.calls, 1);
	kit_close(&kit);
}

/* ---- failures ---- */

static void failures_keep_their_cause(void **state)
{
	struct fake_backend fake = { .fail_open = 1, .fail_calls = 1 };
	struct spulse_error *err = NULL;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004), kit_user(7));
	kit_read_fake(&kit, &fake);
	assert_int_equal(try_resolve(&kit, 0, &err), -SPULSE_ERROR_NATIVE_SYMBOLIZER);
	assert_int_equal(spulse_error_kind(err), SPULSE_ERROR_NATIVE_SYMBOLIZER);
	assert_non_null(spulse_error_cause(err));
	assert_int_equal(spulse_error_kind(spulse_error_cause(err)), SPULSE_ERROR_IO);
	assert_string_equal(spulse_error_domain(spulse_error_cause(err)), "fake");
	assert_int_equal(spulse_error_code(spulse_error_cause(err)), 17);
	spulse_error_free(err);
	err = NULL;
	/* Opened now, but the call fails: nothing of it is kept. */
	assert_int_equal(try_resolve(&kit, 0, &err), -SPULSE_ERROR_NATIVE_SYMBOLIZER);
	assert_int_equal(spulse_error_code(spulse_error_cause(err)), 18);
	assert_non_null(strstr(spulse_error_message(err), "fake"));
	spulse_error_free(err);
	assert_int_equal(try_resolve(&kit, 0, NULL), 0);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 0), "level0");
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.calls, 2);
	kit_close(&kit);
}

/* Built without one, the library has no names of modules until it is given a backend. */
static void a_backend_is_built_in_or_given(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	kit_perf_map(&kit, KIT_PID, "1000 100 jitted\n");
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004), kit_user(0x1010));
	kit_read(&kit, NULL);
	assert_int_equal(spulse_symbolizer_has_native_backend(kit.symbolizer),
			 spulse_native_default() != NULL);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 0),
			    spulse_native_default() ? "alpha" : "lib.so+0x1004");
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 1), "jitted");
	assert_true(spulse_resolved_is_cacheable(kit_resolve(&kit, 0)));
	kit_close(&kit);
}

/* ---- a wrapper ---- */

struct wrapper {
	int added;
};

static int wrapper_open(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	(void)data;
	return spulse_native_default()->open(NULL, pid, state_out, err);
}

static int wrapper_symbolize(void *state, const struct spulse_native_lookup *const *lookups,
			     size_t count, struct spulse_native_results *results,
			     struct spulse_error **err)
{
	struct spulse_native_results *inner = NULL;
	int r = spulse_native_results_new(count, &inner, err);

	if (!r)
		r = spulse_native_default()->symbolize(state, lookups, count, inner, err);
	for (size_t i = 0; i < count && !r; i++)
		for (size_t k = 0; k < spulse_native_results_count(inner, i) && !r; k++) {
			struct spulse_native_symbol symbol = *spulse_native_results_at(inner, i, k);

			symbol.module = "wrapped";
			r = spulse_native_results_add(results, i, &symbol, err);
		}
	spulse_native_results_free(inner);
	return r;
}

static void wrapper_close(void *state)
{
	spulse_native_default()->close(state);
}

static void built_in_backend_can_be_wrapped(void **state)
{
	/* As an older program would know it. */
	const struct spulse_native_backend wrapper = {
		.size = offsetof(struct spulse_native_backend, refresh), .name = "wrapper",
		.open = wrapper_open, .symbolize = wrapper_symbolize, .close = wrapper_close,
	};
	struct spulse_symbolizer_options options;
	const struct spulse_resolved *resolved;
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11104));
	options = kit_options(&kit, &wrapper, NULL);
	kit_read(&kit, &options);
	resolved = kit_resolve(&kit, 0);
	assert_string_equal(kit_name_at(resolved, 0), "beta");
	assert_string_equal(spulse_resolved_frame_module(spulse_resolved_at(resolved, 0)), "wrapped");
	kit_close(&kit);
}

/* ---- requests and results of one's own ---- */

static void requests_can_be_made(void **state)
{
	SPULSE_CLEANUP(native_module) module = NULL;
	SPULSE_CLEANUP(native_module) other = NULL;
	SPULSE_CLEANUP(native_lookup) lookup = NULL;

	(void)state;
	assert_int_equal(spulse_native_module_new("/a/lib.so (deleted)", &module, NULL), 0);
	assert_int_equal(spulse_native_module_new("/a/python3", &other, NULL), 0);
	assert_string_equal(spulse_native_module_path(module), "/a/lib.so (deleted)");
	assert_int_equal(spulse_native_module_path_len(module), 19);
	assert_string_equal(spulse_native_module_normalized_path(module), "/a/lib.so");
	assert_string_equal(spulse_native_module_name(module), "lib.so");
	assert_null(spulse_native_module_image_path(module));
	assert_int_equal(spulse_native_module_image_fd(module), -1);
	assert_int_equal(spulse_native_module_image_source(module), SPULSE_IMAGE_NONE);
	assert_int_equal(spulse_native_module_start(module), 0);
	assert_true(spulse_native_module_end(module) == UINT64_MAX);
	assert_int_equal(spulse_native_module_image_base(module).runtime, 0);
	assert_false(spulse_native_module_is_python_runtime(module));
	assert_true(spulse_native_module_is_python_runtime(other));
	assert_true(spulse_native_module_image_id(module) != spulse_native_module_image_id(other));
	assert_int_equal(spulse_native_lookup_new(0, module, 1, 2, 3, &lookup, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_native_lookup_new(9, module, 1, 2, 3, &lookup, NULL), 0);
	assert_int_equal(spulse_native_lookup_pid(lookup), 9);
	assert_ptr_equal(spulse_native_lookup_module(lookup), module);
	assert_int_equal(spulse_native_lookup_address(lookup), 1);
	assert_int_equal(spulse_native_lookup_relative_address(lookup), 2);
	assert_int_equal(spulse_native_lookup_image_address(lookup), 3);
}

static void results_can_be_checked(void **state)
{
	struct spulse_native_symbol symbol = { .size = sizeof(symbol), .name = "f" };
	SPULSE_CLEANUP(native_results) results = NULL;

	(void)state;
	assert_int_equal(spulse_native_results_new(2, &results, NULL), 0);
	assert_int_equal(spulse_native_results_add(results, 2, &symbol, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_native_results_add(results, 1, &symbol, NULL), 0);
	symbol.name = "g";
	assert_int_equal(spulse_native_results_add(results, 1, &symbol, NULL), 0);
	symbol.name = NULL;
	assert_int_equal(spulse_native_results_add(results, 1, &symbol, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_native_results_count(results, 0), 0);
	assert_int_equal(spulse_native_results_count(results, 1), 2);
	assert_string_equal(spulse_native_results_at(results, 1, 0)->name, "f");
	assert_string_equal(spulse_native_results_at(results, 1, 1)->name, "g");
	assert_null(spulse_native_results_at(results, 1, 2));
	assert_null(spulse_native_results_at(results, 0, 0));
}

/* ---- lists of modules ---- */

static void list_without_a_spool(void **state)
{
	struct spulse_module_fields fields = { .size = sizeof(fields), .pid = 5, .start = 0x1000,
					       .end = 0x2000, .path = "/x/y", .path_len = 4 };
	const struct spulse_frame good = kit_user(0x1234);
	const struct spulse_frame bad = { 1, 0, SPULSE_NO_MODULE, SPULSE_FRAME_TRUNCATED };
	const struct spulse_resolved *resolved;
	const struct spulse_module *list[1];
	struct spulse_symbolizer *symbolizer;
	struct spulse_module *module;

	(void)state;
	assert_int_equal(spulse_module_new(&fields, &module, NULL), 0);
	list[0] = module;
	assert_int_equal(spulse_symbolizer_new_for_modules(list, 1, NULL, &symbolizer, NULL), 0);
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, 5, &good, 1, &resolved, NULL), 0);
	assert_string_equal(kit_name_at(resolved, 0), "y+0x234");
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, 6, &good, 1, &resolved, NULL), 0);
	assert_string_equal(kit_name_at(resolved, 0), "<0x1234>");
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, 5, &bad, 1, &resolved, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, 0, &good, 1, &resolved, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_symbolizer_free(symbolizer);
	spulse_module_free(module);
}

/* Ids of modules are found by value; a list that has one of them twice is refused. */
static void list_with_ids_in_any_order(void **state)
{
	const struct spulse_module *list[3];
	struct spulse_symbolizer *symbolizer = NULL;
	const struct spulse_resolved *resolved;
	const struct spulse_source *source;
	struct spulse_error *err = NULL;
	struct spulse_frame frame;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	for (uint64_t i = 0; i < 9; i++)
		kit_module(&kit, KIT_PID, 0x1000 * (i + 1), 0x1000 * (i + 2), i == 7 ? "/seven" : "/x");
	kit_read(&kit, NULL);
	source = spulse_snapshot_source(kit.snapshot);
	list[0] = spulse_source_module_by_id(source, 7);
	list[1] = spulse_source_module_by_id(source, 2);
	list[2] = spulse_source_module_by_id(source, 7);
	assert_int_equal(spulse_symbolizer_new_for_modules(list, 3, NULL, &symbolizer, &err),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_non_null(strstr(spulse_error_message(err), "7"));
	spulse_error_free(err);
	assert_null(symbolizer);
	assert_int_equal(spulse_symbolizer_new_for_modules(list, 2, NULL, &symbolizer, NULL), 0);
	frame = kit_pinned(7, 0x8000, 0x8010);
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, KIT_PID, &frame, 1, &resolved,
						       NULL), 0);
	assert_string_equal(kit_name_at(resolved, 0), "seven+0x10");
	/* Pinned to a module that nobody knows: the address is all there is. */
	frame = kit_pinned(3, 0x4000, 0x4010);
	assert_int_equal(spulse_symbolizer_resolve_raw(symbolizer, KIT_PID, &frame, 1, &resolved,
						       NULL), 0);
	assert_string_equal(kit_name_at(resolved, 0), "<0x4010>");
	spulse_symbolizer_free(symbolizer);
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_of_a_stack_are_one_call),
		cmocka_unit_test(processes_have_states_of_their_own),
		cmocka_unit_test(prepare_asks_for_everything_once),
		cmocka_unit_test(levels_are_innermost_first),
		cmocka_unit_test(a_runtime_may_stay_visible),
		cmocka_unit_test(no_answer_is_final),
		cmocka_unit_test(failures_keep_their_cause),
		cmocka_unit_test(a_backend_is_built_in_or_given),
		cmocka_unit_test(built_in_backend_can_be_wrapped),
		cmocka_unit_test(requests_can_be_made),
		cmocka_unit_test(results_can_be_checked),
		cmocka_unit_test(list_without_a_spool),
		cmocka_unit_test(list_with_ids_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

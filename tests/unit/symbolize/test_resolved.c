/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "symbolize/resolved.h"

static void a_run_is_reused_only_when_all_of_it_is_free(void **state)
{
	struct frame_store *store = frame_store_new();
	const struct spulse_resolved_frame *held;
	uint32_t first, second;

	(void)state;
	assert_true(frame_run_new(store, 3, &first));
	assert_true(frame_set_name(frame_at(store, first + 1), "held", 4));
	held = spulse_resolved_frame_ref(frame_at(store, first + 1));
	frame_run_put(store, first);
	assert_true(frame_run_new(store, 3, &second));
	assert_int_not_equal(first, second);
	assert_string_equal(spulse_resolved_frame_name(held), "held");
	spulse_resolved_frame_unref(held);
	frame_run_put(store, second);
	assert_int_equal(store->live_frames, 0);
	assert_int_equal(store->strings.count, 0);
	assert_true(frame_run_new(store, 3, &first));
	assert_int_equal(first, second);
	frame_store_drop(store);
}

static void serials_never_come_back(void **state)
{
	struct frame_store *store = frame_store_new();
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint32_t first;

		assert_true(frame_run_new(store, 1, &first));
		if (i)
			assert_true(frame_at(store, first)->serial > last);
		last = frame_at(store, first)->serial;
		frame_run_put(store, first);
	}
	assert_int_equal(store->slabs.len, 1);
	frame_store_drop(store);
}

static void a_held_frame_outlives_its_store_s_owner(void **state)
{
	struct frame_store *store = frame_store_new();
	const struct spulse_resolved_frame *frame;
	uint32_t first;

	(void)state;
	assert_true(frame_run_new(store, 1, &first));
	assert_true(frame_set_name(frame_at(store, first), "kept", 4));
	frame = spulse_resolved_frame_ref(frame_at(store, first));
	frame_run_put(store, first);
	frame_store_drop(store);
	assert_string_equal(spulse_resolved_frame_name(frame), "kept");
	spulse_resolved_frame_unref(frame);
}

static void evaluation_loops_are_known_by_name(void **state)
{
	static const struct {
		const char *name;
		bool is_eval;
	} cases[] = {
		{ "_PyEval_EvalFrameDefault", true },
		{ "PyEval_EvalFrameEx", true },
		{ "_TAIL_CALL_BINARY_OP.llvm.123", true },
		{ "TAIL_CALL_LOAD.llvm.1", true },
		{ "_TAIL_CALL_BINARY_OP", false },
		{ "PyEval_EvalCode", false },
	};
	struct frame_store *store = frame_store_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t first;

		assert_true(frame_run_new(store, 1, &first));
		assert_true(frame_set_name(frame_at(store, first), cases[i].name,
					   strlen(cases[i].name)));
		assert_int_equal(spulse_resolved_frame_is_eval_frame(frame_at(store, first)),
				 cases[i].is_eval);
	}
	frame_store_drop(store);
}

static void a_frame_without_a_name_shows_its_address(void **state)
{
	struct frame_store *store = frame_store_new();
	char buf[16];
	uint32_t first;

	(void)state;
	assert_true(frame_run_new(store, 1, &first));
	frame_at(store, first)->pc = 0xabcdef;
	assert_false(spulse_resolved_frame_has_symbol(frame_at(store, first)));
	assert_null(spulse_resolved_frame_name(frame_at(store, first)));
	assert_string_equal(
		spulse_resolved_frame_display_name(frame_at(store, first), buf, sizeof(buf)),
		"<0xabcdef>");
	assert_int_equal(spulse_resolved_frame_display_name_len(frame_at(store, first)), 10);
	assert_string_equal(spulse_resolved_frame_display_name(frame_at(store, first), buf, 5),
			    "<0xa");
	assert_string_equal(spulse_resolved_frame_module(frame_at(store, first)), "");
	assert_int_equal(spulse_resolved_frame_line(frame_at(store, first)), -1);
	frame_store_drop(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_reused_only_when_all_of_it_is_free),
		cmocka_unit_test(serials_never_come_back),
		cmocka_unit_test(a_held_frame_outlives_its_store_s_owner),
		cmocka_unit_test(evaluation_loops_are_known_by_name),
		cmocka_unit_test(a_frame_without_a_name_shows_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

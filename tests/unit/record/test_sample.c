/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "offline.h"

static struct offline o;

static int setup(void **state)
{
	(void)state;
	offline_init(&o, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offline_release(&o);
	return 0;
}

static void put(struct perf_event event)
{
	fake_source_put(&o.fake, 0, &event);
}

static void run(void)
{
	offline_start(&o);
	offline_finish(&o);
}

static void samples_without_ids_or_time_are_counted_and_dropped(void **state)
{
	struct perf_event event;

	(void)state;
	put(offline_sample(-1, -1, 1, 0x1000));
	put(offline_sample(5, -1, 2, 0x1000));
	put(offline_sample(0, 0, 3, 0x1000));
	event = offline_sample(5, 5, 4, 0x1000);
	event.has_ids = false;
	put(event);
	event = offline_sample(5, 5, 5, 0x1000);
	event.has_time = false;
	put(event);
	put(offline_sample(5, 5, 6, 0x1000));
	run();
	assert_int_equal(o.summary.sample_events, 6);
	assert_int_equal(o.summary.samples, 1);
	assert_int_equal(o.summary.missing_pid_samples, 2);
	assert_int_equal(o.summary.missing_tid_samples, 1);
	assert_int_equal(o.summary.idle_tid_samples, 1);
	assert_int_equal(o.summary.missing_timestamp_samples, 1);
}

static void what_cannot_be_walked_keeps_the_sampled_address(void **state)
{
	static const uint64_t regs[17] = { [7] = 0x7000, [8] = 0x1234 };
	struct perf_event event;

	(void)state;
	/* No registers. */
	put(offline_sample(5, 5, 1, 0x1000));
	/* Registers, no stack. */
	event = offline_sample(5, 5, 2, 0x2000);
	event.sample.regs = regs;
	event.sample.regs_mask = 0xff01ff;
	put(event);
	/* Registers, and a stack of which nothing was copied. */
	event.time = 3;
	event.sample.ip = 0x3000;
	event.sample.has_stack = true;
	event.sample.stack_requested = 4096;
	put(event);
	run();
	assert_int_equal(o.summary.samples, 3);
	assert_int_equal(
		o.summary.sample_errors[SPULSE_SAMPLE_ERROR_USER_REGISTERS_MISSING], 1);
	assert_int_equal(o.summary.sample_errors[SPULSE_SAMPLE_ERROR_STACK_READ], 2);
	assert_string_equal(offline_next_stack(&o), "user:1000");
	assert_string_equal(offline_next_stack(&o), "user:2000");
	assert_string_equal(offline_next_stack(&o), "user:3000");
	assert_string_equal(offline_next_stack(&o), "none");
}

static void kernel_samples_are_excluded_where_the_kernel_is_not_recorded(void **state)
{
	struct perf_event event = offline_sample(5, 5, 1, 0xffffffff81000000);

	(void)state;
	o.options.include_kernel = false;
	event.misc = PERF_RECORD_MISC_KERNEL;
	put(event);
	event.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	put(event);
	run();
	assert_int_equal(o.summary.excluded_kernel_samples, 2);
	assert_int_equal(o.summary.samples, 0);
	assert_int_equal(spulse_summary_sample_errors(&o.summary), 0);
}

static void only_the_leading_kernel_frames_of_a_call_chain_are_kept(void **state)
{
	static const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
		PERF_CONTEXT_USER, 0x4000, 0x5000, PERF_CONTEXT_KERNEL, 0xffffffff81000030,
	};
	struct perf_event event = offline_sample(5, 5, 1, 0xffffffff81000010);

	(void)state;
	event.misc = PERF_RECORD_MISC_KERNEL;
	event.sample.callchain = chain;
	event.sample.callchain_len = sizeof(chain) / sizeof(chain[0]);
	put(event);
	run();
	assert_int_equal(o.summary.ignored_user_callchain_frames, 3);
	/* The first address is where the CPU was, the next one where it would return to. */
	assert_string_equal(offline_next_stack(&o),
			    "kernel:ffffffff81000010 kernel:ffffffff8100001f");
}

static void a_kernel_sample_without_a_chain_keeps_its_address(void **state)
{
	struct perf_event event = offline_sample(5, 5, 1, 0xffffffff81000010);

	(void)state;
	event.misc = PERF_RECORD_MISC_HYPERVISOR;
	put(event);
	run();
	assert_string_equal(offline_next_stack(&o), "kernel:ffffffff81000010");
	assert_int_equal(spulse_summary_sample_errors(&o.summary), 0);
}

static void a_sample_without_any_frame_writes_nothing(void **state)
{
	(void)state;
	put(offline_sample(5, 5, 1, 0));
	run();
	assert_int_equal(o.summary.empty_stack_samples, 1);
	assert_int_equal(o.summary.samples, 0);
	assert_int_equal(o.summary.sample_events, 1);
}

static void a_walk_that_leaves_the_stack_ends_with_the_marker(void **state)
{
	uint64_t stack[8] = { 0 }, regs[17] = { 0 };
	struct perf_event event = offline_sample(5, 5, 1, 0x999);

	(void)state;
	regs[6] = 0x7ffd00007010; /* frame pointer */
	regs[7] = 0x7ffd00007000;
	regs[8] = 0x401234;
	stack[2] = 0x7ffd00009000; /* outside */
	stack[3] = 0x402235;
	put(offline_mmap(5, 1, 0x400000, 0x100000, 0x400000, "//anon"));
	event.sample.regs = regs;
	event.sample.regs_mask = 0xff01ff;
	event.sample.has_stack = true;
	event.sample.stack = (const uint8_t *)stack;
	event.sample.stack_len = sizeof(stack);
	event.sample.stack_requested = 4096;
	put(event);
	run();
	/* The register, not the sampled address, is the first frame. */
	assert_string_equal(offline_next_stack(&o), "user:401234 user:402234 [cut]");
	assert_int_equal(o.summary.truncated_frame_markers, 1);
	assert_int_equal(o.summary.sample_errors[SPULSE_SAMPLE_ERROR_STACK_TRUNCATED], 1);
	assert_int_equal(o.summary.unwind_fallbacks[SPULSE_UNWIND_FALLBACK_NO_MODULE], 1);
}

/* Samples of processes of which no mapping could be read. */
static void frame_pointers_lead_on_where_no_mapping_is_known(void **state)
{
	enum { SP = 0x7000, FP = SP + 16, OUTER = SP + 48 };
	static const struct {
		uint64_t frame_pointer, saved, return_address;
		const char *stack;
	} rows[] = {
		{ FP, OUTER, 0x402235, "user:401234 user:402234 user:403456" },
		{ FP, 0, 0x402235, "user:401234 user:402234" },
		{ FP, OUTER, 0, "user:401234" },
		{ 0, OUTER, 0x402235, "user:401234" },
		/* What cannot be a call is none. */
		{ FP, OUTER, 0x20, "user:401234 [cut]" },
		{ FP, OUTER, SP + 24, "user:401234 [cut]" },
		{ FP, OUTER, UINT64_MAX, "user:401234 [cut]" },
		{ FP, FP, 0x402235, "user:401234 [cut]" },
		{ FP, SP, 0x402235, "user:401234 [cut]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t regs[17] = { [6] = rows[i].frame_pointer, [7] = SP, [8] = 0x401234 };
		uint64_t stack[8] = { [2] = rows[i].saved, [3] = rows[i].return_address,
				      [7] = 0x403457 };
		struct perf_event event = offline_sample(5, 5, 1, 0x999);

		if (i) {
			offline_release(&o);
			offline_init(&o, 1);
		}
		event.sample.regs = regs;
		event.sample.regs_mask = 0xff01ff;
		event.sample.has_stack = true;
		event.sample.stack = (const uint8_t *)stack;
		event.sample.stack_len = event.sample.stack_requested = sizeof(stack);
		put(event);
		run();
		assert_string_equal(offline_next_stack(&o), rows[i].stack);
	}
}

static void lost_records_count_nothing_and_lost_samples_do(void **state)
{
	struct perf_event event = offline_event(PERF_RECORD_LOST, 5, 5, 1);

	(void)state;
	event.lost.count = 100;
	put(event);
	event.type = PERF_RECORD_LOST_SAMPLES;
	event.lost.count = 11;
	put(event);
	run();
	assert_int_equal(o.summary.lost_events, 11);
	assert_int_equal(o.summary.lifecycle_gaps, 0);
}

static void samples_keep_their_times_and_ids(void **state)
{
	const struct spulse_stack *stack;

	(void)state;
	put(offline_sample(5, 6, 1000, 0x1000));
	put(offline_sample(5, 7, 900, 0x1000));
	run();
	assert_int_equal(spulse_stacks_next(o.stacks, &stack, NULL), 1);
	assert_int_equal(spulse_stack_timestamp_ns(stack), 1000);
	assert_int_equal(spulse_stack_tid(stack), 6);
	assert_int_equal(spulse_stacks_next(o.stacks, &stack, NULL), 1);
	assert_int_equal(spulse_stack_timestamp_ns(stack), 900);
	assert_int_equal(spulse_stack_tid(stack), 7);
}

static void a_second_finish_is_refused(void **state)
{
	(void)state;
	run();
	assert_int_equal(spulse_recorder_finish(o.recorder, NULL, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_without_ids_or_time_are_counted_and_dropped),
		TEST(what_cannot_be_walked_keeps_the_sampled_address),
		TEST(kernel_samples_are_excluded_where_the_kernel_is_not_recorded),
		TEST(only_the_leading_kernel_frames_of_a_call_chain_are_kept),
		TEST(a_kernel_sample_without_a_chain_keeps_its_address),
		TEST(a_sample_without_any_frame_writes_nothing),
		TEST(a_walk_that_leaves_the_stack_ends_with_the_marker),
		TEST(frame_pointers_lead_on_where_no_mapping_is_known),
		TEST(lost_records_count_nothing_and_lost_samples_do),
		TEST(samples_keep_their_times_and_ids),
		TEST(a_second_finish_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

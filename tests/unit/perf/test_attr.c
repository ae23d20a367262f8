/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "perf/live.h"

/* Bits of the flag word, as numbered by the kernel's structure. */
enum {
	BIT_DISABLED = 0,
	BIT_INHERIT = 1,
	BIT_EXCLUDE_KERNEL = 5,
	BIT_MMAP = 8,
	BIT_COMM = 9,
	BIT_FREQ = 10,
	BIT_ENABLE_ON_EXEC = 12,
	BIT_TASK = 13,
	BIT_WATERMARK = 14,
	BIT_SAMPLE_ID_ALL = 18,
	BIT_EXCLUDE_GUEST = 20,
	BIT_EXCLUDE_CALLCHAIN_KERNEL = 21,
	BIT_EXCLUDE_CALLCHAIN_USER = 22,
	BIT_MMAP2 = 23,
	BIT_USE_CLOCKID = 25,
	BIT_CONTEXT_SWITCH = 26,
	BIT_INHERIT_THREAD = 35,
};

static uint64_t bit(int n)
{
	return 1ull << n;
}

/* The structure word by word, from the kernel's layout and not from its C names. */
static void expected_words(uint64_t words[16], uint64_t type_size, uint64_t config, uint64_t flags)
{
	memset(words, 0, 16 * sizeof(uint64_t));
	words[0] = type_size;
	words[1] = config;
	words[2] = 997;
	words[3] = 0x3027;
	words[4] = 16;
	words[5] = flags;
	/* wakeup_watermark, then bp_type: what comes in 20 ms still has room. */
	words[6] = (1 << 20) - 997 * (32768 + 512) / 50;
#if defined(__x86_64__)
	words[10] = 0xff01ff;
#else
	words[10] = 0x1ffffffff;
#endif
	words[11] = 32768 | (uint64_t)CLOCK_MONOTONIC << 32;
}

static void check(bool kernel, bool children, bool on_exec)
{
	struct perf_options options = {
		.frequency = 997,
		.stack_size = 32768,
		.include_kernel = kernel,
		.inherit_children = children,
	};
	struct perf_open_request request = {
		.options = &options,
		.frequency = 997,
		.on_exec = on_exec,
		.tid = 5,
		.ring_bytes = 1 << 20,
	};
	uint64_t words[16], flags;
	struct perf_event_attr attr;
	struct perf_how how;

	flags = bit(BIT_DISABLED) | bit(BIT_INHERIT) | bit(BIT_MMAP) | bit(BIT_COMM) |
		bit(BIT_FREQ) | bit(BIT_TASK) | bit(BIT_WATERMARK) | bit(BIT_SAMPLE_ID_ALL) |
		bit(BIT_EXCLUDE_CALLCHAIN_USER) | bit(BIT_MMAP2) | bit(BIT_USE_CLOCKID);
	if (!kernel)
		flags |= bit(BIT_EXCLUDE_KERNEL) | bit(BIT_EXCLUDE_CALLCHAIN_KERNEL);
	if (!children)
		flags |= bit(BIT_INHERIT_THREAD);
	if (on_exec)
		flags |= bit(BIT_ENABLE_ON_EXEC);
	expected_words(words, 0 | 128ull << 32, 0, flags);
	perf_how_init(&how, &options, PERF_KIND_SAMPLING);
	memset(&attr, 0xff, sizeof(attr));
	perf_attr_build(&attr, &request, &how);
	assert_memory_equal(&attr, words, 128);
}

static void test_attr_is_the_table_byte_for_byte(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		check(i & 1, i & 2, i & 4);
}

static void test_attr_of_the_cpu_clock(void **state)
{
	struct perf_options options = { .frequency = 1, .event = SPULSE_EVENT_CPU_CLOCK };
	struct perf_open_request request = { .options = &options, .frequency = 1, .tid = 5 };
	struct perf_event_attr attr;
	struct perf_how how;

	(void)state;
	perf_how_init(&how, &options, PERF_KIND_SAMPLING);
	perf_attr_build(&attr, &request, &how);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	/* Without a stack there are no registers either. */
	assert_int_equal(attr.sample_type, 0x27);
	assert_int_equal(attr.wakeup_watermark, 1);
}

static uint64_t watermark_of(uint32_t frequency, uint64_t ring_bytes)
{
	struct perf_options options = { .frequency = frequency, .stack_size = 32768 };
	struct perf_open_request request = {
		.options = &options,
		.frequency = frequency,
		.ring_bytes = ring_bytes,
	};
	struct perf_event_attr attr;
	struct perf_how how;

	perf_how_init(&how, &options, PERF_KIND_SAMPLING);
	perf_attr_build(&attr, &request, &how);
	assert_int_equal(attr.watermark, 1);
	return attr.wakeup_watermark;
}

static void test_wake_ups_are_few_but_in_time(void **state)
{
	const uint64_t sample = 32768 + 512;

	(void)state;
	/* Half of a ring that is large for its rate. */
	assert_int_equal(watermark_of(10000, 16 << 20), 8 << 20);
	/* What comes in 100 ms. */
	assert_int_equal(watermark_of(100, 16 << 20), 10 * sample);
	assert_int_equal(watermark_of(1, 16 << 20), sample / 10);
	/* Room for 20 ms is left. */
	assert_int_equal(watermark_of(1000, 1 << 20), (1 << 20) - 20 * sample);
	/* An eighth of a ring that is small for its rate. */
	assert_int_equal(watermark_of(10000, 1 << 20), 128 << 10);
	assert_int_equal(watermark_of(10000, 65536), 8192);
}

static void test_attr_of_switches_takes_one_sample_each(void **state)
{
	struct perf_options options = { .frequency = 99, .stack_size = 8192, .off_cpu = true };
	struct perf_open_request request = {
		.options = &options,
		.kind = PERF_KIND_SWITCH,
		.frequency = 99,
		.tid = 5,
		.ring_bytes = 65536,
	};
	struct perf_event_attr attr;
	struct perf_layout layout;
	struct perf_how how;

	(void)state;
	perf_how_init(&how, &options, PERF_KIND_SWITCH);
	perf_attr_build(&attr, &request, &how);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CONTEXT_SWITCHES);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 1);
	assert_int_equal(attr.exclude_kernel, 0);
	assert_int_equal(attr.context_switch, 1);
	assert_int_equal(attr.mmap | attr.mmap2 | attr.comm | attr.task, 0);
	perf_attr_layout(&attr, PERF_KIND_SWITCH, &layout);
	assert_int_equal(layout.event_id, PERF_EVENT_CONTEXT_SWITCH);
	assert_int_equal(layout.sample_type, 0x3027);
}

static void test_system_wide_events_do_not_inherit(void **state)
{
	struct perf_options options = { .frequency = 99, .inherit_children = true };
	struct perf_open_request request = { .options = &options, .frequency = 99, .tid = -1 };
	struct perf_event_attr attr;
	struct perf_how how;

	(void)state;
	perf_how_init(&how, &options, PERF_KIND_SAMPLING);
	perf_attr_build(&attr, &request, &how);
	assert_int_equal(attr.inherit, 0);
	assert_int_equal(attr.inherit_thread, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attr_is_the_table_byte_for_byte),
		cmocka_unit_test(test_attr_of_the_cpu_clock),
		cmocka_unit_test(test_wake_ups_are_few_but_in_time),
		cmocka_unit_test(test_attr_of_switches_takes_one_sample_each),
		cmocka_unit_test(test_system_wide_events_do_not_inherit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

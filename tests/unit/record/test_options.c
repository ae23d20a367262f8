/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "record/options.h"

#include <stackpulse/spool.h>

static struct spulse_recorder_options resolved;

static int resolve(const struct spulse_recorder_options *given)
{
	return options_resolve(&resolved, given, NULL);
}

#define RESOLVE(...) \
	resolve(&(struct spulse_recorder_options){ .size = sizeof(resolved), __VA_ARGS__ })

static void nothing_means_the_defaults(void **state)
{
	(void)state;
	assert_int_equal(resolve(NULL), 0);
	assert_int_equal(resolved.frequency, 1000);
	assert_int_equal(resolved.stack_size, 32768);
	assert_int_equal(resolved.format, SPULSE_SPOOL_FORMAT_4);
	assert_int_equal(resolved.publish_interval_ns, 500000000);
	assert_int_equal(RESOLVE(.frequency = 0), 0);
	assert_int_equal(resolved.frequency, 1000);
}

static void initialized_options_are_the_defaults(void **state)
{
	struct spulse_recorder_options options;
	const struct spulse_recorder_options zero = { .size = sizeof(zero) };

	(void)state;
	memset(&options, 0xff, sizeof(options));
	spulse_recorder_options_init(&options, sizeof(options));
	assert_memory_equal(&options, &zero, sizeof(zero));
	assert_int_equal(resolve(&options), 0);
	/* One that knew fewer fields keeps its hands off the rest. */
	memset(&options, 0xff, sizeof(options));
	spulse_recorder_options_init(&options, offsetof(struct spulse_recorder_options, follow));
	assert_int_equal(options.size, offsetof(struct spulse_recorder_options, follow));
	assert_int_equal(options.frequency, 0);
	assert_int_equal(options.follow, UINT32_MAX);
	assert_int_equal(resolve(&options), 0);
	assert_int_equal(resolved.follow, 0);
}

static void a_rate_and_the_greatest_rate_exclude_each_other(void **state)
{
	(void)state;
	assert_int_equal(RESOLVE(.frequency = 99, .frequency_maximum = true),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void the_greatest_rate_is_the_kernels(void **state)
{
	int64_t limit;
	uint32_t hz;

	(void)state;
	if (read_file_number("/proc/sys/kernel/perf_event_max_sample_rate", &limit) < 0)
		skip();
	assert_int_equal(spulse_max_sample_rate(&hz, NULL), 0);
	assert_int_equal(hz, limit);
	assert_int_equal(RESOLVE(.frequency_maximum = true), 0);
	assert_int_equal(resolved.frequency, limit);
}

static void stacks_are_limited_and_rounded(void **state)
{
	(void)state;
	assert_int_equal(RESOLVE(.stack_size = 65529), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.stack_size = 65528), 0);
	assert_int_equal(resolved.stack_size, 65528);
	assert_int_equal(RESOLVE(.stack_size = 13), 0);
	assert_int_equal(resolved.stack_size, 16);
}

static void unknown_choices_are_refused(void **state)
{
	(void)state;
	assert_int_equal(RESOLVE(.follow = 3), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.sampling_event = 3), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.format = 5), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.python = 3), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.publish_interval_ns = -1), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.unused = {true}), -SPULSE_ERROR_UNSUPPORTED);
}

static void the_callers_own_times_belong_to_version_3(void **state)
{
	(void)state;
	assert_int_equal(RESOLVE(.start_timestamp_us = 1), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.sample_interval_us = 1), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(RESOLVE(.sample_interval_us = 1, .format = SPULSE_SPOOL_FORMAT_3), 0);
	assert_int_equal(resolved.sample_interval_us, 1);
}

static void options_of_a_later_version_are_refused_when_set(void **state)
{
	struct {
		struct spulse_recorder_options known;
		uint64_t later;
	} given = { .known = { .size = sizeof(given) } };

	(void)state;
	assert_int_equal(resolve(&given.known), 0);
	given.later = 1;
	assert_int_equal(resolve(&given.known), -SPULSE_ERROR_UNSUPPORTED);
}

static void options_of_an_earlier_version_are_short(void **state)
{
	struct spulse_recorder_options given = {
		.size = offsetof(struct spulse_recorder_options, ring_buffer_stacks),
		.frequency = 99,
		.ring_buffer_stacks = 77,
	};

	(void)state;
	assert_int_equal(resolve(&given), 0);
	assert_int_equal(resolved.frequency, 99);
	assert_int_equal(resolved.ring_buffer_stacks, 0);
}

static void default_rings_stay_below_32_mib_together(void **state)
{
	static const size_t cpus[] = { 1, 2, 3, 4, 8, 16, 64 };
	uint32_t stacks;

	(void)state;
	assert_int_equal(RESOLVE(.frequency = 10000), 0);
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		assert_int_equal(options_ring_stacks(&resolved, cpus[i], &stacks, NULL), 0);
		assert_true((uint64_t)stacks * resolved.stack_size * cpus[i] <= 32 << 20);
		assert_true(stacks >= 8);
	}
	assert_int_equal(RESOLVE(.ring_buffer_stacks = 5), 0);
	assert_int_equal(options_ring_stacks(&resolved, 2, &stacks, NULL), 0);
	assert_int_equal(stacks, 5);
}

static uint32_t stacks_at(uint32_t frequency, bool off_cpu)
{
	uint32_t stacks;

	assert_int_equal(RESOLVE(.frequency = frequency, .off_cpu = off_cpu), 0);
	assert_int_equal(options_ring_stacks(&resolved, 2, &stacks, NULL), 0);
	return stacks;
}

static void default_rings_hold_a_quarter_of_a_second(void **state)
{
	(void)state;
	assert_int_equal(stacks_at(10, false), 32);
	assert_int_equal(stacks_at(99, false), 32);
	assert_int_equal(stacks_at(500, false), 128);
	assert_int_equal(stacks_at(1000, false), 256);
	/* As many as fit. */
	assert_int_equal(stacks_at(10000, false), 512);
	/* Who waits switches at any rate. */
	assert_int_equal(stacks_at(99, true), 512);
}

static void rings_beyond_the_limit_are_refused(void **state)
{
	uint32_t stacks;

	(void)state;
	assert_int_equal(RESOLVE(.stack_size = 65528, .ring_buffer_stacks = 4097), 0);
	assert_int_equal(options_ring_stacks(&resolved, 1, &stacks, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_means_the_defaults),
		cmocka_unit_test(initialized_options_are_the_defaults),
		cmocka_unit_test(a_rate_and_the_greatest_rate_exclude_each_other),
		cmocka_unit_test(the_greatest_rate_is_the_kernels),
		cmocka_unit_test(stacks_are_limited_and_rounded),
		cmocka_unit_test(unknown_choices_are_refused),
		cmocka_unit_test(the_callers_own_times_belong_to_version_3),
		cmocka_unit_test(options_of_a_later_version_are_refused_when_set),
		cmocka_unit_test(options_of_an_earlier_version_are_short),
		cmocka_unit_test(default_rings_stay_below_32_mib_together),
		cmocka_unit_test(default_rings_hold_a_quarter_of_a_second),
		cmocka_unit_test(rings_beyond_the_limit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Times of a source in both versions of the format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stackpulse/error.h>

#include "spool/source.h"

static struct spulse_source of_version_3(uint64_t start_us, uint64_t interval_us,
					 uint64_t first_sample_ns)
{
	return (struct spulse_source){
		.header = { .format = 3, .start = start_us, .interval = interval_us },
		.has_first_sample = true,
		.first_sample_ns = first_sample_ns,
	};
}

static struct spulse_source of_version_4(int64_t seconds, uint32_t nanoseconds,
					 uint64_t monotonic_ns)
{
	return (struct spulse_source){
		.header = { .format = 4, .has_origin = true, .monotonic_ns = monotonic_ns,
			    .wall = { seconds, nanoseconds } },
		/* Must not matter. */
		.has_first_sample = true,
		.first_sample_ns = 12345,
	};
}

static void check_wall(const struct spulse_source *source, uint64_t ns, int64_t seconds,
		       uint32_t nanoseconds)
{
	struct spulse_sample sample = { .timestamp_ns = ns };
	struct spulse_wall_time wall;

	assert_int_equal(spulse_source_wall_time(source, &sample, &wall, NULL), 1);
	assert_int_equal(wall.seconds, seconds);
	assert_int_equal(wall.nanoseconds, nanoseconds);
}

static void check_us(const struct spulse_source *source, uint64_t ns, uint64_t expected)
{
	struct spulse_sample sample = { .timestamp_ns = ns };
	uint64_t us;

	assert_int_equal(spulse_source_timestamp_us(source, &sample, &us), 1);
	assert_int_equal(us, expected);
}

static void test_version_3(void **state)
{
	struct spulse_source source = of_version_3(1700000000000001, 10101, 1000);
	struct spulse_wall_time wall;

	(void)state;
	assert_int_equal(spulse_source_start_timestamp_us(&source), 1700000000000001);
	assert_int_equal(spulse_source_sample_interval_us(&source), 10101);
	assert_int_equal(spulse_source_interval_ns(&source), 10101000);
	assert_int_equal(spulse_source_started_at(&source, &wall), 1);
	assert_int_equal(wall.seconds, 1700000000);
	assert_int_equal(wall.nanoseconds, 1000);
	check_us(&source, 1000, 1700000000000001);
	/* What is before the first sample counts as at it. */
	check_us(&source, 800, 1700000000000001);
	check_us(&source, 2999, 1700000000000002);
	check_us(&source, 3000, 1700000000000003);
	check_wall(&source, 2999, 1700000000, 2999);
}

static void test_version_3_limits(void **state)
{
	struct spulse_source late = of_version_3(UINT64_MAX - 1, UINT64_MAX, 0);
	struct spulse_source none = of_version_3(0, 0, 0);
	struct spulse_sample sample = { .timestamp_ns = 5 };
	struct spulse_wall_time wall;
	uint64_t us;

	(void)state;
	check_us(&late, 1000, UINT64_MAX);
	check_us(&late, UINT64_MAX, UINT64_MAX);
	assert_int_equal(spulse_source_interval_ns(&late), UINT64_MAX);
	assert_int_equal(spulse_source_timestamp_us(&none, &sample, &us), 0);
	assert_int_equal(spulse_source_wall_time(&none, &sample, &wall, NULL), 0);
	assert_int_equal(spulse_source_started_at(&none, &wall), 0);
	assert_int_equal(spulse_source_clock_origin(&late, &us, &wall), 0);
}

static void test_version_4(void **state)
{
	struct spulse_source source = of_version_4(1700000000, 5, 1000000000);
	struct spulse_wall_time wall;
	uint64_t monotonic;

	(void)state;
	source.header.interval = 10101999;
	/* The unused slot shows in the raw header only. */
	source.header.start = 99;
	assert_int_equal(spulse_source_start_timestamp_us(&source), 1700000000000000);
	assert_int_equal(spulse_source_sample_interval_us(&source), 10101);
	assert_int_equal(spulse_source_interval_ns(&source), 10101999);
	assert_int_equal(spulse_source_clock_origin(&source, &monotonic, &wall), 1);
	assert_int_equal(monotonic, 1000000000);
	assert_int_equal(wall.nanoseconds, 5);
	check_wall(&source, 1000, 1699999999, 1005);
	check_wall(&source, 800, 1699999999, 805);
	check_wall(&source, 1000000000, 1700000000, 5);
	check_wall(&source, 1999999995, 1700000001, 0);
	check_us(&source, 1000, 1699999999000001);
}

static void test_version_4_limits(void **state)
{
	struct spulse_source first = of_version_4(INT64_MIN, 0, 10);
	struct spulse_source last = of_version_4(INT64_MAX, 999999999, 10);
	struct spulse_source before_epoch = of_version_4(-2, 999999999, 10);
	struct spulse_sample sample = { .timestamp_ns = 9 };
	struct spulse_error *err = NULL;
	struct spulse_wall_time wall;
	uint64_t us;

	(void)state;
	assert_int_equal(spulse_source_wall_time(&first, &sample, &wall, &err),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_string_equal(spulse_error_message(err),
			    "the sample's wall time is outside of 64-bit seconds");
	spulse_error_free(err);
	check_wall(&first, 10, INT64_MIN, 0);
	check_wall(&first, 11, INT64_MIN, 1);
	check_wall(&last, 10, INT64_MAX, 999999999);
	sample.timestamp_ns = 11;
	assert_int_equal(spulse_source_wall_time(&last, &sample, &wall, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	check_wall(&before_epoch, 11, -1, 0);
	check_wall(&before_epoch, 1000000011, 0, 0);
	/* Microseconds since the epoch cannot say what is before it, or too late for 64 bits. */
	assert_int_equal(spulse_source_timestamp_us(&before_epoch, &sample, &us), 0);
	assert_int_equal(spulse_source_timestamp_us(&last, &sample, &us), 0);
	assert_int_equal(spulse_source_start_timestamp_us(&before_epoch), 0);
	check_us(&before_epoch, 1000001010, 0);
	check_us(&before_epoch, 1000001011, 1);
}

static void test_version_4_without_origin(void **state)
{
	struct spulse_source source = { .header = { .format = 4, .start = 7 } };
	struct spulse_sample sample = { .timestamp_ns = 9 };
	struct spulse_wall_time wall;
	uint64_t us;

	(void)state;
	assert_int_equal(spulse_source_start_timestamp_us(&source), 0);
	assert_int_equal(spulse_source_started_at(&source, &wall), 0);
	assert_int_equal(spulse_source_clock_origin(&source, &us, &wall), 0);
	assert_int_equal(spulse_source_wall_time(&source, &sample, &wall, NULL), 0);
	assert_int_equal(spulse_source_timestamp_us(&source, &sample, &us), 0);
	assert_int_equal(spulse_source_interval_ns(&source), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_3),
		cmocka_unit_test(test_version_3_limits),
		cmocka_unit_test(test_version_4),
		cmocka_unit_test(test_version_4_limits),
		cmocka_unit_test(test_version_4_without_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

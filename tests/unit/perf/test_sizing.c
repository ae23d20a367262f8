/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf/live.h"

static uint64_t size_of(uint64_t stack, uint32_t stacks)
{
	uint64_t minimum, wanted;

	assert_int_equal(perf_ring_size(stack, stacks, 4096, 1, &minimum, &wanted, NULL), 0);
	assert_true(minimum <= wanted);
	return wanted;
}

static void test_ring_sizes(void **state)
{
	(void)state;
	assert_int_equal(size_of(32768, 32), 1 << 20);
	assert_int_equal(size_of(32768, 0), 1 << 20);
	assert_int_equal(size_of(65528, 32), 2 << 20);
	assert_int_equal(size_of(48 << 10, 3), 256 << 10);
	assert_int_equal(size_of(16 << 10, 8), 128 << 10);
	assert_int_equal(size_of(65528, 256), 16 << 20);
	assert_int_equal(size_of(8, 1), 64 << 10);
	assert_int_equal(size_of(0, 1), 64 << 10);
	assert_int_equal(size_of(64 << 10, 4096), 256 << 20);
}

static void test_rings_above_the_ceiling_are_refused(void **state)
{
	struct spulse_error *err = NULL;
	uint64_t minimum, wanted;

	(void)state;
	assert_int_equal(perf_ring_size(64 << 10, 4097, 4096, 1, &minimum, &wanted, &err),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_non_null(strstr(spulse_error_message(err), "256 MiB"));
	spulse_error_free(err);
	assert_int_equal(perf_ring_size(UINT64_MAX / 2, UINT32_MAX, 4096, 1, &minimum, &wanted,
					NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void test_budget_is_shared_by_the_cpus(void **state)
{
	uint64_t minimum, wanted;

	(void)state;
	/* 1 GiB / 6 CPUs = 170 MiB, down to a power of two. */
	assert_int_equal(perf_ring_size(64 << 10, 4096, 4096, 6, &minimum, &wanted, NULL), 0);
	assert_int_equal(wanted, 128 << 20);
	/* 1 GiB / 1,024 CPUs = 1 MiB. */
	assert_int_equal(perf_ring_size(65528, 32, 4096, 1024, &minimum, &wanted, NULL), 0);
	assert_int_equal(wanted, 1 << 20);
	assert_int_equal(perf_ring_size(65528, 32, 4096, 20000, &minimum, &wanted, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void test_large_pages(void **state)
{
	uint64_t minimum, wanted;

	(void)state;
	assert_int_equal(perf_ring_size(8192, 3, 65536, 1, &minimum, &wanted, NULL), 0);
	assert_int_equal(minimum, 65536);
	assert_int_equal(wanted, 4 * 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_sizes),
		cmocka_unit_test(test_rings_above_the_ceiling_are_refused),
		cmocka_unit_test(test_budget_is_shared_by_the_cpus),
		cmocka_unit_test(test_large_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

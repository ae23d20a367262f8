/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "spool/pidmap.h"

enum { PIDS = 90000, PLACES = 1 << 17 };

static void test_first_seen_order(void **state)
{
	struct pidmap map = { 0 };

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (pid_t pid = 5000; pid > 0; pid--) {
			uint32_t *value = pidmap_add(&map, pid * 3);

			assert_int_equal(*value, UINT32_MAX);
			*value = pid;
			assert_int_equal(*pidmap_add(&map, 15000), 5000);
		}
		assert_int_equal(map.pids.len, 5000);
		for (size_t i = 0; i < map.pids.len; i++) {
			assert_int_equal(map.pids.data[i], 15000 - 3 * i);
			assert_int_equal(*pidmap_add(&map, map.pids.data[i]), 5000 - i);
		}
		pidmap_clear(&map);
		assert_int_equal(map.pids.len, 0);
	}
	pidmap_release(&map);
}

static double seconds_to_add(const pid_t *pids)
{
	struct pidmap map = { 0 };
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (size_t i = 0; i < PIDS; i++)
		assert_non_null(pidmap_add(&map, pids[i]));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	pidmap_release(&map);
	return (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Process ids that someone chose so that a table known to him has them all in one place. */
static void test_chosen_pids_cost_no_more(void **state)
{
	pid_t *any = malloc(PIDS * sizeof(*any)), *chosen = malloc(PIDS * sizeof(*chosen));
	double fair, hostile;
	pid_t pid = 0;

	(void)state;
	for (size_t i = 0; i < PIDS; i++)
		any[i] = 1 + i * 97;
	for (size_t i = 0; i < PIDS; i++) {
		do {
			pid++;
		} while ((hash_salted(pid, 0) & (PLACES - 1)) >= PLACES / 256);
		chosen[i] = pid;
	}
	fair = seconds_to_add(any);
	hostile = seconds_to_add(chosen);
	print_message("%.4f s, chosen ones %.4f s\n", fair, hostile);
	assert_true(hostile < 40 * fair + 0.1);
	free(any);
	free(chosen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_seen_order),
		cmocka_unit_test(test_chosen_pids_cost_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

#include "failalloc.h"

static void test_push_keeps_order(void **state)
{
	VEC(int) v = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_true(vec_push(&v, i * 3));
	assert_int_equal(v.len, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v.data[i], i * 3);
	assert_int_equal(vec_last(&v), 2997);
	assert_int_equal(vec_pop(&v), 2997);
	assert_int_equal(v.len, 999);
	vec_free(&v);
	assert_null(v.data);
	assert_int_equal(v.cap, 0);
}

static void test_reserve_allocates_once(void **state)
{
	VEC(char) v = { 0 };

	(void)state;
	assert_true(vec_reserve(&v, 5000));
	failalloc_set(0, false);
	for (int i = 0; i < 5000; i++)
		assert_true(vec_push(&v, 'x'));
	assert_int_equal(failalloc_count(), 0);
	vec_free(&v);
}

static void test_push_takes_structs(void **state)
{
	struct pair {
		int a, b;
	};
	VEC(struct pair) v = { 0 };

	(void)state;
	assert_true(vec_push(&v, (struct pair){ .a = 1, .b = 2 }));
	assert_int_equal(vec_last(&v).b, 2);
	vec_free(&v);
}

static void test_sizes_that_overflow_are_refused(void **state)
{
	VEC(uint64_t) v = { 0 };

	(void)state;
	assert_false(vec_reserve(&v, SIZE_MAX));
	assert_false(vec_reserve(&v, SIZE_MAX / 8 + 1));
	assert_true(vec_push(&v, 1));
	assert_false(vec_reserve(&v, SIZE_MAX));
	assert_int_equal(v.len, 1);
	assert_int_equal(v.data[0], 1);
	vec_free(&v);
}

static void test_failed_growth_keeps_content(void **state)
{
	VEC(int) v = { 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_true(vec_push(&v, i));
	failalloc_set(1, true);
	assert_false(vec_push(&v, 8));
	failalloc_set(0, false);
	assert_int_equal(v.len, 8);
	assert_int_equal(v.data[7], 7);
	assert_true(vec_push(&v, 8));
	vec_free(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_keeps_order),
		cmocka_unit_test(test_reserve_allocates_once),
		cmocka_unit_test(test_push_takes_structs),
		cmocka_unit_test(test_sizes_that_overflow_are_refused),
		cmocka_unit_test(test_failed_growth_keeps_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

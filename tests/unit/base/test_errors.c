/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/errors.h"

#include <errno.h>
#include <string.h>

#include <stackpulse/error.h>

#include "failalloc.h"

static void test_message_path_and_errno(void **state)
{
	SPULSE_CLEANUP(error) err = NULL;

	(void)state;
	assert_int_equal(err_io(&err, ENOENT, "/a/b", "cannot open %s", "it"), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_kind(err), SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), ENOENT);
	assert_string_equal(spulse_error_path(err), "/a/b");
	assert_string_equal(spulse_error_message(err),
			    "/a/b: cannot open it: No such file or directory");
	assert_null(spulse_error_cause(err));
	assert_null(spulse_error_domain(err));
}

static void test_null_err_gives_the_kind_only(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, SPULSE_ERROR_TARGET_GONE, "x"), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(err_io(NULL, EPERM, NULL, "x"), -SPULSE_ERROR_PERMISSION);
	assert_int_equal(err_corrupt(NULL, "p", 3, 4, "x"), -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_int_equal(err_frequency(NULL, 5, 4), -SPULSE_ERROR_FREQUENCY_LIMIT);
	assert_int_equal(err_no_memory(NULL), -SPULSE_ERROR_NO_MEMORY);
}

static void test_kinds_of_errno(void **state)
{
	(void)state;
	assert_int_equal(err_kind_of_errno(EACCES), SPULSE_ERROR_PERMISSION);
	assert_int_equal(err_kind_of_errno(EPERM), SPULSE_ERROR_PERMISSION);
	assert_int_equal(err_kind_of_errno(ENOMEM), SPULSE_ERROR_NO_MEMORY);
	assert_int_equal(err_kind_of_errno(EINVAL), SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(err_kind_of_errno(EOPNOTSUPP), SPULSE_ERROR_UNSUPPORTED);
	assert_int_equal(err_kind_of_errno(ENOSPC), SPULSE_ERROR_IO);
}

static void test_frequency_and_position(void **state)
{
	SPULSE_CLEANUP(error) rate = NULL;
	SPULSE_CLEANUP(error) corrupt = NULL;
	struct spulse_spool_position at = { 0 };
	uint64_t requested = 0, maximum = 0;

	(void)state;
	err_frequency(&rate, 200000, 100000);
	assert_true(spulse_error_frequency_limit(rate, &requested, &maximum));
	assert_int_equal(requested, 200000);
	assert_int_equal(maximum, 100000);
	assert_false(spulse_error_spool_position(rate, &at));

	err_corrupt(&corrupt, "f", 5, 1234, "bad");
	assert_true(spulse_error_spool_position(corrupt, &at));
	assert_int_equal(at.tag, 5);
	assert_int_equal(at.offset, 1234);
	assert_false(spulse_error_frequency_limit(corrupt, &requested, &maximum));
}

static void test_position_is_added(void **state)
{
	SPULSE_CLEANUP(error) corrupt = NULL;
	SPULSE_CLEANUP(error) other = NULL;
	struct spulse_spool_position at = { 0 };
	int r = -SPULSE_ERROR_CORRUPT_SPOOL;

	(void)state;
	assert_int_equal(err_locate(NULL, r, 3, 7), r);
	err_corrupt(&corrupt, "f", -1, 5, "bad");
	assert_int_equal(err_locate(&corrupt, r, 3, 7), r);
	assert_true(spulse_error_spool_position(corrupt, &at));
	assert_int_equal(at.tag, 3);
	assert_int_equal(at.offset, 7);
	r = err_io(&other, EIO, "f", "bad");
	assert_int_equal(err_locate(&other, r, 3, 7), r);
	assert_false(spulse_error_spool_position(other, &at));
	other = (spulse_error_free(other), NULL);
	r = err_no_memory(&other);
	assert_int_equal(err_locate(&other, r, 3, 7), r);
	assert_false(spulse_error_spool_position(other, &at));
}

static void test_prefix_keeps_the_facts(void **state)
{
	SPULSE_CLEANUP(error) err = NULL;
	struct spulse_spool_position at = { 0 };

	(void)state;
	err_corrupt(&err, "file", 2, 99, "cut");
	assert_int_equal(err_prefix(&err, "reading %d", 7), -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_string_equal(spulse_error_message(err), "reading 7: file: cut");
	assert_string_equal(spulse_error_path(err), "file");
	assert_true(spulse_error_spool_position(err, &at));
	assert_int_equal(at.offset, 99);
	assert_string_equal(spulse_error_message(spulse_error_cause(err)), "file: cut");
	assert_int_equal(err_prefix(NULL, "x"), -SPULSE_ERROR_IO);
}

static void test_second_failure_is_attached_once(void **state)
{
	SPULSE_CLEANUP(error) err = NULL;
	struct spulse_error *second = NULL, *third = NULL;

	(void)state;
	err_set(&err, SPULSE_ERROR_IO, "first");
	err_set(&second, SPULSE_ERROR_IO, "second");
	err_set(&third, SPULSE_ERROR_IO, "third");
	err_attach_cleanup(&err, second);
	err_attach_cleanup(&err, third);
	assert_string_equal(spulse_error_message(spulse_error_cleanup(err)), "second");
	err_set(&second, SPULSE_ERROR_IO, "lost");
	err_attach_cleanup(NULL, second);
}

static void test_latched_error_is_shared(void **state)
{
	struct spulse_error *latched = NULL, *again = NULL;

	(void)state;
	err_set(&latched, SPULSE_ERROR_IO, "disk full");
	assert_int_equal(err_repeat(&again, latched), -SPULSE_ERROR_IO);
	assert_int_equal(err_repeat(NULL, latched), -SPULSE_ERROR_IO);
	spulse_error_free(latched);
	assert_string_equal(spulse_error_message(again), "disk full");
	spulse_error_free(again);
}

/* A latched error is what every later call gives: it must not come to hold itself. */
static void test_error_never_holds_itself(void **state)
{
	struct spulse_error *latched = NULL, *again = NULL;

	(void)state;
	err_io(&latched, ENOSPC, NULL, "full");
	err_attach_cleanup(&latched, err_ref(latched));
	assert_null(spulse_error_cleanup(latched));

	again = err_ref(latched);
	err_prefix(&again, "finish");
	err_attach_cleanup(&latched, again);
	assert_null(spulse_error_cleanup(latched));
	spulse_error_free(latched);
}

static void test_public_maker(void **state)
{
	SPULSE_CLEANUP(error) err =
		spulse_error_new(SPULSE_OK, EIO, NULL, "my-backend", -42, "%s", "text");

	(void)state;
	assert_int_equal(spulse_error_kind(err), SPULSE_ERROR_IO);
	assert_string_equal(spulse_error_domain(err), "my-backend");
	assert_int_equal(spulse_error_code(err), -42);
	assert_int_equal(err_retype(&err, SPULSE_ERROR_UNSUPPORTED), -SPULSE_ERROR_UNSUPPORTED);
	assert_int_equal(spulse_error_kind(err), SPULSE_ERROR_UNSUPPORTED);
}

static void test_null_error(void **state)
{
	uint64_t a, b;
	struct spulse_spool_position at;

	(void)state;
	assert_int_equal(spulse_error_kind(NULL), SPULSE_OK);
	assert_int_equal(spulse_error_errno(NULL), 0);
	assert_non_null(spulse_error_message(NULL));
	assert_null(spulse_error_path(NULL));
	assert_null(spulse_error_cause(NULL));
	assert_null(spulse_error_cleanup(NULL));
	assert_null(spulse_error_domain(NULL));
	assert_int_equal(spulse_error_code(NULL), 0);
	assert_false(spulse_error_frequency_limit(NULL, &a, &b));
	assert_false(spulse_error_spool_position(NULL, &at));
	spulse_error_free(NULL);
}

static void test_every_kind_has_a_name(void **state)
{
	(void)state;
	for (int kind = SPULSE_OK; kind <= SPULSE_ERROR_NO_MEMORY; kind++)
		assert_string_not_equal(spulse_error_kind_name(kind), "unknown");
	assert_string_equal(spulse_error_kind_name(SPULSE_ERROR_NO_MEMORY + 1), "unknown");
	assert_string_equal(spulse_error_kind_name(-1), "unknown");
}

static void test_no_memory_for_an_error(void **state)
{
	(void)state;
	for (long nth = 1;; nth++) {
		struct spulse_error *err = NULL;
		bool hit;

		failalloc_set(nth, false);
		err_io(&err, EIO, "/path", "text");
		err_prefix(&err, "more");
		hit = failalloc_hit();
		failalloc_set(0, false);
		assert_non_null(err);
		assert_non_null(spulse_error_message(err));
		err_attach_cleanup(&err, spulse_error_new(SPULSE_ERROR_IO, 0, NULL, NULL, 0, "x"));
		spulse_error_free(err);
		if (!hit)
			break;
		assert_true(nth < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_path_and_errno),
		cmocka_unit_test(test_null_err_gives_the_kind_only),
		cmocka_unit_test(test_kinds_of_errno),
		cmocka_unit_test(test_frequency_and_position),
		cmocka_unit_test(test_position_is_added),
		cmocka_unit_test(test_prefix_keeps_the_facts),
		cmocka_unit_test(test_second_failure_is_attached_once),
		cmocka_unit_test(test_latched_error_is_shared),
		cmocka_unit_test(test_error_never_holds_itself),
		cmocka_unit_test(test_public_maker),
		cmocka_unit_test(test_null_error),
		cmocka_unit_test(test_every_kind_has_a_name),
		cmocka_unit_test(test_no_memory_for_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

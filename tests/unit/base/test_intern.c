/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/intern.h"

#include <stdio.h>
#include <string.h>

#include "failalloc.h"

static void test_equal_strings_share_an_id(void **state)
{
	struct interner in = { 0 };
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 5000; i++) {
			int len = snprintf(name, sizeof(name), "name-%u", i);

			assert_int_equal(intern(&in, name, len), i);
		}
	assert_int_equal(in.strings.len, 5000);
	assert_string_equal(in.strings.data[4321].bytes, "name-4321");
	interner_release(&in);
	assert_null(in.slots);
}

static void test_strings_are_bytes(void **state)
{
	struct interner in = { 0 };

	(void)state;
	assert_int_equal(intern(&in, "", 0), 0);
	assert_int_equal(intern(&in, "a\0b", 3), 1);
	assert_int_equal(intern(&in, "a\0c", 3), 2);
	assert_int_equal(intern(&in, "a", 1), 3);
	assert_int_equal(intern(&in, "a\0b", 3), 1);
	assert_int_equal(intern(&in, "", 0), 0);
	assert_memory_equal(in.strings.data[1].bytes, "a\0b", 4);
	interner_release(&in);
}

static void test_copies_never_move(void **state)
{
	struct interner in = { 0 };
	const char *first = intern_string(&in, "first", 5);
	char name[32];

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_non_null(intern_string(&in, name, snprintf(name, sizeof(name), "%d", i)));
	assert_ptr_equal(intern_string(&in, "first", 5), first);
	assert_string_equal(first, "first");
	interner_release(&in);
}

/* Whatever allocation fails, the interner stays usable and gives each string one id. */
static void test_every_failed_allocation(void **state)
{
	(void)state;
	for (long nth = 1;; nth++) {
		struct interner in = { 0 };
		char name[32];
		bool hit;

		failalloc_set(nth, false);
		for (int i = 0; i < 300; i++)
			intern(&in, name, snprintf(name, sizeof(name), "s%d", i));
		hit = failalloc_hit();
		failalloc_set(0, false);
		for (int i = 0; i < 300; i++) {
			int len = snprintf(name, sizeof(name), "s%d", i);
			uint32_t id = intern(&in, name, len);

			assert_true(id < 300);
			assert_string_equal(in.strings.data[id].bytes, name);
		}
		assert_int_equal(in.strings.len, 300);
		interner_release(&in);
		if (!hit)
			break;
		assert_true(nth < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_strings_share_an_id),
		cmocka_unit_test(test_strings_are_bytes),
		cmocka_unit_test(test_copies_never_move),
		cmocka_unit_test(test_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

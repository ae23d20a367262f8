/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/logging.h"

#include <string.h>

static int calls;
static enum spulse_log_level last_level;
static char last_text[2048];

static void keep(void *data, enum spulse_log_level level, const char *message)
{
	assert_ptr_equal(data, &calls);
	calls++;
	last_level = level;
	strncpy(last_text, message, sizeof(last_text) - 1);
}

static void test_silent_by_default(void **state)
{
	(void)state;
	assert_false(log_enabled(SPULSE_LOG_WARNING));
	log_warning("nobody listens");
	assert_int_equal(calls, 0);
}

static void test_level_selects(void **state)
{
	(void)state;
	spulse_log_set(keep, &calls, SPULSE_LOG_WARNING);
	log_debug("hidden");
	assert_int_equal(calls, 0);
	log_warning("%s %d", "shown", 1);
	assert_int_equal(calls, 1);
	assert_int_equal(last_level, SPULSE_LOG_WARNING);
	assert_string_equal(last_text, "shown 1");
	spulse_log_set(keep, &calls, SPULSE_LOG_DEBUG);
	log_debug("now");
	assert_string_equal(last_text, "now");
	spulse_log_set(NULL, NULL, SPULSE_LOG_DEBUG);
	log_debug("gone");
	log_warning("gone");
	assert_string_equal(last_text, "now");
}

static void test_long_text_is_cut(void **state)
{
	(void)state;
	spulse_log_set(keep, &calls, SPULSE_LOG_WARNING);
	log_warning("%03000d", 1);
	assert_in_range(strlen(last_text), 100, 2047);
	spulse_log_set(NULL, NULL, SPULSE_LOG_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent_by_default),
		cmocka_unit_test(test_level_selects),
		cmocka_unit_test(test_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

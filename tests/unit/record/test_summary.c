/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stackpulse/stackpulse.h>

/* Kinds keep their numbers: other programs know them, and spools that were written before. */
static void each_sample_error_has_its_number_and_name(void **state)
{
	static const char *const names[SPULSE_SAMPLE_ERROR_COUNT] = {
		"native-register-capture",    "native-stack-read",
		"native-stack-truncated",     "native-did-not-advance",
		"native-return-address-null", "native-moved-backwards",
		"native-integer-overflow",    "native-user-registers-missing",
	};

	(void)state;
	for (int i = 0; i < SPULSE_SAMPLE_ERROR_COUNT; i++) {
		assert_string_equal(spulse_sample_error_name(i), names[i]);
		assert_true(strlen(spulse_sample_error_description(i)) > 10);
	}
	assert_string_equal(spulse_sample_error_name(SPULSE_SAMPLE_ERROR_COUNT), "unknown");
	assert_string_equal(spulse_sample_error_name(-1), "unknown");
}

static void each_fallback_has_its_number_and_name(void **state)
{
	static const char *const names[SPULSE_UNWIND_FALLBACK_COUNT] = {
		"no-module",
		"no-module-unwind-data",
		"eh-frame-hdr-lookup",
		"dwarf-cfi-index-lookup",
		"dwarf-fde-read",
		"dwarf-unwind-info",
		"dwarf-stack-pointer-moved-backwards",
		"dwarf-did-not-advance",
		"dwarf-could-not-recover-cfa",
		"dwarf-could-not-recover-return-address",
		"dwarf-could-not-recover-frame-pointer",
		"other-unwind-format",
	};

	(void)state;
	for (int i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++) {
		assert_string_equal(spulse_unwind_fallback_name(i), names[i]);
		assert_true(strlen(spulse_unwind_fallback_description(i)) > 10);
	}
	assert_string_equal(spulse_unwind_fallback_name(SPULSE_UNWIND_FALLBACK_COUNT), "unknown");
}

static void totals_are_the_sums_over_all_kinds(void **state)
{
	struct spulse_recording_summary summary = {.size = sizeof(summary)};

	(void)state;
	assert_int_equal(spulse_summary_sample_errors(&summary), 0);
	assert_int_equal(spulse_summary_unwind_fallbacks(&summary), 0);
	for (int i = 0; i < SPULSE_SAMPLE_ERROR_COUNT; i++)
		summary.sample_errors[i] = 1u << i;
	for (int i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++)
		summary.unwind_fallbacks[i] = 1u << i;
	assert_int_equal(spulse_summary_sample_errors(&summary), 0xff);
	assert_int_equal(spulse_summary_unwind_fallbacks(&summary), 0xfff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_error_has_its_number_and_name),
		cmocka_unit_test(each_fallback_has_its_number_and_name),
		cmocka_unit_test(totals_are_the_sums_over_all_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/varint.h"

#include <string.h>

#include "random.h"

static void assert_round_trip(uint64_t value, int want_len)
{
	uint8_t buf[VARINT_MAX + 1];
	uint8_t *end = varint_put(buf, value);
	uint64_t back = ~value;

	assert_in_range(end - buf, 1, VARINT_MAX);
	if (want_len)
		assert_int_equal(end - buf, want_len);
	assert_int_equal(varint_get(buf, end - buf, &back), end - buf);
	assert_true(back == value);
	for (int cut = 0; cut < end - buf; cut++)
		assert_int_equal(varint_get(buf, cut, &back), 0);
}

static void test_round_trips(void **state)
{
	struct random rng = { .state = 3 };

	(void)state;
	assert_round_trip(0, 1);
	assert_round_trip(127, 1);
	assert_round_trip(128, 2);
	assert_round_trip(16383, 2);
	assert_round_trip(16384, 3);
	assert_round_trip(UINT64_MAX, 10);
	assert_round_trip(UINT64_MAX >> 1, 9);
	for (int i = 0; i < 20000; i++)
		assert_round_trip(random_u64(&rng) >> random_below(&rng, 64), 0);
}

static void test_numbers_above_64_bits_are_refused(void **state)
{
	uint8_t buf[12];
	uint64_t value;

	(void)state;
	memset(buf, 0x80, sizeof(buf));
	assert_int_equal(varint_get(buf, sizeof(buf), &value), -1);
	buf[9] = 2;
	assert_int_equal(varint_get(buf, sizeof(buf), &value), -1);
	buf[9] = 1;
	assert_int_equal(varint_get(buf, sizeof(buf), &value), 10);
	assert_true(value == 1ull << 63);
	assert_int_equal(varint_get(buf, 9, &value), 0);
}

static void test_longer_forms_are_accepted(void **state)
{
	const uint8_t zero[] = { 0x80, 0x80, 0x00 };
	uint64_t value = 1;

	(void)state;
	assert_int_equal(varint_get(zero, 3, &value), 3);
	assert_int_equal(value, 0);
}

static void test_zigzag(void **state)
{
	const int64_t values[] = { 0, -1, 1, -2, 2, INT64_MAX, INT64_MIN };
	const uint64_t coded[] = { 0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX };

	(void)state;
	for (int i = 0; i < 7; i++) {
		assert_true(zigzag(values[i]) == coded[i]);
		assert_true(unzigzag(coded[i]) == values[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_numbers_above_64_bits_are_refused),
		cmocka_unit_test(test_longer_forms_are_accepted),
		cmocka_unit_test(test_zigzag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

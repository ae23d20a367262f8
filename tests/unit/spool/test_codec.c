/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/util.h"
#include "random.h"
#include "spool/decode.h"

static struct cursor over(const void *bytes, size_t len)
{
	return (struct cursor){ .p = bytes, .end = (const uint8_t *)bytes + len, .end_offset = len,
				.limit = len };
}

#define OVER(text) over(text, sizeof(text) - 1)

static void test_numbers(void **state)
{
	static const struct {
		const char *bytes;
		size_t len, used; /* used 0: cut off, SIZE_MAX: bad */
		uint64_t value;
	} rows[] = {
		{ "\x00", 1, 1, 0 },
		{ "\x7f", 1, 1, 127 },
		{ "\x80\x01", 2, 2, 128 },
		{ "\x80\x00", 2, 2, 0 },
		{ "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 10, 5 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 10, UINT64_MAX },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, SIZE_MAX, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81", 10, SIZE_MAX, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, 0, 0 },
		{ "\x80", 1, 0, 0 },
		{ "", 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cursor c = over(rows[i].bytes, rows[i].len);
		uint64_t value = 77;
		int r = get_uv(&c, &value);

		if (rows[i].used == SIZE_MAX) {
			assert_int_equal(r, FIELD_BAD);
			assert_string_equal(c.problem, "a number has more than 64 bits");
		} else if (rows[i].used == 0) {
			assert_int_equal(r, FIELD_CUT);
		} else {
			assert_int_equal(r, FIELD_OK);
			assert_int_equal(value, rows[i].value);
			assert_ptr_equal(c.p, rows[i].bytes + rows[i].used);
		}
	}
}

static void test_signed_numbers(void **state)
{
	static const int64_t numbers[] = { 0, -1, 1, -2, 2, INT64_MAX, INT64_MIN };
	static const uint64_t stored[] = { 0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint8_t bytes[VARINT_MAX];
		struct cursor c = over(bytes, varint_put(bytes, stored[i]) - bytes);
		int64_t value;

		assert_int_equal(zigzag(numbers[i]), stored[i]);
		assert_int_equal(get_sv(&c, &value), FIELD_OK);
		assert_int_equal(value, numbers[i]);
	}
}

/* The way without branches agrees with the plain one, for every length of number. */
static void test_take_uv(void **state)
{
	struct random rng = { .state = 3 };
	uint8_t bytes[VARINT_MAX + 8];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t number = random_u64(&rng) >> random_below(&rng, 64), found;
		uint8_t *end;

		memset(bytes, 0xff, sizeof(bytes));
		end = varint_put(bytes, number);
		assert_ptr_equal(take_uv(bytes, &found), end);
		assert_int_equal(found, number);
	}
	memset(bytes, 0xff, sizeof(bytes));
	assert_null(take_uv(bytes, &(uint64_t){ 0 }));
}

static void test_blobs(void **state)
{
	struct cursor c = OVER("abcdef");
	const uint8_t *bytes;

	(void)state;
	c.end -= 2;
	c.end_offset = 4; /* of six bytes, four are in the window */
	assert_int_equal(get_bytes(&c, 4, &bytes), FIELD_OK);
	assert_memory_equal(bytes, "abcd", 4);
	assert_int_equal(get_bytes(&c, 0, &bytes), FIELD_OK);
	assert_int_equal(get_bytes(&c, 2, &bytes), FIELD_CUT);
	assert_false(c.past_limit);
	assert_int_equal(get_bytes(&c, 3, &bytes), FIELD_CUT);
	assert_true(c.past_limit);
	assert_int_equal(get_bytes(&c, UINT64_MAX - 4, &bytes), FIELD_CUT);
	assert_int_equal(get_bytes(&c, UINT64_MAX - 3, &bytes), FIELD_BAD);
}

static void test_process_ids(void **state)
{
	struct cursor c = OVER("\x02\xfe\xff\xff\xff\x0f\x00\x01\x80\x80\x80\x80\x10");
	pid_t pid;

	(void)state;
	assert_int_equal(get_pid(&c, &pid), FIELD_OK);
	assert_int_equal(pid, 1);
	assert_int_equal(get_pid(&c, &pid), FIELD_OK);
	assert_int_equal(pid, INT32_MAX);
	assert_int_equal(get_pid(&c, &pid), FIELD_BAD);
	assert_string_equal(c.problem, "process id 0, expected 1 to 2147483647");
	assert_int_equal(get_pid(&c, &pid), FIELD_BAD);
	assert_string_equal(c.problem, "process id -1, expected 1 to 2147483647");
	assert_int_equal(get_pid(&c, &pid), FIELD_BAD);
	assert_string_equal(c.problem, "process id 2147483648, expected 1 to 2147483647");
}

static const struct header headers[] = {
	{ .format = 3 },
	{ .format = 3, .start = UINT64_MAX, .interval = 10101 },
	{ .format = 4, .interval = UINT64_MAX },
	{ .format = 4, .has_origin = true, .monotonic_ns = 1000000000, .interval = 10101010,
	  .wall = { 1700000000, 5 } },
	{ .format = 4, .has_origin = true, .wall = { 0, 0 } },
	{ .format = 4, .has_origin = true, .wall = { -1, 999999999 } },
	{ .format = 4, .has_origin = true, .wall = { -1, 0 } },
	{ .format = 4, .has_origin = true, .wall = { INT64_MAX, 999999999 } },
	{ .format = 4, .has_origin = true, .wall = { INT64_MIN, 0 }, .monotonic_ns = UINT64_MAX },
	{ .format = 4, .has_origin = true, .wall = { INT64_MIN, 1 } },
};

static void test_headers_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		const struct header *given = &headers[i];
		uint8_t bytes[HEADER_MAX];
		size_t len = put_header(bytes, given) - bytes;
		struct cursor c = over(bytes, len);
		struct header found;

		assert_int_equal(get_header(&c, &found), FIELD_OK);
		assert_ptr_equal(c.p, bytes + len);
		assert_int_equal(found.format, given->format);
		assert_int_equal(found.start, given->start);
		assert_int_equal(found.interval, given->interval);
		assert_int_equal(found.has_origin, given->has_origin);
		assert_int_equal(found.monotonic_ns, given->monotonic_ns);
		assert_int_equal(found.wall.seconds, given->wall.seconds);
		assert_int_equal(found.wall.nanoseconds, given->wall.nanoseconds);
		/* Every shorter one is cut off, or too short to be anything. */
		for (size_t keep = 0; keep < len; keep++) {
			c = over(bytes, keep);
			assert_int_equal(get_header(&c, &found),
					 keep < MAGIC_LEN ? FIELD_BAD : FIELD_CUT);
		}
	}
}

static void test_header_bytes(void **state)
{
	static const uint8_t expected[] = "SPULSE4\0\x00\x92\xc2\xe8\x04\x01\x80\x94\xeb\xdc\x03"
					  "\x02\x80\xe2\xcf\xaa\x06\x05";
	uint8_t bytes[HEADER_MAX];

	(void)state;
	assert_int_equal(put_header(bytes, &headers[3]) - bytes, sizeof(expected) - 1);
	assert_memory_equal(bytes, expected, sizeof(expected) - 1);
}

static void test_wall_time_limits(void **state)
{
	/* Sign 1 and 2^63 seconds; sign -1 and 2^63 seconds and a nanosecond; -0. */
	struct cursor late = OVER("SPULSE4\0\0\0\x01\0\x02\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
				  "\0");
	struct cursor early = OVER("SPULSE4\0\0\0\x01\0\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
				   "\x01");
	struct cursor zero = OVER("SPULSE4\0\0\0\x01\0\x01\0\0");
	struct header header;

	(void)state;
	assert_int_equal(get_header(&late, &header), FIELD_BAD);
	assert_int_equal(get_header(&early, &header), FIELD_BAD);
	assert_string_equal(early.problem,
			    "clock origin does not fit 64-bit seconds (-9223372036854775808)");
	assert_int_equal(get_header(&zero, &header), FIELD_OK);
	assert_int_equal(header.wall.seconds, 0);
	assert_int_equal(header.wall.nanoseconds, 0);
}

static void test_utf8(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} rows[] = {
		{ "", true },
		{ "plain", true },
		{ "\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf", true },
		{ "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", true },
		{ "\x80", false },
		{ "\xc1\xbf", false }, /* overlong */
		{ "\xe0\x9f\xbf", false },
		{ "\xf0\x8f\xbf\xbf", false },
		{ "\xed\xa0\x80", false }, /* surrogate */
		{ "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", false },
		{ "\xff", false },
		{ "a\xe2\x82", false }, /* cut off */
		{ "\xe2\x28\xa1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(utf8_valid((const uint8_t *)rows[i].text, strlen(rows[i].text)),
				 rows[i].valid);
	assert_true(utf8_valid((const uint8_t *)"a\0b", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_signed_numbers),
		cmocka_unit_test(test_take_uv),
		cmocka_unit_test(test_blobs),
		cmocka_unit_test(test_process_ids),
		cmocka_unit_test(test_headers_come_back),
		cmocka_unit_test(test_header_bytes),
		cmocka_unit_test(test_wall_time_limits),
		cmocka_unit_test(test_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Numbers, samples and text as any bytes, against the plainest way to read them. */
#include "../driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spool/decode.h"

enum { PADDED = 64 };

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_varint: %s\n", what);
	abort();
}

/* Bytes of the number; 0 = cut off, -1 = none. By 128-bit arithmetic instead of by bits. */
static int plain_number(const uint8_t *p, size_t len, uint64_t *value)
{
	unsigned __int128 sum = 0, weight = 1;

	for (size_t i = 0; i < len && i < VARINT_MAX; i++, weight *= 128) {
		sum += (p[i] % 128) * weight;
		if (i == VARINT_MAX - 1 && (p[i] >= 128 || sum > UINT64_MAX))
			return -1;
		if (p[i] < 128) {
			*value = sum;
			return i + 1;
		}
	}
	return 0;
}

static void check_number(const uint8_t *p, size_t len)
{
	uint64_t expected = 0, value = 0;
	uint8_t bytes[VARINT_MAX];
	struct cursor c = {.p = p, .end = p + len, .end_offset = len, .limit = len};
	int n = plain_number(p, len, &expected), r = get_uv(&c, &value);

	must(r == (n > 0 ? FIELD_OK : n ? FIELD_BAD : FIELD_CUT), "a field's result");
	must(n <= 0 || (c.p == p + n && value == expected), "a field's value");
	if (len >= VARINT_MAX) {
		const uint8_t *end = take_uv(p, &value);

		must(n > 0 ? end == p + n && value == expected : !end, "the quick way");
	}
	if (n <= 0)
		return;
	must((uint64_t)zigzag(unzigzag(expected)) == expected, "zigzag");
	r = varint_put(bytes, expected) - bytes;
	must(r <= n && varint_get(bytes, r, &value) == r && value == expected, "writing");
	must(varint_get(bytes, r - 1, &value) == 0 || r == 1, "a number that is cut off");
}

static void check_sample(const uint8_t *p, uint64_t last_ns, size_t threads, size_t nodes)
{
	uint64_t delta, thread, node, at = 1;
	struct raw_sample sample = { 0 };
	const uint8_t *end = take_sample(p, last_ns, threads, nodes, &sample);
	__int128 ns = 0;
	int n;
	bool good = false;

	n = plain_number(p + at, VARINT_MAX, &delta);
	if (n > 0) {
		at += n;
		ns = (__int128)last_ns + (delta & 1 ? -(__int128)(delta / 2) - 1
						    : (__int128)(delta / 2));
		n = plain_number(p + at, VARINT_MAX, &thread);
	}
	if (n > 0) {
		at += n;
		n = plain_number(p + at, VARINT_MAX, &node);
		at += n > 0 ? n : 0;
		good = n > 0 && ns >= 0 && ns <= UINT64_MAX && thread < threads && node < nodes;
	}
	must(good == (end != NULL), "whether a sample is good");
	must(!good || (end == p + at && sample.timestamp_ns == ns && sample.thread == thread &&
		       sample.node == node), "what a sample says");
}

/* By what the text stands for: one character, its shortest form, no surrogate. */
static bool plain_utf8(const uint8_t *p, size_t len)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};

	for (size_t i = 0; i < len;) {
		size_t n = p[i] < 0x80 ? 1 : p[i] >> 5 == 6 ? 2 : p[i] >> 4 == 14 ? 3
			 : p[i] >> 3 == 30 ? 4 : 0;
		uint32_t character = n == 1 ? p[i] : p[i] & (0x7f >> n);

		if (n == 0 || n > len - i)
			return false;
		for (size_t k = 1; k < n; k++) {
			if (p[i + k] >> 6 != 2)
				return false;
			character = character << 6 | (p[i + k] & 0x3f);
		}
		if (character < lowest[n] || character > 0x10ffff ||
		    (character >= 0xd800 && character < 0xe000))
			return false;
		i += n;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t padded[PADDED] = {TAG_SAMPLE};
	uint64_t last_ns = 0;

	must(utf8_valid(data, size) == plain_utf8(data, size), "whether text is UTF-8");
	for (size_t at = 0; at <= size && at < 256; at++)
		check_number(data + at, size - at);
	memcpy(&last_ns, data, size < 8 ? size : 8);
	for (size_t at = 0; at < size && at < 256; at++) {
		memcpy(padded + 1, data + at, size - at < PADDED - 1 ? size - at : PADDED - 1);
		check_sample(padded, last_ns, 1 + last_ns % 300, 1 + last_ns % 70000);
	}
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const char *const seeds[] = {
		"\x05\xd0\x0f\x00\x01", "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00\xff\xff",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7f\x81\x01\xac\x02",
		"text \xd0\xba \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf",
	};
	static const unsigned char lengths[] = {5, 12, 15, 24};
	uint8_t *bytes;

	if (i >= sizeof(lengths))
		return NULL;
	*len = lengths[i];
	bytes = malloc(*len);
	if (bytes)
		memcpy(bytes, seeds[i], *len);
	return bytes;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "codec.h"

#include <stdio.h>

static const char magic[] = "SPULSE";

int cursor_bad(struct cursor *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->problem, sizeof(c->problem), format, args);
	va_end(args);
	return FIELD_BAD;
}

int get_uv_slow(struct cursor *c, uint64_t *value)
{
	int n = varint_get(c->p, c->end - c->p, value);

	if (n < 0)
		return cursor_bad(c, "a number has more than 64 bits");
	if (n == 0)
		return FIELD_CUT;
	c->p += n;
	return FIELD_OK;
}

int get_byte(struct cursor *c, uint8_t *value)
{
	if (c->p == c->end)
		return FIELD_CUT;
	*value = *c->p++;
	return FIELD_OK;
}

int get_bytes(struct cursor *c, uint64_t len, const uint8_t **bytes)
{
	uint64_t at = c->end_offset - (c->end - c->p), end;

	if (add_overflows(at, len, &end))
		return cursor_bad(c, "a length of %llu bytes leaves the address space",
				  (unsigned long long)len);
	if (end > c->limit) {
		c->past_limit = true;
		return FIELD_CUT;
	}
	if (end > c->end_offset)
		return FIELD_CUT;
	*bytes = c->p;
	c->p += len;
	return FIELD_OK;
}

int get_pid(struct cursor *c, pid_t *pid)
{
	int64_t value;

	TRY(get_sv(c, &value));
	if (value < 1 || value > INT32_MAX)
		return cursor_bad(c, "process id %lld, expected 1 to 2147483647", (long long)value);
	*pid = value;
	return FIELD_OK;
}

/* sign * (seconds + nanos / 1e9) as floored seconds and nanoseconds; false when out of range. */
static bool wall_from_distance(int64_t sign, uint64_t seconds, uint32_t nanos,
			       struct spulse_wall_time *wall)
{
	if (sign > 0) {
		*wall = (struct spulse_wall_time){ (int64_t)seconds, nanos };
		return seconds <= INT64_MAX;
	}
	/* The most negative second can be named as a whole one only. */
	if (seconds > (uint64_t)INT64_MAX + (nanos == 0))
		return false;
	*wall = (struct spulse_wall_time){ (int64_t)(0 - seconds) - (nanos != 0),
					   nanos ? 1000000000 - nanos : 0 };
	return true;
}

static int get_origin(struct cursor *c, struct header *header)
{
	uint64_t marker, seconds, nanos;
	int64_t sign;

	TRY(get_uv(c, &marker));
	if (marker > 1)
		return cursor_bad(c, "clock origin marker %llu, expected 0 or 1",
				  (unsigned long long)marker);
	header->has_origin = marker;
	if (!marker)
		return FIELD_OK;
	TRY(get_uv(c, &header->monotonic_ns));
	TRY(get_sv(c, &sign));
	TRY(get_uv(c, &seconds));
	TRY(get_uv(c, &nanos));
	if (nanos >= 1000000000)
		return cursor_bad(c, "clock origin has %llu nanoseconds, expected at most "
				     "999999999", (unsigned long long)nanos);
	if (sign != 1 && sign != -1)
		return cursor_bad(c, "clock origin has the sign %lld, expected 1 or -1",
				  (long long)sign);
	if (!wall_from_distance(sign, seconds, nanos, &header->wall))
		return cursor_bad(c, "clock origin does not fit 64-bit seconds (%s%llu)",
				  sign < 0 ? "-" : "", (unsigned long long)seconds);
	return FIELD_OK;
}

static int get_magic(struct cursor *c, uint32_t *format)
{
	const uint8_t *bytes = NULL;

	if (c->end - c->p < MAGIC_LEN && c->end_offset == c->limit)
		return cursor_bad(c, "not a spool: it has %zu bytes, a header has at least %d",
				  (size_t)(c->end - c->p), MAGIC_LEN + 2);
	TRY(get_bytes(c, MAGIC_LEN, &bytes));
	if (memcmp(bytes, magic, sizeof(magic) - 1) || bytes[7] != 0 || bytes[6] < '0' ||
	    bytes[6] > '9')
		return cursor_bad(c, "not a spool: it does not begin with SPULSE3 or SPULSE4");
	*format = bytes[6] - '0';
	if (*format != 3 && *format != 4)
		return cursor_bad(c, "unsupported version %u of the spool format, expected 3 or 4",
				  *format);
	return FIELD_OK;
}

int get_header(struct cursor *c, struct header *header)
{
	*header = (struct header){ 0 };
	TRY(get_magic(c, &header->format));
	TRY(get_uv(c, &header->start));
	TRY(get_uv(c, &header->interval));
	return header->format == 4 ? get_origin(c, header) : FIELD_OK;
}

uint8_t *put_header(uint8_t *p, const struct header *header)
{
	const struct spulse_wall_time *wall = &header->wall;
	bool negative = wall->seconds < 0;
	uint32_t nanos = wall->nanoseconds;
	uint64_t seconds = wall->seconds;

	memcpy(p, magic, sizeof(magic) - 1);
	p[6] = '0' + header->format;
	p[7] = 0;
	p = varint_put(p + MAGIC_LEN, header->start);
	p = varint_put(p, header->interval);
	if (header->format != 4)
		return p;
	p = varint_put(p, header->has_origin);
	if (!header->has_origin)
		return p;
	if (negative) {
		seconds = 0 - seconds - (nanos != 0);
		nanos = nanos ? 1000000000 - nanos : 0;
	}
	p = varint_put(p, header->monotonic_ns);
	p = varint_put(p, zigzag(negative ? -1 : 1));
	p = varint_put(p, seconds);
	return varint_put(p, nanos);
}

/* Length of the sequence that a lead byte announces; 0 for a byte that cannot lead. */
static size_t utf8_length(uint8_t lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

/* The second byte of overlong forms, surrogates and what is above U+10FFFF. */
static bool utf8_second_ok(uint8_t lead, uint8_t second)
{
	switch (lead) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second < 0xa0;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second < 0x90;
	default:
		return true;
	}
}

bool utf8_valid(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(bytes[i]);

		if (n == 0 || n > len - i)
			return false;
		for (size_t k = 1; k < n; k++)
			if ((bytes[i + k] & 0xc0) != 0x80)
				return false;
		if (n > 1 && !utf8_second_ok(bytes[i], bytes[i + 1]))
			return false;
		i += n;
	}
	return true;
}

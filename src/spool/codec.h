/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_CODEC_H
#define SPULSE_SPOOL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

#include "format.h"

#include <stackpulse/spool.h>

/*
 * Fields of records and the header, in both directions. Reading happens through a cursor over a
 * window of the file; a field either is there, or is cut off (more bytes may come), or is bad.
 */

enum field_result {
	FIELD_OK = 0,
	FIELD_CUT = 1, /* the window ends inside of it */
	FIELD_BAD = -1, /* the cursor's problem says why */
};

struct cursor {
	const uint8_t *p;
	const uint8_t *end;
	uint64_t end_offset; /* of `end`, in the file */
	uint64_t limit; /* size of the file; a length past it is cut off for good */
	bool past_limit; /* a FIELD_CUT was such a length */
	char problem[192];
};

/* Remembers what is wrong; returns FIELD_BAD. */
int cursor_bad(struct cursor *c, const char *format, ...) SPULSE_PRINTF(2, 3);

/* A number whose ten bytes are all there; NULL when it is none. */
static inline const uint8_t *take_uv(const uint8_t *p, uint64_t *value)
{
	uint64_t word, stop;
	unsigned int bits;

	if (likely(*p < 0x80)) {
		*value = *p;
		return p + 1;
	}
	word = load_u64(p);
	stop = ~word & 0x8080808080808080u;
	if (unlikely(!stop)) {
		int n = varint_get(p, VARINT_MAX, value);

		return n > 0 ? p + n : NULL;
	}
	/* Without branches on the length: keep the bytes up to the last, squeeze out bit 7. */
	bits = __builtin_ctzll(stop) + 1;
	word &= ~(uint64_t)0 >> (64 - bits);
	word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
	word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
	*value = (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
	return p + bits / 8;
}

int get_uv_slow(struct cursor *c, uint64_t *value);

static inline int get_uv(struct cursor *c, uint64_t *value)
{
	const uint8_t *p = likely(c->end - c->p >= VARINT_MAX) ? take_uv(c->p, value) : NULL;

	if (unlikely(!p))
		return get_uv_slow(c, value);
	c->p = p;
	return FIELD_OK;
}

static inline int get_sv(struct cursor *c, int64_t *value)
{
	uint64_t raw;
	int r = get_uv(c, &raw);

	if (r == FIELD_OK)
		*value = unzigzag(raw);
	return r;
}

int get_byte(struct cursor *c, uint8_t *value);
/* `len` raw bytes, which stay in the window. */
int get_bytes(struct cursor *c, uint64_t len, const uint8_t **bytes);

/* Stops at anything but FIELD_OK. */
#define TRY(expression) \
	do { \
		int try_ = (expression); \
		if (unlikely(try_ != FIELD_OK)) \
			return try_; \
	} while (0)

/* A number that the next field must be at least 1 and at most 2^31-1. */
int get_pid(struct cursor *c, pid_t *pid);

/* The header as stored; wall is floored to seconds. */
struct header {
	uint32_t format;
	bool has_origin;
	uint64_t start, interval, monotonic_ns;
	struct spulse_wall_time wall;
};

int get_header(struct cursor *c, struct header *header);

enum { HEADER_MAX = MAGIC_LEN + 7 * VARINT_MAX };
/* Writes at most HEADER_MAX bytes; returns the end. */
uint8_t *put_header(uint8_t *p, const struct header *header);

bool utf8_valid(const uint8_t *bytes, size_t len);

#endif

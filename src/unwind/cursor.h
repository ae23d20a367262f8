/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_CURSOR_H
#define SPULSE_UNWIND_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

/*
 * Reads numbers from table bytes. The first read past the end sets `bad` and gives 0 from then on,
 * so that a caller checks once after a group of reads.
 */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline bool cursor_take(struct cursor *c, size_t n)
{
	if (likely((size_t)(c->end - c->p) >= n && !c->bad))
		return true;
	c->bad = true;
	return false;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	return cursor_take(c, 1) ? *c->p++ : 0;
}

#define CURSOR_READER(name, type) \
	static inline type cursor_##name(struct cursor *c) \
	{ \
		type v; \
		if (!cursor_take(c, sizeof(v))) \
			return 0; \
		memcpy(&v, c->p, sizeof(v)); \
		c->p += sizeof(v); \
		return v; \
	}
CURSOR_READER(u16, uint16_t)
CURSOR_READER(u32, uint32_t)
CURSOR_READER(u64, uint64_t)
#undef CURSOR_READER

static inline void cursor_skip(struct cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->p) < n)
		c->bad = true;
	else
		c->p += n;
}

/* LEB128: at most ten bytes, which hold any 64-bit number; excess bits are dropped. */
static inline uint64_t cursor_leb(struct cursor *c, bool is_signed)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t b = cursor_u8(c);

		if (c->bad)
			return 0;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (is_signed && (b & 0x40) && shift + 7 < 64)
			v |= ~UINT64_C(0) << (shift + 7);
		return v;
	}
	c->bad = true;
	return 0;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
	return cursor_leb(c, false);
}

static inline int64_t cursor_sleb(struct cursor *c)
{
	return (int64_t)cursor_leb(c, true);
}

#endif

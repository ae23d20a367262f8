/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_BYTECURSOR_H
#define SPULSE_SYMBOLIZE_BYTECURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Takes numbers and strings off the front of bytes, and never one past their end. */
struct cursor {
	const uint8_t *at, *end;
	bool broken; /* something reached past the end */
};

static inline size_t cursor_left(const struct cursor *c)
{
	return c->end - c->at;
}

/* What does not fit leaves nothing behind it. */
static inline void cursor_break(struct cursor *c)
{
	c->broken = true;
	c->at = c->end;
}

static inline uint64_t take_fixed(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if (cursor_left(c) < size) {
		cursor_break(c);
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static inline uint64_t take_long_uleb(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->broken = true;
	return 0;
}

static inline uint64_t take_uleb(struct cursor *c)
{
	if (c->at < c->end && *c->at < 0x80)
		return *c->at++;
	return take_long_uleb(c);
}

static inline int64_t take_sleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte = 0x80;

	while (c->at < c->end && (byte & 0x80)) {
		byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	if (byte & 0x80)
		c->broken = true;
	if (shift < 64 && (byte & 0x40))
		value |= ~0ull << shift;
	return (int64_t)value;
}

static inline const char *take_string(struct cursor *c)
{
	const uint8_t *nul = cursor_left(c) ? memchr(c->at, 0, cursor_left(c)) : NULL;
	const char *string = (const char *)c->at;

	if (!nul) {
		cursor_break(c);
		return "";
	}
	c->at = nul + 1;
	return string;
}

static inline void skip_bytes(struct cursor *c, uint64_t size)
{
	if (cursor_left(c) < size)
		cursor_break(c);
	else
		c->at += size;
}

#endif

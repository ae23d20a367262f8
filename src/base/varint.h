/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_VARINT_H
#define SPULSE_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

/* Base-128 numbers, low 7 bits first, at most ten bytes. */
enum { VARINT_MAX = 10 };

/* Writes the shortest form; returns the end. */
static inline uint8_t *varint_put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static inline uint64_t zigzag(int64_t n)
{
	return ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
}

static inline int64_t unzigzag(uint64_t n)
{
	return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

/*
 * Reads one number from the len bytes at p. Returns how many bytes it took, 0 when it is cut off
 * by the end, -1 when it is no valid number.
 */
int varint_get(const uint8_t *p, size_t len, uint64_t *value);

#endif

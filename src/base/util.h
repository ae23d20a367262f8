/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_UTIL_H
#define SPULSE_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct spulse_error;

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* True when a + b does not fit; *sum is set either way. */
#define add_overflows(a, b, sum) __builtin_add_overflow((a), (b), (sum))
#define mul_overflows(a, b, product) __builtin_mul_overflow((a), (b), (product))

/* Unaligned native-order loads; every supported target is little-endian. */
static inline uint16_t load_u16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load_u32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t load_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * Copies a caller's struct, whose first field says how much of it the caller knows, into ours; the
 * rest is zero. Refused are a size that was never set, and bytes that we do not know and that are
 * set: they ask for something that this version cannot do. "what" names it, in the plural.
 */
int options_read(void *known, size_t known_size, const void *given, const char *what,
		 struct spulse_error **err);
/* An option struct of that size, all-zero but for its first field, which is the size. */
void options_clear(void *options, size_t size);

#endif

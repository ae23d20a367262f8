/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_STRPOOL_H
#define SPULSE_SYMBOLIZE_STRPOOL_H

#include <stddef.h>
#include <stdint.h>

/*
 * One copy of each distinct string, counted: a live symbolizer forgets processes, and their
 * names must go with them.
 */
struct strpool {
	struct pool_string **slots;
	size_t count;
	size_t mask;
	uint64_t salt; /* of the hash */
};

struct pool_string {
	uint32_t refs;
	uint32_t len;
	uint32_t hash;
	char bytes[];
};

/* A counted copy; NULL when memory ran out or len is 4 GiB or more. */
const char *strpool_get(struct strpool *pool, const char *bytes, size_t len);
/* Another reference to a string of the pool; NULL stays NULL. */
const char *strpool_ref(const char *string);
/* Gives a reference back; NULL is allowed. */
void strpool_put(struct strpool *pool, const char *string);
uint32_t strpool_len(const char *string);
void strpool_release(struct strpool *pool);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_INTERN_H
#define SPULSE_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "vec.h"

/* Keeps one copy of each distinct byte string and numbers them from 0. */
struct interner {
	struct arena arena;
	VEC(struct interned) strings;
	uint32_t *slots; /* index + 1, 0 = free */
	size_t mask;
	uint64_t salt; /* of the hash */
};

struct interned {
	const char *bytes; /* NUL-terminated; never moves */
	uint32_t len;
	uint32_t hash;
};

/* Id of a string, added when new; UINT32_MAX when memory or numbers ran out. */
uint32_t intern(struct interner *interner, const char *bytes, size_t len);
/* As intern(), giving the copy; NULL when memory ran out. */
const char *intern_string(struct interner *interner, const char *bytes, size_t len);
void interner_release(struct interner *interner);

#endif

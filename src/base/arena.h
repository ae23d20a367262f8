/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_ARENA_H
#define SPULSE_BASE_ARENA_H

#include <stddef.h>

/* Allocates many small things that are all freed at once. Addresses never move. */
struct arena {
	struct arena_chunk *chunk;
	size_t left;
	size_t total;
};

/* Aligned to 8; NULL when memory ran out. Not zeroed. */
void *arena_alloc(struct arena *arena, size_t size);
/* Copies len bytes and adds a NUL. */
char *arena_strndup(struct arena *arena, const char *bytes, size_t len);
void arena_release(struct arena *arena);

#endif

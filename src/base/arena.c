/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

enum { ARENA_FIRST_CHUNK = 4096, ARENA_MAX_CHUNK = 1 << 20 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	_Alignas(16) unsigned char bytes[];
};

static bool arena_add_chunk(struct arena *arena, size_t need)
{
	size_t size = arena->chunk ? MIN(arena->chunk->size * 2, (size_t)ARENA_MAX_CHUNK)
				   : (size_t)ARENA_FIRST_CHUNK;
	struct arena_chunk *chunk;

	size = MAX(size, need);
	if (size > SIZE_MAX - sizeof(*chunk))
		return false;
	chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		return false;
	chunk->next = arena->chunk;
	chunk->size = size;
	arena->chunk = chunk;
	arena->left = size;
	arena->total += size;
	return true;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *p;

	if (size > SIZE_MAX - 7)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (size > arena->left && !arena_add_chunk(arena, size))
		return NULL;
	p = arena->chunk->bytes + (arena->chunk->size - arena->left);
	arena->left -= size;
	return p;
}

char *arena_strndup(struct arena *arena, const char *bytes, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		return NULL;
	copy = arena_alloc(arena, len + 1);
	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	return copy;
}

void arena_release(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunk;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	*arena = (struct arena){ 0 };
}

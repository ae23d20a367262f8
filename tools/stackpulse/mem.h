/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_MEM_H
#define TOOL_MEM_H

/*
 * Memory for commands that read: when there is none left they say so and exit. A recording
 * never uses these.
 */

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);
/* Makes room for at least need elements; *cap is the number there is room for. */
void *mem_grow(void *array, size_t *cap, size_t need, size_t element);
char *mem_copy(const char *text, size_t len);

/* Adds an element at the end: MEM_PUSH(items, count, cap) = value. */
#define MEM_PUSH(array, count, cap) \
	(*((array) = mem_grow(array, &(cap), (count) + 1, sizeof(*(array))), &(array)[(count)++]))

/* A map from 64-bit keys to 32-bit numbers. All zero is an empty one. */
struct idmap {
	uint64_t *keys;
	/* Number plus one; 0 = free slot. */
	uint32_t *values;
	size_t mask;
	size_t count;
};

/* The number of key. A new key gets the number fresh, and *is_new_out says so. */
uint32_t idmap_intern(struct idmap *map, uint64_t key, uint32_t fresh, int *is_new_out);
/* The number of key; 0 and nothing set when it is not there. */
int idmap_find(const struct idmap *map, uint64_t key, uint32_t *value_out);
/* Changes the number of a key that is there. */
void idmap_set(struct idmap *map, uint64_t key, uint32_t value);
void idmap_release(struct idmap *map);

#endif

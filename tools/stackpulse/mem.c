/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "tool.h"

static void *checked(void *memory)
{
	if (!memory) {
		tool_message("out of memory");
		exit(TOOL_FAILED);
	}
	return memory;
}

void *mem_alloc(size_t size)
{
	return checked(calloc(1, size ? size : 1));
}

void *mem_grow(void *array, size_t *cap, size_t need, size_t element)
{
	size_t room = *cap ? *cap : 16;

	if (need <= *cap)
		return array;
	while (room < need)
		room += room / 2;
	*cap = room;
	return checked(reallocarray(array, room, element));
}

char *mem_copy(const char *text, size_t len)
{
	char *copy = mem_alloc(len + 1);

	memcpy(copy, text, len);
	return copy;
}

static size_t slot_of(const struct idmap *map, uint64_t key)
{
	uint64_t hash = (key ^ key >> 32) * 0x9e3779b97f4a7c15;
	size_t slot = (hash >> 20) & map->mask;

	while (map->values[slot] && map->keys[slot] != key)
		slot = (slot + 1) & map->mask;
	return slot;
}

static void grow(struct idmap *map)
{
	struct idmap old = *map;
	size_t size = old.keys ? (old.mask + 1) * 2 : 64;

	map->mask = size - 1;
	map->keys = checked(calloc(size, sizeof(*map->keys)));
	map->values = checked(calloc(size, sizeof(*map->values)));
	for (size_t i = 0; old.keys && i <= old.mask; i++)
		if (old.values[i]) {
			size_t slot = slot_of(map, old.keys[i]);

			map->keys[slot] = old.keys[i];
			map->values[slot] = old.values[i];
		}
	free(old.keys);
	free(old.values);
}

uint32_t idmap_intern(struct idmap *map, uint64_t key, uint32_t fresh, int *is_new_out)
{
	size_t slot;

	if (!map->keys || map->count * 2 > map->mask)
		grow(map);
	slot = slot_of(map, key);
	*is_new_out = !map->values[slot];
	if (*is_new_out) {
		map->keys[slot] = key;
		map->values[slot] = fresh + 1;
		map->count++;
	}
	return map->values[slot] - 1;
}

int idmap_find(const struct idmap *map, uint64_t key, uint32_t *value_out)
{
	size_t slot;

	if (!map->keys)
		return 0;
	slot = slot_of(map, key);
	if (!map->values[slot])
		return 0;
	*value_out = map->values[slot] - 1;
	return 1;
}

void idmap_set(struct idmap *map, uint64_t key, uint32_t value)
{
	map->values[slot_of(map, key)] = value + 1;
}

void idmap_release(struct idmap *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct idmap){0};
}

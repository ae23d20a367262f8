/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "util.h"

uint64_t hash_salt(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	return random ? load_u64(random) : 0;
}

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t salt)
{
	const unsigned char *p = bytes;
	uint64_t h = hash_salted(len, salt);
	uint64_t word = 0;

	for (; len >= 8; p += 8, len -= 8)
		h = hash_salted(h ^ load_u64(p), salt);
	if (len) {
		memcpy(&word, p, len);
		h = hash_salted(h ^ word, salt);
	}
	return h;
}

static struct u64map_slot *u64map_find(const struct u64map *map, uint64_t key)
{
	size_t i = hash_salted(key, map->salt) & map->mask;

	while (map->slots[i].used && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

uint64_t *u64map_get(const struct u64map *map, uint64_t key)
{
	struct u64map_slot *slot;

	if (!map->slots)
		return NULL;
	slot = u64map_find(map, key);
	return slot->used ? &slot->value : NULL;
}

/*
 * Each page is written at once: those of a large new table that are looked at first fault twice,
 * and the second time interrupts the processors of other threads.
 */
static struct u64map_slot *new_slots(size_t count)
{
	enum { PAGE = 4096 };
	struct u64map_slot *slots = calloc(count, sizeof(*slots));
	volatile char *bytes = (volatile char *)slots;

	for (size_t at = 0; slots && at < count * sizeof(*slots); at += PAGE)
		bytes[at] = 0;
	return slots;
}

static bool u64map_resize(struct u64map *map, size_t slot_count)
{
	struct u64map old = *map;
	struct u64map_slot *slots = new_slots(slot_count);

	if (!slots)
		return false;
	if (!old.slots)
		map->salt = hash_salt();
	map->slots = slots;
	map->mask = slot_count - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].used)
			*u64map_find(map, old.slots[i].key) = old.slots[i];
	free(old.slots);
	return true;
}

uint64_t *u64map_add(struct u64map *map, uint64_t key, bool *added)
{
	struct u64map_slot *slot;
	size_t slots = map->slots ? map->mask + 1 : 0;

	if ((map->count + 1) * 4 > slots * 3 && !u64map_resize(map, slots ? slots * 2 : 16))
		return NULL;
	slot = u64map_find(map, key);
	if (added)
		*added = !slot->used;
	if (!slot->used) {
		*slot = (struct u64map_slot){ .key = key, .used = true };
		map->count++;
	}
	return &slot->value;
}

bool u64map_set(struct u64map *map, uint64_t key, uint64_t value)
{
	uint64_t *slot = u64map_add(map, key, NULL);

	if (slot)
		*slot = value;
	return slot;
}

bool u64map_remove(struct u64map *map, uint64_t key)
{
	size_t hole, i;

	if (!map->slots)
		return false;
	hole = u64map_find(map, key) - map->slots;
	if (!map->slots[hole].used)
		return false;
	/* Close the gap: move back every later entry of the run that may stand at the hole. */
	for (i = (hole + 1) & map->mask; map->slots[i].used; i = (i + 1) & map->mask) {
		size_t home = hash_salted(map->slots[i].key, map->salt) & map->mask;

		if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].used = false;
	map->count--;
	return true;
}

struct u64map_slot *u64map_next(const struct u64map *map, size_t *i)
{
	while (map->slots && *i <= map->mask) {
		struct u64map_slot *slot = &map->slots[(*i)++];

		if (slot->used)
			return slot;
	}
	return NULL;
}

void u64map_release(struct u64map *map)
{
	free(map->slots);
	*map = (struct u64map){ 0 };
}

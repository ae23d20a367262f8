/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "rulemap.h"

#include "../base/base.h"

enum { FIRST_SLOTS = 64, MAX_RULES = 1 << 20 };

static struct rulemap_slot *slot_of(const struct rulemap *map, uint64_t key)
{
	size_t i = hash_salted(key, map->salt) & map->mask;

	while (map->slots[i].key != UINT64_MAX && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

bool rulemap_get(const struct rulemap *map, uint64_t key, uint64_t *rule)
{
	const struct rulemap_slot *slot;

	if (!map->slots || key == UINT64_MAX)
		return false;
	slot = slot_of(map, key);
	if (slot->key != key)
		return false;
	*rule = slot->rule;
	return true;
}

static bool grow(struct rulemap *map)
{
	size_t slots = map->slots ? (map->mask + 1) * 2 : FIRST_SLOTS;
	struct rulemap bigger = {
		.mask = slots - 1,
		.count = map->count,
		.salt = map->slots ? map->salt : hash_salt(),
	};

	bigger.slots = malloc(slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	memset(bigger.slots, 0xff, slots * sizeof(*bigger.slots));
	for (size_t i = 0; map->slots && i <= map->mask; i++)
		if (map->slots[i].key != UINT64_MAX)
			*slot_of(&bigger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = bigger;
	return true;
}

void rulemap_add(struct rulemap *map, uint64_t key, uint64_t rule)
{
	if (key == UINT64_MAX)
		return;
	if (map->count >= MAX_RULES)
		rulemap_release(map);
	if ((!map->slots || map->count * 2 > map->mask) && !grow(map))
		return;
	*slot_of(map, key) = (struct rulemap_slot){key, rule};
	map->count++;
}

void rulemap_release(struct rulemap *map)
{
	free(map->slots);
	*map = (struct rulemap){0};
}

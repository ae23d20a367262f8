/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "pidmap.h"

static struct pidmap_slot *find(const struct pidmap *map, pid_t pid)
{
	size_t i = hash_salted(pid, map->salt) & map->mask;

	while (map->slots[i].pid && map->slots[i].pid != pid)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

static bool grow(struct pidmap *map)
{
	struct pidmap old = *map;
	size_t count = old.slots ? (old.mask + 1) * 2 : 16;
	struct pidmap_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	if (!old.slots)
		map->salt = hash_salt();
	map->slots = slots;
	map->mask = count - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].pid)
			*find(map, old.slots[i].pid) = old.slots[i];
	free(old.slots);
	return true;
}

uint32_t *pidmap_add(struct pidmap *map, pid_t pid)
{
	struct pidmap_slot *slot;

	if ((!map->slots || (map->pids.len + 1) * 4 > (map->mask + 1) * 3) && !grow(map))
		return NULL;
	slot = find(map, pid);
	if (!slot->pid) {
		if (!vec_push(&map->pids, pid))
			return NULL;
		*slot = (struct pidmap_slot){ pid, UINT32_MAX };
	}
	return &slot->value;
}

void pidmap_clear(struct pidmap *map)
{
	if (map->pids.len)
		memset(map->slots, 0, (map->mask + 1) * sizeof(*map->slots));
	map->pids.len = 0;
}

void pidmap_release(struct pidmap *map)
{
	vec_free(&map->pids);
	free(map->slots);
	*map = (struct pidmap){ 0 };
}

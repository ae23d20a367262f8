/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Address spaces. A sorted array serves best: processes have 20 to 300 executable mappings, which
 * change seldom. A change that retires addresses gives the space a new tag, so that what the rule
 * cache holds of the old state is never found again; a mapping in unused space keeps the tag.
 */
#include "space.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_uint_least32_t last_tag;

static uint32_t new_tag(void)
{
	uint32_t tag;

	do
		tag = atomic_fetch_add_explicit(&last_tag, 1, memory_order_relaxed) + 1;
	while (tag == 0);
	return tag;
}

static void table_unref(struct space_table *table)
{
	if (!table || --table->refs)
		return;
	for (size_t i = 0; i < table->places.len; i++)
		unw_image_unref(table->maps[i].image);
	free(table);
}

int unw_space_new(struct unw_space **out, struct spulse_error **err)
{
	struct unw_space *space = calloc(1, sizeof(*space));

	if (!space)
		return err_no_memory(err);
	space->tag = new_tag();
	*out = space;
	return 0;
}

struct unw_space *unw_space_fork(struct unw_space *parent)
{
	struct unw_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->tag = new_tag();
	space->partial = parent->partial;
	space->table = parent->table;
	if (space->table)
		space->table->refs++;
	return space;
}

void unw_space_free(struct unw_space *space)
{
	if (!space)
		return;
	table_unref(space->table);
	free(space);
}

void unw_space_clear(struct unw_space *space)
{
	table_unref(space->table);
	space->table = NULL;
	space->tag = new_tag();
}

void unw_space_set_partial(struct unw_space *space, bool partial)
{
	space->partial = partial;
}

/* First mapping that ends above an address. */
static size_t first_above(const struct space_table *table, uint64_t address)
{
	size_t first = 0, len = table ? table->places.len : 0;

	while (len) {
		size_t half = len / 2;

		if (table->maps[first + half].end <= address) {
			first += half + 1;
			len -= half + 1;
		} else {
			len = half;
		}
	}
	return first;
}

const struct unw_map *unw_space_find(const struct unw_space *space, uint64_t address)
{
	size_t i = first_above(space->table, address);

	if (!space->table || i == space->table->places.len || space->table->maps[i].start > address)
		return NULL;
	return &space->table->maps[i];
}

const struct unw_map *unw_space_maps(const struct unw_space *space, size_t *count)
{
	*count = space->table ? space->table->places.len : 0;
	return *count ? space->table->maps : NULL;
}

/* Makes the table this space's own, with room for `count` mappings instead of [first, end). */
static bool own_table(struct unw_space *space, size_t first, size_t end, size_t count)
{
	struct space_table *old = space->table, *table;
	size_t len = old ? old->places.len : 0, spare = places_spare(len);

	if (old && old->refs == 1 && places_fit(&old->places, first, end, count))
		return true;
	table = malloc(sizeof(*table) + (len + 2 * spare) * sizeof(table->room[0]));
	if (!table)
		return false;
	table->refs = 1;
	table->places = (struct places){ .before = spare, .len = len, .behind = spare };
	table->maps = table->room + spare;
	if (old)
		memcpy(table->maps, old->maps, len * sizeof(table->maps[0]));
	for (size_t i = 0; i < len; i++)
		if (table->maps[i].image)
			unw_image_ref(table->maps[i].image);
	table_unref(old);
	space->table = table;
	return true;
}

/* Replaces the mappings [first, end) by up to three others, whose references are taken over. */
static void splice(struct space_table *table, size_t first, size_t end, const struct unw_map *with,
		   size_t count)
{
	for (size_t i = first; i < end; i++)
		unw_image_unref(table->maps[i].image);
	table->maps = places_splice(&table->places, table->maps, sizeof(*with), first, end, count);
	memcpy(&table->maps[first], with, count * sizeof(*with));
}

static void add_piece(struct unw_map *pieces, size_t *count, const struct unw_map *map,
		      uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	pieces[*count] = *map;
	pieces[*count].start = start;
	pieces[(*count)++].end = end;
	if (map->image)
		unw_image_ref(map->image);
}

/* Cuts [start, end) out and puts `map`, if any, there. Returns false when memory ran out. */
static bool replace(struct unw_space *space, uint64_t start, uint64_t end,
		    const struct unw_map *map)
{
	size_t first = first_above(space->table, start), last = first, count = 0;
	struct unw_map pieces[3];
	struct space_table *table;

	while (space->table && last < space->table->places.len &&
	       space->table->maps[last].start < end)
		last++;
	if (first == last && !map)
		return true;
	/* One mapping becomes three at the most, none becomes one. */
	if (!own_table(space, first, last, last - first + 2))
		return false;
	table = space->table;
	if (first < last)
		add_piece(pieces, &count, &table->maps[first], table->maps[first].start, start);
	if (map)
		add_piece(pieces, &count, map, start, end);
	if (first < last)
		add_piece(pieces, &count, &table->maps[last - 1], end, table->maps[last - 1].end);
	splice(table, first, last, pieces, count);
	if (first < last)
		space->tag = new_tag();
	return true;
}

int unw_space_map(struct unw_space *space, const struct unw_map *map, struct spulse_error **err)
{
	if (map->start >= map->end)
		return 0;
	return replace(space, map->start, map->end, map) ? 0 : err_no_memory(err);
}

void unw_space_unmap(struct unw_space *space, uint64_t start, uint64_t end)
{
	/* Without memory for a copy nothing of the space can be trusted. */
	if (start < end && !replace(space, start, end, NULL))
		unw_space_clear(space);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The answer for an address is the last item, in order of starts, that begins at or before it and
 * ends behind it. Items that have ended can be many (thousands of short functions inside one big
 * outer range), so that walking back over them is no option: each level of the tree holds the
 * greatest end of 16 entries below, and a block that has ended as a whole is stepped over.
 */
#include "intervals.h"

#include <stdlib.h>

enum {
	FANOUT_BITS = 4,
	FANOUT = 1 << FANOUT_BITS,
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
	DIGIT_PASSES = (64 + DIGIT_BITS - 1) / DIGIT_BITS,
	SMALL = 64,
};

static bool is_sorted(const struct interval *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i].start < items[i - 1].start)
			return false;
	return true;
}

static void sort_small(struct interval *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct interval item = items[i];
		size_t at = i;

		for (; at > 0 && items[at - 1].start > item.start; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

/* One stable pass over a digit of the start; false when all have the same one. */
static bool sort_digit(const struct interval *from, struct interval *to, size_t count, int shift)
{
	size_t offsets[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < count; i++)
		offsets[from[i].start >> shift & (DIGITS - 1)]++;
	if (offsets[from[0].start >> shift & (DIGITS - 1)] == count)
		return false;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t n = offsets[d];

		offsets[d] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[offsets[from[i].start >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

/* Stable, by start. */
static bool sort(struct interval *items, size_t count)
{
	_cleanup_free_ struct interval *spare = NULL;
	struct interval *from = items, *to;

	if (is_sorted(items, count))
		return true;
	if (count <= SMALL) {
		sort_small(items, count);
		return true;
	}
	spare = malloc(count * sizeof(*spare));
	if (!spare)
		return false;
	to = spare;
	for (int pass = 0; pass < DIGIT_PASSES; pass++) {
		struct interval *done = to;

		if (!sort_digit(from, to, count, pass * DIGIT_BITS))
			continue;
		to = from;
		from = done;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
	return true;
}

static void build_level(struct intervals *set, int level)
{
	size_t below = level ? set->sizes[level - 1] : set->items.len;

	for (size_t i = 0; i < set->sizes[level]; i++) {
		uint64_t greatest = 0;

		for (size_t j = i << FANOUT_BITS; j < MIN((i + 1) << FANOUT_BITS, below); j++)
			greatest = MAX(greatest, level ? set->levels[level - 1][j] :
							 set->items.data[j].end);
		set->levels[level][i] = greatest;
	}
}

/* Room for the tree over `count` items; the tree itself is not touched yet. */
static bool reserve_levels(struct intervals *set, size_t count)
{
	for (int level = 0; level < INTERVAL_LEVELS; level++) {
		uint64_t *grown;

		count = (count + FANOUT - 1) >> FANOUT_BITS;
		if (count <= 1 && level)
			break;
		grown = realloc(set->levels[level], MAX(count, 1) * sizeof(*grown));
		if (!grown)
			return false;
		set->levels[level] = grown;
	}
	return true;
}

static void build_levels(struct intervals *set)
{
	size_t count = set->items.len;

	memset(set->sizes, 0, sizeof(set->sizes));
	for (int level = 0; level < INTERVAL_LEVELS; level++) {
		count = (count + FANOUT - 1) >> FANOUT_BITS;
		if (count <= 1 && level)
			break;
		set->sizes[level] = count;
		build_level(set, level);
	}
}

/* Merges sorted new items into the sorted old ones from the back; old ones stay first. */
static void merge(struct intervals *set, const struct interval *items, size_t count)
{
	struct interval *all = set->items.data;
	size_t old = set->items.len, at = old + count;

	while (count > 0) {
		if (old > 0 && all[old - 1].start > items[count - 1].start)
			all[--at] = all[--old];
		else
			all[--at] = items[--count];
	}
}

bool intervals_add(struct intervals *set, struct interval *items, size_t count)
{
	if (!sort(items, count) || !vec_reserve(&set->items, count) ||
	    !reserve_levels(set, set->items.len + count))
		return false;
	merge(set, items, count);
	set->items.len += count;
	build_levels(set);
	return true;
}

bool intervals_take(struct intervals *set, struct interval **data, size_t *len, size_t *cap)
{
	struct interval *old = set->items.data;
	size_t count = *len, old_cap = set->items.cap;

	if (set->items.len)
		return intervals_add(set, *data, count);
	if (!sort(*data, count) || !reserve_levels(set, count))
		return false;
	set->items.data = *data;
	set->items.len = count;
	set->items.cap = *cap;
	*data = old;
	*len = 0;
	*cap = old_cap;
	build_levels(set);
	return true;
}

bool intervals_cut(struct intervals *set, uint32_t name)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->items.len; i++)
		if (set->items.data[i].name < name)
			set->items.data[kept++] = set->items.data[i];
	if (kept == set->items.len)
		return false;
	set->items.len = kept;
	build_levels(set);
	return true;
}

static uint64_t end_of(const struct intervals *set, int level, size_t i)
{
	return level < 0 ? set->items.data[i].end : set->levels[level][i];
}

/* The last entry in [first of its block, limit) of a level that ends behind the address. */
static bool last_in_block(const struct intervals *set, int level, size_t limit, uint64_t address,
			  size_t *found)
{
	size_t first = limit ? (limit - 1) >> FANOUT_BITS << FANOUT_BITS : 0;

	for (size_t i = limit; i-- > first;) {
		if (end_of(set, level, i) > address) {
			*found = i;
			return true;
		}
	}
	return false;
}

static size_t begun_before(const struct intervals *set, uint64_t address)
{
	size_t low = 0, high = set->items.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->items.data[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct interval *intervals_find(const struct intervals *set, uint64_t address)
{
	size_t limit = begun_before(set, address), i = 0;
	int level = -1;

	/* Up, until a block holds one that has not ended; limit counts entries of the level. */
	while (!last_in_block(set, level, limit, address, &i)) {
		limit = limit ? (limit - 1) >> FANOUT_BITS : 0;
		if (limit == 0 || ++level == INTERVAL_LEVELS || set->sizes[level] == 0)
			return NULL;
	}
	/* And down again to the last one in it. */
	for (; level >= 0; level--) {
		size_t below = level ? set->sizes[level - 1] : set->items.len;

		if (!last_in_block(set, level - 1, MIN((i + 1) << FANOUT_BITS, below), address, &i))
			return NULL;
	}
	return &set->items.data[i];
}

void intervals_release(struct intervals *set)
{
	vec_free(&set->items);
	for (int level = 0; level < INTERVAL_LEVELS; level++)
		free(set->levels[level]);
	memset(set, 0, sizeof(*set));
}

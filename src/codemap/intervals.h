/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_CODEMAP_INTERVALS_H
#define SPULSE_CODEMAP_INTERVALS_H

#include "codemap.h"

/* A named range; `name` is an offset into the text it was read from, and orders equal starts. */
struct interval {
	uint64_t start, end;
	uint32_t name, name_len;
};

enum { INTERVAL_LEVELS = 8 };

/*
 * Ranges that may nest and overlap, found by address in logarithmic time whatever they look like:
 * sorted by start, with a tree of the greatest ends above them. `struct intervals set = {0};`.
 */
struct intervals {
	VEC(struct interval) items;
	uint64_t *levels[INTERVAL_LEVELS]; /* level 0: greatest end of each 16 items */
	size_t sizes[INTERVAL_LEVELS];
};

/* Adds ranges later than all present ones (in the order of equal starts); sorts `items` in place.
 * False when memory ran out: the set is as before. */
bool intervals_add(struct intervals *set, struct interval *items, size_t count);
/*
 * The same with a list of its own (data, len and cap of a VEC), which an empty set takes over: a
 * second copy of a large map is much memory. The list is the caller's to free in any case.
 */
bool intervals_take(struct intervals *set, struct interval **data, size_t *len, size_t *cap);
/* Removes those with a name at or behind an offset. */
bool intervals_cut(struct intervals *set, uint32_t name);
/* Covering range with the greatest start, the last of equal ones; or NULL. */
const struct interval *intervals_find(const struct intervals *set, uint64_t address);
void intervals_release(struct intervals *set);

#endif

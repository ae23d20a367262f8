/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_SPANS_H
#define SPULSE_SYMBOLIZE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../base/base.h"

/*
 * Nested ranges flattened: "which is the innermost range over this address" becomes one binary
 * search over starts of disjoint spans.
 */
#define SPAN_NONE UINT32_MAX

struct span_range {
	uint64_t low, high;
	uint32_t depth; /* of equal starts the deeper one is inside */
	uint32_t id;
};

/* Ranges as they are found, of which some may be wrong and too many. */
struct span_list {
	VEC(struct span_range) ranges;
	uint64_t low, high; /* others are no code of the file */
	uint64_t max;
	uint32_t depth, id; /* of those that are being added */
	bool failed;	    /* memory ran out */
};

struct spans {
	uint64_t *starts;
	uint32_t *ids; /* SPAN_NONE: a gap */
	size_t count;
};

/* Adds a range to the struct span_list; false when no more are wanted. */
bool span_list_add(void *list, uint64_t start, uint64_t end);
/* Reorders `ranges`; empty ones are left out. False when memory ran out. */
bool spans_build(struct spans *spans, struct span_range *ranges, size_t count);
/* SPAN_NONE where nothing covers the address. */
uint32_t spans_find(const struct spans *spans, uint64_t address);
void spans_release(struct spans *spans);

#endif

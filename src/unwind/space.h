/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_SPACE_H
#define SPULSE_UNWIND_SPACE_H

#include "unwind.h"

/* A sorted array of disjoint mappings, shared by forked spaces until one of them changes. */
struct space_table {
	uint32_t refs;
	struct places places;
	struct unw_map *maps; /* in room */
	struct unw_map room[];
};

struct unw_space {
	/* Names this state of this space in the rule cache; never 0, never used twice. */
	uint32_t tag;
	struct space_table *table; /* NULL while empty */
	bool partial;
};

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_PATHS_H
#define SPULSE_SPOOL_PATHS_H

#include "source.h"

/*
 * Stacks laid out flat: the frames of a node and of its callers one after another, for the nodes
 * that samples ask for. Memory is bounded; when the room is used up all are forgotten.
 */

enum {
	/* Frames that are kept, unless one stack alone has more. */
	PATH_ROOM = 1 << 19,
};

struct paths {
	uint32_t *begins; /* by node: where in `frames`, plus 1; 0 = not there */
	size_t nodes;
	VEC(uint32_t) frames;
};

/* Frame ids of a node's stack, innermost first; NULL when memory ran out. They live until the
 * next call. */
const uint32_t *paths_get_slow(struct paths *paths, const struct spulse_source *source,
			       uint32_t node);
void paths_release(struct paths *paths);

static inline const uint32_t *paths_get(struct paths *paths, const struct spulse_source *source,
					uint32_t node)
{
	if (likely(node < paths->nodes && paths->begins[node]))
		return paths->frames.data + paths->begins[node] - 1;
	return paths_get_slow(paths, source, node);
}

#endif

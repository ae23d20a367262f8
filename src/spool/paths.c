/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "paths.h"

/* The nodes of a tail grow in number. */
static bool reserve_nodes(struct paths *paths, size_t nodes)
{
	uint32_t *begins;

	if (nodes <= paths->nodes)
		return true;
	nodes = MAX(nodes, 2 * paths->nodes);
	/* Most nodes are no sample's: their pages are never touched. */
	begins = calloc(nodes, sizeof(*begins));
	if (!begins)
		return false;
	if (paths->nodes)
		memcpy(begins, paths->begins, paths->nodes * sizeof(*begins));
	free(paths->begins);
	paths->begins = begins;
	paths->nodes = nodes;
	return true;
}

static bool reserve_frames(struct paths *paths, size_t depth)
{
	if (paths->frames.len && paths->frames.len + depth > PATH_ROOM) {
		memset(paths->begins, 0, paths->nodes * sizeof(*paths->begins));
		paths->frames.len = 0;
	}
	return vec_reserve(&paths->frames, depth);
}

const uint32_t *paths_get_slow(struct paths *paths, const struct spulse_source *source,
			       uint32_t node)
{
	uint32_t depth = source_depth(source, node);
	uint32_t *frames;

	if (!reserve_nodes(paths, source->nodes.len) || !reserve_frames(paths, depth))
		return NULL;
	frames = paths->frames.data + paths->frames.len;
	paths->begins[node] = paths->frames.len + 1;
	paths->frames.len += depth;
	for (uint32_t i = 0, at = node; i < depth; i++) {
		const struct spulse_stack_node *here = &source->nodes.data[at];

		frames[i] = here->frame;
		at = here->prefix;
	}
	return frames;
}

void paths_release(struct paths *paths)
{
	free(paths->begins);
	vec_free(&paths->frames);
}

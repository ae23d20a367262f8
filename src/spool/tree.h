/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_TREE_H
#define SPULSE_SPOOL_TREE_H

#include "../base/base.h"

/*
 * The tree of stack nodes while it is written: a node is a caller's node and a frame, both by the
 * numbers they have in the file. A new stack adds its nodes one after the other, each the child of
 * the one before. Such a run is told by its frames alone, four bytes a node; only where it leaves
 * another one is there more to keep.
 */

struct tree_run {
	uint32_t first; /* node */
	uint32_t frame; /* of the first */
	uint32_t prefix;
};

/* For 64 nodes: which of them begin a run, and how many runs begin before them. */
struct tree_starts {
	uint64_t bits;
	uint64_t before;
};

struct tree {
	VEC(uint32_t) frames;		/* by node */
	VEC(struct tree_starts) starts; /* by node / 64 */
	VEC(struct tree_run) runs;	/* ascending */
	uint32_t *forks;		/* open addressing by prefix and frame: run + 1, 0 = free */
	size_t forks_mask;
	uint64_t salt;			/* of the hash */
};

void tree_init(struct tree *tree);
void tree_release(struct tree *tree);
/* Makes room for `count` more nodes, so that tree_add() cannot fail. */
bool tree_reserve(struct tree *tree, size_t count);
/* The child of `prefix` with that frame, or NODE_NONE. */
uint32_t tree_find(const struct tree *tree, uint32_t prefix, uint32_t frame);
/* Adds a child that is known to be missing; returns its number. */
uint32_t tree_add(struct tree *tree, uint32_t prefix, uint32_t frame);
/* The caller's node, NODE_NONE of an outermost one. */
uint32_t tree_prefix(const struct tree *tree, uint32_t node);

/* As tree_add() for the node that was just added as `prefix`. */
static inline uint32_t tree_extend(struct tree *tree, uint32_t frame)
{
	uint32_t id = tree->frames.len++;

	tree->frames.data[id] = frame;
	return id;
}

#define NODE_NONE UINT32_MAX
/* Nodes that a tree can hold. */
#define TREE_NODES_MAX (UINT32_MAX - 2)

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_TREE_H
#define SPULSE_SPOOL_TREE_H

#include "../base/base.h"

/*
 * The tree of stack nodes while it is written: a node is a caller's node and a frame, both by the
 * numbers they have in the file. Children hang in lists, the last one used in front; a node with
 * many children moves them to a hash. A whole stack that was seen lately is found by one probe.
 */

struct tree_node {
	uint32_t prefix;
	uint32_t frame;
	uint32_t child; /* newest child; CHILDREN_HASHED: see tree.crowd */
	uint32_t sibling;
};

struct tree_leaf {
	uint32_t hash;
	uint32_t node;
};

struct tree {
	VEC(struct tree_node) nodes;
	uint32_t root_child;
	uint32_t *crowd; /* open addressing: node + 1, 0 = free */
	size_t crowd_count, crowd_mask;
	struct tree_leaf *leaves;
};

bool tree_init(struct tree *tree);
void tree_release(struct tree *tree);
/* Makes room for `count` more nodes, so that tree_add() cannot fail. */
bool tree_reserve(struct tree *tree, size_t count);
/* The child of `prefix` with that frame, or NODE_NONE. */
uint32_t tree_find(struct tree *tree, uint32_t prefix, uint32_t frame);
/* Adds a child that is known to be missing; returns its number. */
uint32_t tree_add(struct tree *tree, uint32_t prefix, uint32_t frame);

/*
 * The node of a whole stack, frames[0] being the outermost, when it is among those remembered;
 * else NODE_NONE. Frames below `known` are those of node `at`.
 */
uint32_t tree_recall(const struct tree *tree, uint32_t hash, const uint32_t *frames, size_t count,
		     size_t known, uint32_t at);
void tree_remember(struct tree *tree, uint32_t hash, uint32_t node);

#define NODE_NONE UINT32_MAX
/* Nodes that a tree can hold. */
#define TREE_NODES_MAX (UINT32_MAX - 2)

#endif

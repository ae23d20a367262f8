/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_TREE_H
#define SPULSE_SPOOL_TREE_H

#include "../base/base.h"

/*
 * The tree of stack nodes while it is written: a node is a caller's node and a frame, both by the
 * numbers they have in the file. Children hang in lists, the last one used in front; a node with
 * many children moves them to a hash.
 */

struct tree_node {
	uint32_t prefix;
	uint32_t frame;
	uint32_t child; /* newest child; CHILDREN_HASHED: see tree.crowd */
	uint32_t sibling;
};

struct tree {
	VEC(struct tree_node) nodes;
	uint32_t root_child;
	uint32_t *crowd; /* open addressing: node + 1, 0 = free */
	size_t crowd_count, crowd_mask;
};

void tree_init(struct tree *tree);
void tree_release(struct tree *tree);
/* Makes room for `count` more nodes, so that tree_add() cannot fail. */
bool tree_reserve(struct tree *tree, size_t count);
/* The child of `prefix` with that frame, or NODE_NONE. */
uint32_t tree_find(struct tree *tree, uint32_t prefix, uint32_t frame);
/* Adds a child that is known to be missing; returns its number. */
uint32_t tree_add(struct tree *tree, uint32_t prefix, uint32_t frame);

/* The same for a `prefix` that was just added and has no children. */
static inline uint32_t tree_extend(struct tree *tree, uint32_t prefix, uint32_t frame)
{
	uint32_t id = tree->nodes.len++;

	tree->nodes.data[prefix].child = id;
	tree->nodes.data[id] = (struct tree_node){ prefix, frame, UINT32_MAX, UINT32_MAX };
	return id;
}

#define NODE_NONE UINT32_MAX
/* Nodes that a tree can hold. */
#define TREE_NODES_MAX (UINT32_MAX - 2)

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "tree.h"

enum {
	LIST_MAX = 2, /* children looked at before they move to the hash */
};

/* In tree_node.child and tree.root_child. Node ids stay below it. */
#define CHILDREN_HASHED (UINT32_MAX - 1)

void tree_init(struct tree *tree)
{
	tree->root_child = NODE_NONE;
}

void tree_release(struct tree *tree)
{
	vec_free(&tree->nodes);
	free(tree->crowd);
}

static size_t crowd_slot(const struct tree *tree, uint32_t prefix, uint32_t frame)
{
	size_t i = hash_u64((uint64_t)prefix << 32 | frame) & tree->crowd_mask;

	while (tree->crowd[i]) {
		const struct tree_node *node = &tree->nodes.data[tree->crowd[i] - 1];

		if (node->prefix == prefix && node->frame == frame)
			break;
		i = (i + 1) & tree->crowd_mask;
	}
	return i;
}

/* Room for `more` further entries at no more than half full. */
static bool crowd_reserve(struct tree *tree, size_t more)
{
	size_t need = (tree->crowd_count + more) * 2;
	size_t size = MAX(tree->crowd_mask + 1, (size_t)1024);
	uint32_t *old = tree->crowd;
	size_t old_size = old ? tree->crowd_mask + 1 : 0;

	if (old && need <= old_size)
		return true;
	while (size < need)
		size *= 2;
	tree->crowd = calloc(size, sizeof(*tree->crowd));
	if (!tree->crowd) {
		tree->crowd = old;
		return false;
	}
	tree->crowd_mask = size - 1;
	for (size_t i = 0; i < old_size; i++)
		if (old[i]) {
			const struct tree_node *node = &tree->nodes.data[old[i] - 1];

			tree->crowd[crowd_slot(tree, node->prefix, node->frame)] = old[i];
		}
	free(old);
	return true;
}

bool tree_reserve(struct tree *tree, size_t count)
{
	/* Children that move to the hash need room there too: LIST_MAX for each new one. */
	return vec_reserve(&tree->nodes, count) && crowd_reserve(tree, count + LIST_MAX + 1);
}

static void crowd_add(struct tree *tree, uint32_t id)
{
	const struct tree_node *node = &tree->nodes.data[id];

	tree->crowd[crowd_slot(tree, node->prefix, node->frame)] = id + 1;
	tree->crowd_count++;
}

static uint32_t *child_of(struct tree *tree, uint32_t prefix)
{
	return prefix == NODE_NONE ? &tree->root_child : &tree->nodes.data[prefix].child;
}

uint32_t tree_find(struct tree *tree, uint32_t prefix, uint32_t frame)
{
	struct tree_node *nodes = tree->nodes.data;
	uint32_t *head = child_of(tree, prefix);
	uint32_t *link;

	if (*head == CHILDREN_HASHED)
		return tree->crowd[crowd_slot(tree, prefix, frame)] - 1;
	for (link = head; *link != NODE_NONE; link = &nodes[*link].sibling) {
		uint32_t id = *link;

		if (nodes[id].frame != frame)
			continue;
		*link = nodes[id].sibling;
		nodes[id].sibling = *head;
		*head = id;
		return id;
	}
	return NODE_NONE;
}

/* Moves the children of a node to the hash when the list is long. */
static void maybe_hash(struct tree *tree, uint32_t *head)
{
	uint32_t id;
	size_t length = 0;

	for (id = *head; id != NODE_NONE && length <= LIST_MAX; id = tree->nodes.data[id].sibling)
		length++;
	if (length <= LIST_MAX)
		return;
	for (id = *head; id != NODE_NONE; id = tree->nodes.data[id].sibling)
		crowd_add(tree, id);
	*head = CHILDREN_HASHED;
}

uint32_t tree_add(struct tree *tree, uint32_t prefix, uint32_t frame)
{
	uint32_t id = tree->nodes.len++;
	struct tree_node *node = &tree->nodes.data[id];
	uint32_t *head = child_of(tree, prefix);

	*node = (struct tree_node){ prefix, frame, NODE_NONE, NODE_NONE };
	if (*head == CHILDREN_HASHED) {
		crowd_add(tree, id);
		return id;
	}
	node->sibling = *head;
	*head = id;
	if (node->sibling != NODE_NONE)
		maybe_hash(tree, head);
	return id;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Shares of a finished tree: of its nodes, of functions, and of code without names. */
#include <stdlib.h>

#include "calltree.h"

/* Whether a node is the mark that its callers are missing. */
static bool is_cut(const struct calltree *tree, uint32_t node)
{
	return node && tree->functions[tree->nodes[node].function].flags &
			       SPULSE_FRAME_TRUNCATED_STACK;
}

/* Functions and unnamed modules on the current path, by how many of its nodes are of each. */
struct summing {
	struct calltree *tree;
	uint32_t *functions, *unnamed;
};

static void enter(struct summing *summing, const struct calltree_node *node)
{
	struct calltree *tree = summing->tree;
	struct calltree_function *function = &tree->functions[node->function];
	bool outermost = !summing->functions[node->function]++;

	function->self += node->self;
	if (outermost)
		function->total += node->total;
	if (outermost && function->flags & SPULSE_FRAME_TRUNCATED_STACK)
		tree->truncated_samples += node->total;
	if (function->generated && is_cut(tree, node->parent))
		tree->generated_cuts += node->total;
	if (function->unresolved)
		tree->unresolved_samples += node->self;
	if (function->unnamed != CALLTREE_NONE && !summing->unnamed[function->unnamed]++)
		tree->unnamed[function->unnamed].total += node->total;
}

static void leave(struct summing *summing, const struct calltree_node *node)
{
	uint32_t unnamed = summing->tree->functions[node->function].unnamed;

	summing->functions[node->function]--;
	if (unnamed != CALLTREE_NONE)
		summing->unnamed[unnamed]--;
}

/* Depth first without recursion. */
static void walk_paths(struct summing *summing)
{
	const struct calltree_node *nodes = summing->tree->nodes;
	uint32_t node = 0;

	for (;;) {
		if (node)
			enter(summing, &nodes[node]);
		if (nodes[node].first_child != CALLTREE_NONE) {
			node = nodes[node].first_child;
			continue;
		}
		while (node && nodes[node].next_sibling == CALLTREE_NONE) {
			leave(summing, &nodes[node]);
			node = nodes[node].parent;
		}
		if (!node)
			break;
		leave(summing, &nodes[node]);
		node = nodes[node].next_sibling;
	}
}

void calltree_sum_up(struct calltree *tree)
{
	struct summing summing = {
		.tree = tree,
		.functions = mem_alloc(tree->function_count * sizeof(uint32_t)),
		.unnamed = mem_alloc(tree->unnamed_count * sizeof(uint32_t)),
	};

	for (size_t i = tree->node_count; i-- > 0;) {
		tree->nodes[i].total += tree->nodes[i].self;
		if (i)
			tree->nodes[tree->nodes[i].parent].total += tree->nodes[i].total;
	}
	walk_paths(&summing);
	free(summing.functions);
	free(summing.unnamed);
	if (!tree->samples)
		tree->first_ns = 0;
}

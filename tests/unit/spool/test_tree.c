/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Nodes of random stacks are found again, with their callers, and take few bytes each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "spool/tree.h"

enum { STACKS = 3000, DEPTH = 120, NODES = STACKS * DEPTH };

static uint32_t prefixes[NODES], frames[NODES];
static size_t nodes;

/* Adds what is new of a stack; notes each node. Returns the leaf. */
static uint32_t put(struct tree *tree, const uint32_t *stack, size_t depth)
{
	uint32_t node = NODE_NONE, next;
	size_t i = 0;

	assert_true(tree_reserve(tree, depth));
	for (; i < depth; i++, node = next) {
		next = tree_find(tree, node, stack[i]);
		if (next == NODE_NONE)
			break;
		assert_int_equal(prefixes[next], node);
		assert_int_equal(frames[next], stack[i]);
	}
	for (size_t first = i; i < depth; i++) {
		prefixes[nodes] = node;
		frames[nodes] = stack[i];
		node = i == first ? tree_add(tree, node, stack[i]) : tree_extend(tree, stack[i]);
		assert_int_equal(node, nodes);
		nodes++;
	}
	return node;
}

static void check_all(const struct tree *tree)
{
	assert_int_equal(tree->frames.len, nodes);
	for (uint32_t i = 0; i < nodes; i++) {
		assert_int_equal(tree_prefix(tree, i), prefixes[i]);
		assert_int_equal(tree->frames.data[i], frames[i]);
		assert_int_equal(tree_find(tree, prefixes[i], frames[i]), i);
		assert_int_equal(tree_find(tree, i, 1000), NODE_NONE);
	}
}

/* A stack that leaves the one before it at a random depth, or grows it by its leaf. */
static size_t change(struct random *rng, uint32_t *stack, size_t depth, uint32_t kinds)
{
	size_t keep = random_below(rng, depth + 1);
	size_t length = keep + random_below(rng, DEPTH - keep + 1);

	for (size_t i = keep; i < length; i++)
		stack[i] = random_below(rng, kinds);
	return MAX(length, (size_t)1);
}

static void random_stacks(void **state)
{
	static const uint32_t kinds[] = { 2, 7, 900 };

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct random rng = { .state = 11 + k };
		uint32_t stack[DEPTH] = { 0 };
		size_t depth = 1;
		struct tree tree;

		nodes = 0;
		tree_init(&tree);
		assert_int_equal(tree_find(&tree, NODE_NONE, 0), NODE_NONE);
		for (int i = 0; i < STACKS; i++) {
			depth = change(&rng, stack, depth, kinds[k]);
			assert_int_equal(put(&tree, stack, depth), put(&tree, stack, depth));
		}
		check_all(&tree);
		tree_release(&tree);
	}
}

static void nodes_are_small(void **state)
{
	struct random rng = { .state = 5 };
	uint32_t stack[DEPTH];
	struct tree tree;
	size_t bytes;

	(void)state;
	nodes = 0;
	tree_init(&tree);
	for (int i = 0; i < STACKS; i++) {
		for (size_t j = 0; j < DEPTH; j++)
			stack[j] = j < DEPTH / 2 ? 1 : random_below(&rng, 900);
		put(&tree, stack, DEPTH);
	}
	bytes = tree.frames.len * sizeof(uint32_t) + tree.runs.len * sizeof(struct tree_run) +
		tree.starts.len * sizeof(struct tree_starts) + tree.forks_mask * sizeof(uint32_t);
	assert_in_range(bytes, 4 * nodes, 5 * nodes);
	tree_release(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_stacks),
		cmocka_unit_test(nodes_are_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Stacks laid out flat stay right when there is no room for all, and take bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spool/paths.h"

enum { FRAMES = 1000, STACKS = 3000, DEPTH = 700 };

/* Many branches that leave one long trunk; the last node is one very deep stack. */
static void make_nodes(struct spulse_source *source, uint32_t *leaves)
{
	uint32_t node = NODE_ROOT;

	for (uint32_t i = 0; i < DEPTH - 1; i++, node = i - 1)
		assert_true(source_add_node(source, node, i % FRAMES));
	for (uint32_t i = 0; i < STACKS; i++) {
		leaves[i] = source->nodes.len;
		assert_true(source_add_node(source, node, i * 7 % FRAMES));
	}
	for (uint32_t i = 0; i < PATH_ROOM; i++, node = source->nodes.len - 1)
		assert_true(source_add_node(source, node, i % FRAMES));
}

static void check(struct paths *paths, const struct spulse_source *source, uint32_t node)
{
	const uint32_t *ids = paths_get(paths, source, node);

	assert_non_null(ids);
	for (uint32_t i = 0; node != NODE_ROOT; i++) {
		if (ids[i] != source->nodes.data[node].frame)
			fail_msg("frame %u of a stack is %u", i, ids[i]);
		node = source->nodes.data[node].prefix;
	}
}

static void test_room(void **state)
{
	struct spulse_source source = { 0 };
	struct paths paths = { 0 };
	uint32_t leaves[STACKS];

	(void)state;
	make_nodes(&source, leaves);
	assert_true((uint64_t)STACKS * DEPTH > PATH_ROOM);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < STACKS; i++) {
			check(&paths, &source, leaves[i]);
			check(&paths, &source, leaves[i / 2]);
		}
		assert_true(paths.frames.len <= PATH_ROOM);
		/* More than there is room for, and a root. */
		check(&paths, &source, source.nodes.len - 1);
		check(&paths, &source, 0);
	}
	assert_true(paths.frames.cap < 3 * PATH_ROOM);
	paths_release(&paths);
	vec_free(&source.nodes);
	vec_free(&source.depths);
	vec_free(&source.deep);
}

/* New nodes after the first look-ups, as in a tail. */
static void test_growth(void **state)
{
	struct spulse_source source = { 0 };
	struct paths paths = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(source_add_node(&source, i % 40 ? i - 1 : NODE_ROOT, i % FRAMES));
		check(&paths, &source, i);
		check(&paths, &source, i / 2);
	}
	paths_release(&paths);
	vec_free(&source.nodes);
	vec_free(&source.depths);
	vec_free(&source.deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

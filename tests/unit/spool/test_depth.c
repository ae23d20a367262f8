/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Depths of stacks around and beyond what 16 bits count, which few stacks reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "spool_bytes.h"
#include "spool_output.h"

enum { CHAIN = 70000 };

/* One chain of frames that are all the same, and a stack that leaves it after `node`. */
static uint32_t branch(struct strbuf *bytes, uint32_t id, uint32_t node)
{
	bytes_numbers(bytes, 4, 3, id, node, 0);
	bytes_numbers(bytes, 4, 5, 2, 0, id);
	return id + 1;
}

static void make(struct spool_file *file, const uint32_t *nodes, size_t count)
{
	struct strbuf bytes = { 0 };
	uint32_t next = CHAIN;

	bytes_header(&bytes, 4);
	bytes_numbers(&bytes, 4, 2, 0, 1, 5);
	bytes_numbers(&bytes, 4, 4, 0, 14, 8);
	for (uint32_t i = 0; i < CHAIN; i++)
		bytes_numbers(&bytes, 4, 3, i, i ? i - 1 : UINT32_MAX, 0);
	for (size_t i = 0; i < count; i++)
		next = branch(&bytes, next, nodes[i]);
	for (size_t i = 0; i < count; i++)
		bytes_numbers(&bytes, 4, 5, 2, 0, nodes[i]);
	spool_file_make(file, bytes.data, bytes.len);
	strbuf_release(&bytes);
}

static void check_stack(struct spulse_stacks *stacks, uint32_t depth)
{
	const struct spulse_stack *stack;
	struct spulse_frame_iter iter;
	const uint32_t *ids;
	size_t count;

	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
	assert_int_equal(spulse_stack_depth(stack), depth);
	assert_int_equal(spulse_stacks_frame_ids(stacks, &ids, &count, NULL), 0);
	assert_int_equal(count, depth);
	iter = spulse_stack_frames(stack);
	for (count = 0; spulse_frame_iter_next(&iter); count++)
		;
	assert_int_equal(count, depth);
}

static void test_depths(void **state)
{
	static const uint32_t nodes[] = { 0, 7, 65531, 65532, 65533, 65534, 65535, 65536, 69999 };
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	struct spool_file file;

	(void)state;
	make(&file, nodes, ARRAY_LEN(nodes));
	assert_int_equal(spulse_snapshot_open(file.path, &snapshot, NULL), 0);
	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		check_stack(stacks, nodes[i] + 2);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		check_stack(stacks, nodes[i] + 1);
	spool_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calltree.h"
#include "spoolmaker.h"

/* No file of this name exists: every frame is FILE+0xOFFSET, which makes names predictable. */
#define PROGRAM "/nonexistent/program"
enum { BASE = 0x10000, A = BASE + 0x10, B = BASE + 0x20, C = BASE + 0x30 };

static struct spoolmaker maker;

/* Process 10 with threads 10 and 11, process 20; 10 samples. */
static int make_spool(void **state)
{
	const uint64_t deep[] = {C, B, A}, recursive[] = {B, A, B, A}, cut[] = {C, 0}, flat[] = {A};
	uint32_t first, second;

	(void)state;
	spoolmaker_start(&maker);
	spoolmaker_annotation(&maker, 10, "comm=early");
	spoolmaker_annotation(&maker, 10, "comm=app");
	spoolmaker_annotation(&maker, 10, "thread-name/11=work%65r");
	first = spoolmaker_module(&maker, 10, BASE, PROGRAM);
	second = spoolmaker_module(&maker, 20, BASE, PROGRAM);
	for (uint64_t i = 0; i < 4; i++)
		spoolmaker_sample(&maker, 1000 + i, 10, 10, first, deep, 3);
	for (uint64_t i = 0; i < 3; i++)
		spoolmaker_sample(&maker, 2000 + i, 10, 11, first, recursive, 4);
	for (uint64_t i = 0; i < 2; i++)
		spoolmaker_sample(&maker, 3000 + i, 20, 20, second, cut, 2);
	spoolmaker_sample(&maker, 4000, 20, 20, second, flat, 1);
	spoolmaker_finish(&maker);
	return 0;
}

static int remove_spool(void **state)
{
	(void)state;
	return unlink(maker.path);
}

static void read_tree(struct calltree *tree, const struct calltree_options *options)
{
	struct spulse_error *err = NULL;

	if (calltree_read(tree, maker.path, options, &err) < 0)
		fail_msg("%s", spulse_error_message(err));
}

static const struct calltree_function *function(const struct calltree *tree, const char *name)
{
	for (size_t i = 0; i < tree->function_count; i++)
		if (!strcmp(tree->functions[i].name, name))
			return &tree->functions[i];
	fail_msg("there is no function %s", name);
	return NULL;
}

static void shares(void **state)
{
	const struct calltree_options options = {.symopts.no_native = true};
	struct calltree tree = {0};
	uint32_t *order;

	(void)state;
	read_tree(&tree, &options);
	assert_int_equal(tree.samples, 10);
	assert_int_equal(tree.truncated_samples, 2);
	assert_int_equal(tree.first_ns, 1000);
	assert_int_equal(tree.last_ns, 4000);
	assert_false(tree.recovered);
	assert_int_equal(tree.nodes[0].total, 10);
	/* Root, A B C, A B A B, [truncated] C. */
	assert_int_equal(tree.node_count, 8);
	assert_int_equal(function(&tree, "program+0x30")->self, 6);
	assert_int_equal(function(&tree, "program+0x30")->total, 6);
	/* Recursion counts once per sample. */
	assert_int_equal(function(&tree, "program+0x20")->self, 3);
	assert_int_equal(function(&tree, "program+0x20")->total, 7);
	assert_int_equal(function(&tree, "program+0x10")->self, 1);
	assert_int_equal(function(&tree, "program+0x10")->total, 8);
	assert_true(calltree_share(&tree, 3) == 30.0);

	order = calltree_ranking(&tree, false);
	assert_string_equal(tree.functions[order[0]].name, "program+0x30");
	free(order);
	order = calltree_ranking(&tree, true);
	assert_string_equal(tree.functions[order[0]].name, "program+0x10");
	free(order);
	calltree_release(&tree);
}

static void hottest_stacks(void **state)
{
	const struct calltree_options options = {.symopts.no_native = true};
	struct calltree tree = {0};
	uint32_t *order;
	size_t count;

	(void)state;
	read_tree(&tree, &options);
	order = calltree_hottest(&tree, &count);
	assert_int_equal(count, 4);
	assert_int_equal(tree.nodes[order[0]].self, 4);
	assert_int_equal(tree.nodes[order[3]].self, 1);
	assert_string_equal(tree.functions[tree.nodes[order[0]].function].name, "program+0x30");
	for (uint32_t node = order[0]; node; node = tree.nodes[node].parent)
		assert_true(tree.nodes[node].parent < node);
	free(order);
	calltree_release(&tree);
}

static void tasks(void **state)
{
	const struct calltree_options options = {.symopts.no_native = true};
	struct calltree tree = {0};

	(void)state;
	read_tree(&tree, &options);
	calltree_sort_tasks(&tree.processes);
	calltree_sort_tasks(&tree.threads);
	assert_int_equal(tree.processes.count, 2);
	assert_int_equal(tree.processes.items[0].pid, 10);
	assert_int_equal(tree.processes.items[0].samples, 7);
	assert_string_equal(tree.processes.items[0].name, "app");
	assert_null(tree.processes.items[1].name);
	assert_int_equal(tree.threads.count, 3);
	assert_string_equal(tree.threads.items[0].name, "app");
	assert_int_equal(tree.threads.items[1].tid, 11);
	assert_string_equal(tree.threads.items[1].name, "worker");
	calltree_release(&tree);
}

static void grouping(void **state)
{
	struct calltree_options options = {.symopts.no_native = true};
	struct calltree tree = {0};

	(void)state;
	options.grouping = CALLTREE_BY_PROCESS;
	read_tree(&tree, &options);
	assert_int_equal(function(&tree, "app (process 10)")->total, 7);
	assert_int_equal(function(&tree, "process 20")->total, 3);
	assert_int_equal(function(&tree, "process 20")->self, 0);
	calltree_release(&tree);

	options.grouping = CALLTREE_BY_THREAD;
	read_tree(&tree, &options);
	assert_int_equal(function(&tree, "worker (thread 11)")->total, 3);
	assert_int_equal(function(&tree, "app (thread 10)")->total, 4);
	assert_int_equal(tree.samples, 10);
	calltree_release(&tree);
}

static void selection(void **state)
{
	struct calltree_options options = {.symopts.no_native = true};
	struct calltree tree = {0};

	(void)state;
	options.pids = (struct cli_pids){.pids = {20, 30}, .count = 2};
	read_tree(&tree, &options);
	assert_int_equal(tree.samples, 3);
	calltree_release(&tree);

	options.pids.count = 0;
	options.tids = (struct cli_pids){.pids = {11}, .count = 1};
	read_tree(&tree, &options);
	assert_int_equal(tree.samples, 3);
	assert_int_equal(tree.threads.count, 1);
	calltree_release(&tree);

	options.tids.pids[0] = 99;
	read_tree(&tree, &options);
	assert_int_equal(tree.samples, 0);
	assert_int_equal(tree.first_ns, 0);
	assert_true(calltree_share(&tree, 0) == 0);
	calltree_release(&tree);
}

/* A module's code without names is one function; a run of its calls is one node. */
static void merged(void **state)
{
	const struct calltree_options options = {.symopts.no_native = true, .merge_unnamed = true};
	const struct calltree_function *program;
	struct calltree tree = {0};

	(void)state;
	read_tree(&tree, &options);
	program = function(&tree, "program (no symbol)");
	/* Root, the program, the mark of the cut, the program below it. */
	assert_int_equal(tree.node_count, 4);
	assert_int_equal(tree.function_count, 2);
	assert_int_equal(program->self, 10);
	assert_int_equal(program->total, 10);
	assert_true(program->merged && program->unresolved && !program->generated);
	assert_string_equal(program->path, PROGRAM);
	assert_int_equal(tree.unnamed_count, 1);
	assert_int_equal(tree.unnamed[program->unnamed].total, 10);
	assert_non_null(tree.unnamed[program->unnamed].why);
	assert_int_equal(tree.unresolved_samples, 10);
	assert_int_equal(tree.generated_cuts, 0);
	calltree_release(&tree);
}

/* Samples that end at each depth of one deep stack, or all at its end; CPU seconds of reading. */
static double read_deep(unsigned int depth, unsigned int samples, unsigned int step)
{
	const struct calltree_options options = {.symopts.no_native = true};
	uint64_t *addresses = calloc(depth, sizeof(*addresses));
	struct spulse_error *err = NULL;
	struct spoolmaker deep;
	struct calltree tree = {0};
	uint32_t module;
	clock_t start;

	assert_non_null(addresses);
	for (unsigned int i = 0; i < depth; i++)
		addresses[i] = BASE + 0x10 + (depth - i) % 7 * 0x10;
	spoolmaker_start(&deep);
	module = spoolmaker_module(&deep, 10, BASE, PROGRAM);
	for (unsigned int i = 0; i < samples; i++)
		spoolmaker_sample(&deep, i + 1, 10, 10, module, addresses + i * step,
				  depth - i * step);
	spoolmaker_finish(&deep);
	start = clock();
	if (calltree_read(&tree, deep.path, &options, &err) < 0)
		fail_msg("%s", spulse_error_message(err));
	start = clock() - start;
	assert_int_equal(tree.samples, samples);
	assert_int_equal(tree.node_count, depth + 1);
	calltree_release(&tree);
	unlink(deep.path);
	free(addresses);
	return (double)start / CLOCKS_PER_SEC;
}

/* Callers that stacks share are looked at once: 7 million frames in 10,000 nodes. */
static void shared_callers(void **state)
{
	double one, many;

	(void)state;
	read_deep(10000, 1, 0);
	one = read_deep(10000, 1, 0);
	many = read_deep(10000, 1000, 5);
	assert_true(many < one * 40 + 0.02);
}

/* A path longer than any real one is not repeated by each frame. */
static void long_path(void **state)
{
	enum { LENGTH = 200000, FRAMES = 500 };
	const struct calltree_options options = {.symopts.no_native = true};
	char *path = malloc(LENGTH + 1);
	struct spulse_error *err = NULL;
	struct spoolmaker made;
	struct calltree tree = {0};
	uint32_t module;

	(void)state;
	assert_non_null(path);
	memset(path, 'x', LENGTH);
	path[0] = '/';
	path[LENGTH] = 0;
	spoolmaker_start(&made);
	module = spoolmaker_module(&made, 10, BASE, path);
	for (uint64_t i = 0; i < FRAMES; i++) {
		const uint64_t address = BASE + i;

		spoolmaker_sample(&made, i + 1, 10, 10, module, &address, 1);
	}
	spoolmaker_finish(&made);
	if (calltree_read(&tree, made.path, &options, &err) < 0)
		fail_msg("%s", spulse_error_message(err));
	assert_int_equal(tree.function_count, FRAMES);
	for (size_t i = 0; i < tree.function_count; i++) {
		assert_true(tree.functions[i].name_len < 300);
		assert_true(strlen(tree.functions[i].module) <= 4096);
		assert_ptr_equal(tree.functions[i].module, tree.functions[0].module);
	}
	calltree_release(&tree);
	unlink(made.path);
	free(path);
}

static void missing_file(void **state)
{
	const struct calltree_options options = {0};
	SPULSE_CLEANUP(error) err = NULL;
	struct calltree tree = {0};

	(void)state;
	assert_true(calltree_read(&tree, "/nonexistent/x.spool", &options, &err) < 0);
	assert_non_null(strstr(spulse_error_message(err), "/nonexistent/x.spool"));
	calltree_release(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares),    cmocka_unit_test(hottest_stacks),
		cmocka_unit_test(tasks),     cmocka_unit_test(grouping),
		cmocka_unit_test(selection), cmocka_unit_test(merged),
		cmocka_unit_test(shared_callers), cmocka_unit_test(long_path),
		cmocka_unit_test(missing_file),
	};

	return cmocka_run_group_tests(tests, make_spool, remove_spool);
}

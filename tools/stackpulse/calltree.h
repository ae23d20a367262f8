/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_CALLTREE_H
#define TOOL_CALLTREE_H

/*
 * A recording folded into a tree of functions, for everything that shows shares. Every distinct
 * stack is resolved once; memory grows with what is distinct, not with the number of samples.
 */

#include <stdbool.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

#include "cli.h"
#include "mem.h"
#include "names.h"
#include "symopts.h"

enum { CALLTREE_NONE = UINT32_MAX };

/* A flag beside enum spulse_frame_flag: a process or thread that stands above its stacks. */
enum { CALLTREE_GROUP = 1 << 16 };

enum calltree_grouping { CALLTREE_BY_NOTHING, CALLTREE_BY_PROCESS, CALLTREE_BY_THREAD };

/* A process or thread and its samples. */
struct calltree_task {
	pid_t pid;
	pid_t tid;
	uint64_t samples;
	/* Owned, or NULL. */
	char *name;
	/* Its node when stacks are grouped by it. */
	uint32_t node;
};

struct calltree_tasks {
	struct calltree_task *items;
	size_t count, cap;
	struct idmap ids;
};

/* A function by name, module, kind and, in Python, file: one colour, one line of a table. */
struct calltree_function {
	const char *name;
	const char *module;
	/* Source file as first seen, or NULL. */
	const char *file;
	/* Full path of the module when the function has no name, else NULL. */
	const char *path;
	/* Of the code without names that it is a part of, or CALLTREE_NONE. */
	uint32_t unnamed;
	size_t name_len;
	enum spulse_frame_kind kind;
	/* Set of enum spulse_frame_flag, and CALLTREE_GROUP. */
	unsigned int flags;
	bool inlined;
	/* No symbol names it. */
	bool unresolved;
	/* Stands for all code of a function of which the start is known, or of the module. */
	bool merged;
	/* Made at run time: no file holds it. */
	bool generated;
	/* Samples with the function innermost, and with it anywhere (counted once). */
	uint64_t self;
	uint64_t total;
};

/* The code of a module that has no names: only when it is merged. */
struct calltree_unnamed {
	/* A function of it, which has the module's path and kind. */
	uint32_t function;
	/* Samples with any of it. */
	uint64_t total;
	/* Why: what the symbolizer says of the module, or NULL. */
	char *why;
};

/* A node's parent has a smaller index. Node 0 is the root: it has no function. */
struct calltree_node {
	uint32_t parent;
	uint32_t function;
	uint32_t first_child;
	uint32_t next_sibling;
	uint64_t self;
	uint64_t total;
};

struct calltree {
	struct calltree_function *functions;
	size_t function_count, function_cap;
	struct calltree_node *nodes;
	size_t node_count, node_cap;
	struct calltree_unnamed *unnamed;
	size_t unnamed_count, unnamed_cap;
	uint64_t samples;
	uint64_t truncated_samples;
	/* Samples whose innermost function has no name. */
	uint64_t unresolved_samples;
	/* Samples in a Python interpreter whose stacks name no Python function. */
	uint64_t interpreter_samples;
	/* Truncated samples whose outermost known function is code without a file. */
	uint64_t generated_cuts;
	uint64_t first_ns, last_ns;
	struct calltree_tasks processes, threads;
	bool recovered;
	/* Private: what is known already. */
	struct idmap stacks, frames, children, names, unnamed_ids, text_ids;
	char **texts;
	size_t text_count, text_cap;
	struct names labels;
};

/* What to read, from the command line. */
struct calltree_options {
	struct symopts symopts;
	/* Empty = all. */
	struct cli_pids pids;
	struct cli_pids tids;
	bool show_hidden;
	/* Merge code without a name by function where its start is known, else by module. */
	bool merge_unnamed;
	/* enum calltree_grouping. */
	int grouping;
};

/* The first of them select samples, the others change the tree that is made of them. */
enum { CALLTREE_SAMPLE_OPTIONS = 2, CALLTREE_OPTION_COUNT = 4 };

/* Fills the table of a group "Selection" for cli_spec. */
void calltree_cli_options(struct calltree_options *options,
			  struct cli_option table[CALLTREE_OPTION_COUNT]);
/* Whether a sample is among those that were asked for. */
bool calltree_selected(const struct calltree_options *options, pid_t pid, pid_t tid);

/* Reads a spool. *tree must be all zero; release it on failure, too. */
int calltree_read(struct calltree *tree, const char *path, const struct calltree_options *options,
		  struct spulse_error **err);
void calltree_release(struct calltree *tree);
/* Sums up the samples of nodes: from the leaves to the root, then functions along every path. */
void calltree_sum_up(struct calltree *tree);

/* Function indexes sorted by self or total share, most first. Free with free(). */
uint32_t *calltree_ranking(const struct calltree *tree, bool by_total);
/* Sorts tasks by samples, most first. */
void calltree_sort_tasks(struct calltree_tasks *tasks);
/* Nodes with samples of their own, most first; *count_out of them. Free with free(). */
uint32_t *calltree_hottest(const struct calltree *tree, size_t *count_out);
/* A share of all samples in percent. */
double calltree_share(const struct calltree *tree, uint64_t samples);

#endif

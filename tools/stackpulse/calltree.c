/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "cuts.h"
#include "tool.h"

void calltree_cli_options(struct calltree_options *options,
			  struct cli_option table[CALLTREE_OPTION_COUNT])
{
	static const char *const groupings[] = {"nothing", "process", "thread", NULL};
	const struct cli_option filled[CALLTREE_OPTION_COUNT] = {
		{'p', "pid", CLI_CUSTOM, &options->pids, "PID[,PID...]",
		 .help = "Only samples of these processes.", .parse = cli_parse_pids},
		{'t', "tid", CLI_CUSTOM, &options->tids, "TID[,TID...]",
		 .help = "Only samples of these threads.", .parse = cli_parse_pids},
		{0, "show-hidden", CLI_FLAG, &options->show_hidden, NULL,
		 .help = "Show frames that are usually left out."},
		{0, "by", CLI_CHOICE, &options->grouping, "process|thread",
		 .help = "Put the stacks of each process or thread below a frame of its own.",
		 .choices = groupings},
	};

	memcpy(table, filled, sizeof(filled));
}

static bool listed(const struct cli_pids *list, pid_t id)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == id)
			return true;
	return !list->count;
}

bool calltree_selected(const struct calltree_options *options, pid_t pid, pid_t tid)
{
	return listed(&options->pids, pid) && listed(&options->tids, tid);
}

/* FNV-1a; collisions are told apart by the caller. */
static uint64_t hash_text(uint64_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash;
}

static bool same_function(const struct calltree_function *a, const struct calltree_function *b)
{
	return a->name_len == b->name_len && a->merged == b->merged &&
	       !memcmp(a->name, b->name, a->name_len) &&
	       !strcmp(a->module, b->module) && a->kind == b->kind;
}

/* The display name of a frame; in buf when it fits, else allocated. */
static char *display_name(const struct spulse_resolved_frame *frame, char *buf, size_t size,
			  size_t *len_out)
{
	size_t len = spulse_resolved_frame_display_name_len(frame);
	char *name = len < size ? buf : mem_alloc(len + 1);

	spulse_resolved_frame_display_name(frame, name, len + 1);
	*len_out = len;
	return name;
}

static uint32_t add_function(struct calltree *tree, const struct calltree_function *wanted,
			     const char *file)
{
	struct calltree_function *added;

	MEM_PUSH(tree->functions, tree->function_count, tree->function_cap) = *wanted;
	added = &tree->functions[tree->function_count - 1];
	added->name = mem_copy(wanted->name, wanted->name_len);
	added->module = mem_copy(wanted->module, strlen(wanted->module));
	added->file = file ? mem_copy(file, strlen(file)) : NULL;
	added->path = wanted->path ? mem_copy(wanted->path, strlen(wanted->path)) : NULL;
	return (uint32_t)(tree->function_count - 1);
}

/* The index of a function equal to wanted, which is added when there is none. */
static uint32_t intern_function(struct calltree *tree, const struct calltree_function *wanted,
				const char *file)
{
	uint64_t hash = hash_text(0xcbf29ce484222325, wanted->name, wanted->name_len);
	uint32_t index;
	int is_new;

	hash = hash_text(hash + (uint64_t)wanted->kind, wanted->module, strlen(wanted->module));
	for (;; hash++) {
		index = idmap_intern(&tree->names, hash, (uint32_t)tree->function_count, &is_new);
		if (is_new)
			return add_function(tree, wanted, file);
		if (same_function(&tree->functions[index], wanted))
			return index;
	}
}

/*
 * The name that stands for code without one: of its function, by where that starts in the file, or
 * of all such code of the module.
 */
static char *merged_name(const struct calltree_function *function, uint64_t start, char *buf,
			 size_t size, size_t *len_out)
{
	bool nameless = !*function->module || !strcmp(function->path, "//anon");
	const char *module = nameless ? "run-time code" : function->module;
	size_t len = strlen(module) + sizeof("+0x0123456789abcdef");
	char *name = len < size ? buf : mem_alloc(len + 1);

	if (start == UINT64_MAX)
		snprintf(name, len + 1, "%s (no symbol)", module);
	else
		snprintf(name, len + 1, "%s+0x%" PRIx64, module, start);
	*len_out = strlen(name);
	return name;
}

/* The code without names that a function is a part of: that of its module. */
static uint32_t find_unnamed(struct calltree *tree, const struct calltree_function *function,
			     uint32_t index)
{
	uint64_t hash = hash_text(0xcbf29ce484222325, function->path, strlen(function->path));
	uint32_t found;
	int is_new;

	for (hash += (uint64_t)function->kind;; hash++) {
		const struct calltree_function *other;

		found = idmap_intern(&tree->unnamed_ids, hash, (uint32_t)tree->unnamed_count,
				     &is_new);
		if (is_new)
			break;
		other = &tree->functions[tree->unnamed[found].function];
		if (other->kind == function->kind && !strcmp(other->path, function->path))
			return found;
	}
	MEM_PUSH(tree->unnamed, tree->unnamed_count, tree->unnamed_cap) =
		(struct calltree_unnamed){.function = index};
	return found;
}

static uint32_t find_function(struct calltree *tree, const struct spulse_resolved_frame *frame,
			      const struct calltree_options *options)
{
	struct calltree_function wanted = {
		.kind = spulse_resolved_frame_kind(frame),
		.module = spulse_resolved_frame_module_basename(frame),
		.flags = spulse_resolved_frame_flags(frame),
		.inlined = spulse_resolved_frame_inline_depth(frame) > 0,
		.unnamed = CALLTREE_NONE,
	};
	char buf[512], *name;
	uint32_t index;
	uint64_t start;

	wanted.unresolved = spulse_resolved_frame_origin(frame) == SPULSE_ORIGIN_ADDRESS_ONLY &&
			    !(wanted.flags & SPULSE_FRAME_TRUNCATED_STACK);
	wanted.merged = wanted.unresolved && options->merge_unnamed;
	if (!wanted.module)
		wanted.module = "";
	if (wanted.unresolved)
		wanted.path = spulse_resolved_frame_module(frame);
	wanted.generated = spulse_resolved_frame_origin(frame) == SPULSE_ORIGIN_PERF_MAP ||
			   wanted.flags & SPULSE_FRAME_JIT ||
			   (wanted.unresolved && cuts_is_generated(wanted.path));
	start = spulse_resolved_frame_function_start(frame);
	if (wanted.merged)
		name = merged_name(&wanted, start, buf, sizeof(buf), &wanted.name_len);
	else
		name = display_name(frame, buf, sizeof(buf), &wanted.name_len);
	wanted.name = name;
	index = intern_function(tree, &wanted, spulse_resolved_frame_file(frame));
	if (wanted.merged && tree->functions[index].unnamed == CALLTREE_NONE)
		tree->functions[index].unnamed =
			find_unnamed(tree, &tree->functions[index], index);
	/* A function that exists on its own anywhere is not shown as inlined. */
	tree->functions[index].inlined &= wanted.inlined;
	if (name != buf)
		free(name);
	return index;
}

static uint32_t child_of(struct calltree *tree, uint32_t parent, uint32_t function)
{
	int is_new;
	uint32_t index = idmap_intern(&tree->children, (uint64_t)parent << 32 | function,
				      (uint32_t)tree->node_count, &is_new);
	uint32_t sibling = tree->nodes[parent].first_child;

	if (is_new) {
		MEM_PUSH(tree->nodes, tree->node_count, tree->node_cap) = (struct calltree_node){
			.parent = parent,
			.function = function,
			.first_child = CALLTREE_NONE,
			.next_sibling = sibling,
		};
		tree->nodes[parent].first_child = index;
	}
	return index;
}

static bool left_out(const struct spulse_resolved_frame *frame,
		     const struct calltree_options *options)
{
	if (options->symopts.no_inline && spulse_resolved_frame_inline_depth(frame) > 0)
		return true;
	return !options->show_hidden && spulse_resolved_frame_should_ignore(frame);
}

/* Node of a stack that was not seen before: its frames from the outermost inwards. */
static uint32_t add_stack(struct calltree *tree, const struct spulse_resolved *resolved,
			  uint32_t node, const struct calltree_options *options)
{
	for (size_t i = spulse_resolved_count(resolved); i-- > 0;) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);
		uint64_t serial = spulse_resolved_id(resolved, i).serial;
		uint32_t function;
		int is_new;

		if (left_out(frame, options))
			continue;
		function = idmap_intern(&tree->frames, serial, 0, &is_new);
		if (is_new) {
			function = find_function(tree, frame, options);
			idmap_set(&tree->frames, serial, function);
		}
		/* One box for a run of calls that cannot be told apart. */
		if (node && tree->functions[function].merged &&
		    tree->nodes[node].function == function)
			continue;
		node = child_of(tree, node, function);
	}
	return node;
}

/* Counts a sample of a process (tid 0) or thread. */
static struct calltree_task *count_task(struct calltree_tasks *tasks, const struct names *labels,
					pid_t pid, pid_t tid)
{
	int is_new;
	uint32_t index = idmap_intern(&tasks->ids, (uint64_t)pid << 32 | (uint32_t)tid,
				      (uint32_t)tasks->count, &is_new);
	const char *name;

	if (is_new) {
		name = tid ? names_thread(labels, pid, tid) : names_process(labels, pid);
		MEM_PUSH(tasks->items, tasks->count, tasks->cap) = (struct calltree_task){
			.pid = pid,
			.tid = tid,
			.name = name ? mem_copy(name, strlen(name)) : NULL,
		};
	}
	tasks->items[index].samples++;
	return &tasks->items[index];
}

/* The node of a task, below which its stacks are put. */
static uint32_t group_node(struct calltree *tree, struct calltree_task *task)
{
	char name[256];
	struct calltree_function wanted = {.name = name,
					   .module = "",
					   .unnamed = CALLTREE_NONE,
					   .flags = CALLTREE_GROUP,
					   .kind = SPULSE_FRAME_KIND_UNKNOWN};
	const char *kind = task->tid ? "thread" : "process";
	int id = task->tid ? task->tid : task->pid;

	if (task->node)
		return task->node;
	if (task->name)
		wanted.name_len = (size_t)snprintf(name, sizeof(name), "%.200s (%s %d)", task->name,
						   kind, id);
	else
		wanted.name_len = (size_t)snprintf(name, sizeof(name), "%s %d", kind, id);
	task->node = child_of(tree, 0, intern_function(tree, &wanted, NULL));
	return task->node;
}

static int add_sample(struct calltree *tree, struct spulse_symbolizer *symbolizer,
		      const struct spulse_stack *stack, const struct calltree_options *options,
		      struct spulse_error **err)
{
	struct spulse_stack_key key = spulse_stack_key(stack);
	uint64_t time = spulse_stack_timestamp_ns(stack);
	pid_t tid = spulse_stack_tid(stack);
	bool by_thread = options->grouping == CALLTREE_BY_THREAD;
	uint64_t packed = (uint64_t)(uint32_t)(by_thread ? tid : key.pid) << 32 | key.node;
	struct calltree_task *process, *thread;
	const struct spulse_resolved *resolved;
	uint32_t leaf;
	int is_new, r;

	if (!calltree_selected(options, key.pid, tid))
		return 0;
	process = count_task(&tree->processes, &tree->labels, key.pid, 0);
	thread = count_task(&tree->threads, &tree->labels, key.pid, tid);
	leaf = idmap_intern(&tree->stacks, packed, 0, &is_new);
	if (is_new) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);
		if (r < 0)
			return r;
		if (options->grouping != CALLTREE_BY_NOTHING)
			leaf = group_node(tree, by_thread ? thread : process);
		leaf = add_stack(tree, resolved, leaf, options);
		idmap_set(&tree->stacks, packed, leaf);
	}
	tree->nodes[leaf].self++;
	tree->samples++;
	tree->first_ns = time < tree->first_ns ? time : tree->first_ns;
	tree->last_ns = time > tree->last_ns ? time : tree->last_ns;
	return 0;
}

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

/* Sums up: nodes from the leaves to the root, then functions along every path. */
static void sum_up(struct calltree *tree)
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

/* The module of that path; the number of modules when there is none. */
static size_t module_index(const struct spulse_source *source, const char *path)
{
	size_t count = spulse_source_module_count(source), i = 0;

	while (i < count && strcmp(spulse_module_path(spulse_source_module(source, i)), path))
		i++;
	return i;
}

/* Asks why modules have code without a name, for those that matter. */
static int explain(struct calltree *tree, struct spulse_symbolizer *symbolizer,
		   const struct spulse_source *source, struct spulse_error **err)
{
	for (size_t i = 0; i < tree->unnamed_count; i++) {
		struct calltree_unnamed *unnamed = &tree->unnamed[i];
		const char *text;
		size_t index;
		int r;

		if (calltree_share(tree, unnamed->total) < 1)
			continue;
		index = module_index(source, tree->functions[unnamed->function].path);
		if (index == spulse_source_module_count(source))
			continue;
		r = spulse_symbolizer_module_report(symbolizer, index, &text, err);
		if (r < 0)
			return r;
		unnamed->why = mem_copy(text, strlen(text));
	}
	return 0;
}

int calltree_read(struct calltree *tree, const char *path, const struct calltree_options *options,
		  struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_replay_open(path, &replay, err);

	if (r < 0)
		return r;
	MEM_PUSH(tree->nodes, tree->node_count, tree->node_cap) = (struct calltree_node){
		.parent = CALLTREE_NONE,
		.function = CALLTREE_NONE,
		.first_child = CALLTREE_NONE,
		.next_sibling = CALLTREE_NONE,
	};
	tree->first_ns = UINT64_MAX;
	tree->recovered = spulse_source_recovered_from_truncated_tail(spulse_replay_source(replay));
	if ((r = symopts_open(&options->symopts, spulse_replay_source(replay), &symbolizer, err)) <
		    0 ||
	    (r = spulse_symbolizer_prepare(symbolizer, err)) < 0 ||
	    (r = spulse_replay_stacks(replay, &stacks, err)) < 0)
		return r;
	names_load(&tree->labels, spulse_replay_source(replay));
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = add_sample(tree, symbolizer, stack, options, err);
		if (r < 0)
			break;
	}
	/* Borrowed from the reader, which is closed now. */
	names_release(&tree->labels);
	sum_up(tree);
	return r < 0 ? r : explain(tree, symbolizer, spulse_replay_source(replay), err);
}

static void release_tasks(struct calltree_tasks *tasks)
{
	for (size_t i = 0; i < tasks->count; i++)
		free(tasks->items[i].name);
	free(tasks->items);
	idmap_release(&tasks->ids);
}

void calltree_release(struct calltree *tree)
{
	for (size_t i = 0; i < tree->function_count; i++) {
		free((char *)tree->functions[i].name);
		free((char *)tree->functions[i].module);
		free((char *)tree->functions[i].file);
		free((char *)tree->functions[i].path);
	}
	for (size_t i = 0; i < tree->unnamed_count; i++)
		free(tree->unnamed[i].why);
	free(tree->unnamed);
	idmap_release(&tree->unnamed_ids);
	free(tree->functions);
	free(tree->nodes);
	idmap_release(&tree->stacks);
	idmap_release(&tree->frames);
	idmap_release(&tree->children);
	idmap_release(&tree->names);
	names_release(&tree->labels);
	release_tasks(&tree->processes);
	release_tasks(&tree->threads);
	*tree = (struct calltree){0};
}

double calltree_share(const struct calltree *tree, uint64_t samples)
{
	return tree->samples ? 100.0 * (double)samples / (double)tree->samples : 0;
}

static int by_self(const void *a, const void *b, void *data)
{
	const struct calltree_function *functions = data;
	const struct calltree_function *left = &functions[*(const uint32_t *)a];
	const struct calltree_function *right = &functions[*(const uint32_t *)b];

	if (left->self != right->self)
		return left->self < right->self ? 1 : -1;
	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return strcmp(left->name, right->name);
}

static int by_total(const void *a, const void *b, void *data)
{
	const struct calltree_function *functions = data;
	const struct calltree_function *left = &functions[*(const uint32_t *)a];
	const struct calltree_function *right = &functions[*(const uint32_t *)b];

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return by_self(a, b, data);
}

uint32_t *calltree_ranking(const struct calltree *tree, bool total)
{
	uint32_t *order = mem_alloc(tree->function_count * sizeof(*order));

	for (size_t i = 0; i < tree->function_count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, tree->function_count, sizeof(*order), total ? by_total : by_self,
		tree->functions);
	return order;
}

static int hotter(const void *a, const void *b, void *data)
{
	const struct calltree_node *nodes = data;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (nodes[left].self != nodes[right].self)
		return nodes[left].self < nodes[right].self ? 1 : -1;
	return left < right ? -1 : left > right;
}

uint32_t *calltree_hottest(const struct calltree *tree, size_t *count_out)
{
	uint32_t *order = mem_alloc(tree->node_count * sizeof(*order));
	size_t count = 0;

	for (size_t i = 1; i < tree->node_count; i++)
		if (tree->nodes[i].self)
			order[count++] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), hotter, tree->nodes);
	*count_out = count;
	return order;
}

static int busier(const void *a, const void *b)
{
	const struct calltree_task *left = a, *right = b;

	if (left->samples != right->samples)
		return left->samples < right->samples ? 1 : -1;
	return left->pid != right->pid ? (left->pid > right->pid) - (left->pid < right->pid)
				       : (left->tid > right->tid) - (left->tid < right->tid);
}

void calltree_sort_tasks(struct calltree_tasks *tasks)
{
	if (tasks->count)
		qsort(tasks->items, tasks->count, sizeof(*tasks->items), busier);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "cuts.h"
#include "marks.h"
#include "text.h"
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
		 .help = "Show the interpreter's own frames in stacks with Python functions."},
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

static bool same_function(const struct calltree_function *a, const struct calltree_function *b)
{
	if (a->name_len != b->name_len || a->merged != b->merged ||
	    memcmp(a->name, b->name, a->name_len) || strcmp(a->module, b->module) ||
	    a->kind != b->kind)
		return false;
	/* All scripts of a process share one perf map, and each has its own main. */
	return a->kind != SPULSE_FRAME_KIND_PYTHON ||
	       !strcmp(a->file ? a->file : "", b->file ? b->file : "");
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

/* A copy of a text that many functions have, made once. */
static const char *shared_text(struct calltree *tree, const char *text)
{
	size_t len = strlen(text);
	uint64_t hash = text_hash(text, len);
	uint32_t index;
	int is_new;

	for (;; hash++) {
		index = idmap_intern(&tree->text_ids, hash, (uint32_t)tree->text_count, &is_new);
		if (is_new)
			break;
		if (!strcmp(tree->texts[index], text))
			return tree->texts[index];
	}
	MEM_PUSH(tree->texts, tree->text_count, tree->text_cap) = mem_copy(text, len);
	return tree->texts[index];
}

static uint32_t add_function(struct calltree *tree, const struct calltree_function *wanted)
{
	struct calltree_function *added;

	MEM_PUSH(tree->functions, tree->function_count, tree->function_cap) = *wanted;
	added = &tree->functions[tree->function_count - 1];
	added->name = mem_copy(wanted->name, wanted->name_len);
	added->module = shared_text(tree, wanted->module);
	added->file = wanted->file ? shared_text(tree, wanted->file) : NULL;
	added->path = wanted->path ? shared_text(tree, wanted->path) : NULL;
	return (uint32_t)(tree->function_count - 1);
}

/* The index of a function equal to wanted, which is added when there is none. */
static uint32_t intern_function(struct calltree *tree, const struct calltree_function *wanted)
{
	uint64_t hash = text_hash(wanted->name, wanted->name_len);
	uint32_t index;
	int is_new;

	hash = hash * 31 + text_hash(wanted->module, strlen(wanted->module));
	hash += (uint64_t)wanted->kind;
	for (;; hash++) {
		index = idmap_intern(&tree->names, hash, (uint32_t)tree->function_count, &is_new);
		if (is_new)
			return add_function(tree, wanted);
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
	uint64_t hash = text_hash(function->path, strlen(function->path));
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
		.file = spulse_resolved_frame_file(frame),
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
	index = intern_function(tree, &wanted);
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

/* What a sample's stack is read with. */
struct reading {
	struct calltree *tree;
	struct spulse_symbolizer *symbolizer;
	const struct calltree_options *options;
	const struct spulse_source *source;
	/* Nodes of a stack that have no place in the tree yet, innermost first. */
	uint32_t *path;
	size_t path_cap;
	struct marks marks;
	/* The interpreter's own frames, in the stack at hand. */
	bool hide;
	/* The frame at hand has no caller. */
	bool outermost;
};

static bool left_out(const struct spulse_resolved_frame *frame, const struct reading *reading)
{
	if (reading->options->symopts.no_inline && spulse_resolved_frame_inline_depth(frame) > 0)
		return true;
	return reading->hide && !reading->outermost && spulse_resolved_frame_should_ignore(frame);
}

/* The node below which a frame's callees go: one level for each call inlined there. */
static uint32_t add_frame(const struct reading *reading, const struct spulse_resolved *resolved,
			  uint32_t node)
{
	struct calltree *tree = reading->tree;

	for (size_t i = spulse_resolved_count(resolved); i-- > 0;) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);
		uint64_t serial = spulse_resolved_id(resolved, i).serial;
		uint32_t function;
		int is_new;

		if (left_out(frame, reading))
			continue;
		function = idmap_intern(&tree->frames, serial, 0, &is_new);
		if (is_new) {
			function = find_function(tree, frame, reading->options);
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

/*
 * The node of a stack. Stacks share callers, so that the file's own nodes are remembered and each
 * is looked at once: work grows with what the file holds, not with the depth of all stacks.
 */
static int find_leaf(struct reading *reading, struct spulse_stack_key key, uint32_t owner,
		     uint32_t top, uint32_t *leaf_out, struct spulse_error **err)
{
	struct calltree *tree = reading->tree;
	size_t count, depth = 0;
	const struct spulse_stack_node *nodes = spulse_source_stack_nodes(reading->source, &count);
	uint64_t base = (uint64_t)owner << 32;
	uint32_t at = key.node, leaf = top;
	const struct spulse_resolved *resolved;
	int is_new, r;

	for (; at < count && !idmap_find(&tree->stacks, base | at, &leaf); at = nodes[at].prefix)
		MEM_PUSH(reading->path, depth, reading->path_cap) = at;
	while (depth--) {
		at = reading->path[depth];
		r = spulse_symbolizer_resolve_frame(reading->symbolizer, key.pid, nodes[at].frame,
						    &resolved, err);
		if (r < 0)
			return r;
		/* A program's stacks all begin alike, with Python functions or without. */
		reading->outermost = nodes[at].prefix >= count;
		leaf = add_frame(reading, resolved, leaf);
		idmap_intern(&tree->stacks, base | at, leaf, &is_new);
	}
	*leaf_out = leaf;
	return 0;
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
	task->node = child_of(tree, 0, intern_function(tree, &wanted));
	return task->node;
}

static int add_sample(struct reading *reading, const struct spulse_stack *stack,
		      struct spulse_error **err)
{
	struct spulse_stack_key key = spulse_stack_key(stack);
	uint64_t time = spulse_stack_timestamp_ns(stack);
	const struct calltree_options *options = reading->options;
	struct calltree *tree = reading->tree;
	pid_t tid = spulse_stack_tid(stack);
	bool by_thread = options->grouping == CALLTREE_BY_THREAD;
	struct calltree_task *process, *thread;
	uint32_t leaf = 0, owner = (uint32_t)(by_thread ? tid : key.pid);
	unsigned int marks = 0;
	int r;

	if (!calltree_selected(options, key.pid, tid))
		return 0;
	process = count_task(&tree->processes, &tree->labels, key.pid, 0);
	thread = count_task(&tree->threads, &tree->labels, key.pid, tid);
	if (options->grouping != CALLTREE_BY_NOTHING)
		leaf = group_node(tree, by_thread ? thread : process);
	r = marks_of_stack(&reading->marks, reading->source, reading->symbolizer, key, &marks, err);
	if (r < 0)
		return r;
	/* Without Python's names its interpreter is all that is known of where time goes. */
	reading->hide = !options->show_hidden && marks & MARK_PYTHON;
	r = find_leaf(reading, key, owner | (uint32_t)reading->hide << 31, leaf, &leaf, err);
	if (r < 0)
		return r;
	if (marks & MARK_INTERPRETER && !(marks & MARK_PYTHON))
		tree->interpreter_samples++;
	tree->nodes[leaf].self++;
	tree->samples++;
	tree->first_ns = time < tree->first_ns ? time : tree->first_ns;
	tree->last_ns = time > tree->last_ns ? time : tree->last_ns;
	return 0;
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
	struct reading reading = {.tree = tree, .options = options};
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
	reading.symbolizer = symbolizer;
	reading.source = spulse_replay_source(replay);
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = add_sample(&reading, stack, err);
		if (r < 0)
			break;
	}
	free(reading.path);
	marks_release(&reading.marks);
	/* Borrowed from the reader, which is closed now. */
	names_release(&tree->labels);
	calltree_sum_up(tree);
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
	for (size_t i = 0; i < tree->function_count; i++)
		free((char *)tree->functions[i].name);
	for (size_t i = 0; i < tree->text_count; i++)
		free(tree->texts[i]);
	free(tree->texts);
	idmap_release(&tree->text_ids);
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
	/* As they were first met: callers before what they call. */
	return left < right ? -1 : left > right;
}

static int by_total(const void *a, const void *b, void *data)
{
	const struct calltree_function *functions = data;
	const struct calltree_function *left = &functions[*(const uint32_t *)a];
	const struct calltree_function *right = &functions[*(const uint32_t *)b];

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return left < right ? -1 : left > right;
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

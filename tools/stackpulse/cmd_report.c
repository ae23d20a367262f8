/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "json.h"
#include "shorten.h"
#include "text.h"
#include "tool.h"
#include "unnamed.h"

struct report {
	struct calltree_options read;
	uint64_t functions;
	uint64_t stacks;
	uint64_t depth;
	int color;
	bool json;
	bool addresses;
	bool full_names;
};

/* Columns for names: at least, and where output is no terminal. */
enum { NARROWEST = 24, PIPE_COLUMNS = 110 };
/* Outermost frames that are shown of a stack whose middle is left out. */
enum { ROOT_FRAMES = 3 };
/* Rows of the tables of processes and threads. */
enum { TASKS = 8 };

static const char *share_style(double share)
{
	return share >= 10 ? "1;31" : share >= 2 ? "33" : "0";
}

static void print_share(struct out *out, double share)
{
	out_style(out, share_style(share));
	out_printf(out, "%6.2f %%", share);
	out_style(out, NULL);
}

/* Where a function is from, short: its module, or the file of a script. "" when unknown. */
static const char *place(const struct calltree_function *function)
{
	if (function->unresolved)
		return function->merged ? "" : function->module;
	if (function->generated && function->kind != SPULSE_FRAME_KIND_PYTHON)
		return "JIT";
	if (function->kind == SPULSE_FRAME_KIND_PYTHON && function->file)
		return text_basename(function->file);
	return function->module;
}

/* Columns for a name: a terminal's lines are not to wrap. */
static size_t room(const struct out *out, size_t taken)
{
	unsigned int columns = out_columns(out);

	/* The rest of a narrow terminal's line may wrap, a name stays readable. */
	if (columns && columns < taken + NARROWEST)
		return NARROWEST;
	return columns ? columns - taken : PIPE_COLUMNS;
}

static void print_name(struct out *out, const struct calltree_function *function, size_t columns)
{
	char *name = mem_alloc(SHORTEN_SIZE(columns));
	size_t len = shorten_name(name, SHORTEN_SIZE(columns), function->name, function->name_len,
				  columns);

	out_name(out, name, len);
	free(name);
}

static void print_function(struct out *out, const struct calltree_function *function,
			   unsigned int indent, bool full)
{
	const char *from = place(function);
	/* Such as "[kernel]". */
	bool bracketed = *from == '[';
	size_t taken = indent + strlen(from) + (function->inlined ? 14 : 4);

	if (full)
		out_name(out, function->name, function->name_len);
	else
		print_name(out, function, room(out, taken));
	if (*from) {
		out_style(out, "2");
		out_puts(out, bracketed ? "  " : "  [");
		out_name(out, from, strlen(from));
		out_puts(out, bracketed ? "" : "]");
		out_style(out, NULL);
	}
	if (function->inlined)
		out_puts(out, " (inlined)");
	out_puts(out, "\n");
}

static void print_why_empty(struct out *out, const struct report *report)
{
	if (report->read.pids.count || report->read.tids.count)
		out_puts(out, "no sample is of the chosen processes or threads; without -p and -t "
			      "all are shown\n");
	else
		out_puts(out, "what was recorded used hardly any CPU time; record --off-cpu takes "
			      "the time that it waits, too\n");
}

static void print_summary(struct out *out, const struct calltree *tree, const char *path,
			  const struct report *report)
{
	char text[32];

	out_line(out, path, strlen(path));
	out_printf(out, ": %s sample%s", text_count(text, tree->samples),
		   tree->samples == 1 ? "" : "s");
	out_printf(out, " of %s process%s", text_count(text, tree->processes.count),
		   tree->processes.count == 1 ? "" : "es");
	out_printf(out, " and %s thread%s", text_count(text, tree->threads.count),
		   tree->threads.count == 1 ? "" : "s");
	out_printf(out, " in %s\n", text_duration(text, tree->last_ns - tree->first_ns));
	if (!tree->samples) {
		print_why_empty(out, report);
		return;
	}
	out_printf(
		out,
		"stacks: %.1f %% complete, %.1f %% truncated; %.1f %% of samples without a name\n",
		100 - calltree_share(tree, tree->truncated_samples),
		calltree_share(tree, tree->truncated_samples),
		calltree_share(tree, tree->unresolved_samples));
	if (calltree_share(tree, tree->generated_cuts) >= 1)
		out_printf(out,
			   "%.1f %% of the stacks end in code made at run time, whose callers are "
			   "unknown\n",
			   calltree_share(tree, tree->generated_cuts));
	if (tree->recovered)
		out_puts(out, "the recording was cut off: its last record is left out\n");
}

static void print_functions(struct out *out, const struct calltree *tree, bool by_total,
			    const struct report *report)
{
	uint32_t *order = calltree_ranking(tree, by_total);
	size_t count = tree->function_count;
	char samples[32];

	if (count > report->functions)
		count = (size_t)report->functions;
	out_style(out, "1");
	out_printf(out, "\nTop functions by %s\n",
		   by_total ? "total share (with callees)" : "self share");
	out_style(out, NULL);
	out_printf(out, "    self     total       samples  function\n");
	for (size_t i = 0; i < count; i++) {
		const struct calltree_function *function = &tree->functions[order[i]];
		uint64_t shown = by_total ? function->total : function->self;

		if (!shown)
			break;
		if (function->flags & CALLTREE_GROUP)
			continue;
		print_share(out, calltree_share(tree, function->self));
		out_puts(out, "  ");
		print_share(out, calltree_share(tree, function->total));
		out_printf(out, "  %12s  ", text_count(samples, shown));
		print_function(out, function, 36, report->full_names);
	}
	free(order);
}

static void print_tasks(struct out *out, const struct calltree *tree,
			const struct calltree_tasks *tasks, const char *what)
{
	char samples[32];

	if (tasks->count < 2)
		return;
	out_style(out, "1");
	out_printf(out, "\nBusiest %s\n", what);
	out_style(out, NULL);
	for (size_t i = 0; i < tasks->count && i < TASKS; i++) {
		const struct calltree_task *task = &tasks->items[i];

		print_share(out, calltree_share(tree, task->samples));
		out_printf(out, "  %12s  %d  ", text_count(samples, task->samples),
			   task->tid ? (int)task->tid : (int)task->pid);
		if (task->name)
			out_line(out, task->name, strlen(task->name));
		out_puts(out, "\n");
	}
	if (tasks->count > TASKS)
		out_printf(out, "  and %zu more\n", tasks->count - TASKS);
}

static uint32_t depth_of(const struct calltree *tree, uint32_t node)
{
	uint32_t depth = 0;

	for (; node; node = tree->nodes[node].parent)
		depth++;
	return depth;
}

static void print_stack(struct out *out, const struct calltree *tree, uint32_t node,
			const struct report *report)
{
	uint64_t limit = report->depth;
	uint32_t depth = depth_of(tree, node), head = depth, skipped = 0, index = 0;
	char samples[32];

	if (limit && depth > limit + 1) {
		head = limit > ROOT_FRAMES ? (uint32_t)limit - ROOT_FRAMES : (uint32_t)limit;
		skipped = depth - (uint32_t)limit;
	}
	out_puts(out, "\n");
	print_share(out, calltree_share(tree, tree->nodes[node].self));
	out_printf(out, "  %s sample%s, %" PRIu32 " frame%s\n",
		   text_count(samples, tree->nodes[node].self),
		   tree->nodes[node].self == 1 ? "" : "s", depth, depth == 1 ? "" : "s");
	for (; node; node = tree->nodes[node].parent, index++) {
		if (index >= head && index < head + skipped) {
			if (index == head)
				out_printf(out, "      ... %" PRIu32 " more frames ...\n", skipped);
			continue;
		}
		out_puts(out, "    ");
		print_function(out, &tree->functions[tree->nodes[node].function], 4,
			       report->full_names);
	}
}

static void print_stacks(struct out *out, const struct calltree *tree, const struct report *report)
{
	size_t count;
	uint32_t *order = calltree_hottest(tree, &count);

	if (count && report->stacks) {
		out_style(out, "1");
		out_puts(out, "\nHottest stacks, innermost function first\n");
		out_style(out, NULL);
	}
	for (size_t i = 0; i < count && i < report->stacks; i++)
		print_stack(out, tree, order[i], report);
	free(order);
}

static void json_function(struct json *json, const struct calltree_function *function)
{
	json_begin_object(json);
	json_field_string(json, "name", function->name, function->name_len);
	json_field_text(json, "module", *function->module ? function->module : NULL);
	json_field_text(json, "file", function->file);
	json_field_text(json, "kind", spulse_frame_kind_name(function->kind));
	json_field_bool(json, "inlined", function->inlined);
	json_field_uint(json, "self", function->self);
	json_field_uint(json, "total", function->total);
	json_end_object(json);
}

static void json_tasks(struct json *json, const char *key, const struct calltree_tasks *tasks)
{
	json_key(json, key);
	json_begin_array(json);
	for (size_t i = 0; i < tasks->count; i++) {
		json_begin_object(json);
		json_field_int(json, "pid", tasks->items[i].pid);
		if (tasks->items[i].tid)
			json_field_int(json, "tid", tasks->items[i].tid);
		json_field_text(json, "name", tasks->items[i].name);
		json_field_uint(json, "samples", tasks->items[i].samples);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_stacks(struct json *json, const struct calltree *tree, uint64_t limit)
{
	size_t count;
	uint32_t *order = calltree_hottest(tree, &count);

	json_key(json, "stacks");
	json_begin_array(json);
	for (size_t i = 0; i < count && i < limit; i++) {
		json_begin_object(json);
		json_field_uint(json, "samples", tree->nodes[order[i]].self);
		json_key(json, "frames");
		json_begin_array(json);
		for (uint32_t node = order[i]; node; node = tree->nodes[node].parent) {
			const struct calltree_function *function =
				&tree->functions[tree->nodes[node].function];

			json_string(json, function->name, function->name_len);
		}
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
	free(order);
}

static void print_json(struct out *out, const struct calltree *tree, const struct report *report)
{
	uint32_t *order = calltree_ranking(tree, false);
	struct json json;

	json_init(&json, out);
	json_begin_object(&json);
	json_field_uint(&json, "samples", tree->samples);
	json_field_uint(&json, "truncated_samples", tree->truncated_samples);
	json_field_uint(&json, "unresolved_samples", tree->unresolved_samples);
	json_tasks(&json, "processes", &tree->processes);
	json_tasks(&json, "threads", &tree->threads);
	json_field_uint(&json, "duration_ns", tree->last_ns - tree->first_ns);
	json_field_bool(&json, "recovered", tree->recovered);
	json_key(&json, "functions");
	json_begin_array(&json);
	for (size_t i = 0; i < tree->function_count; i++)
		if (!(tree->functions[order[i]].flags & CALLTREE_GROUP))
			json_function(&json, &tree->functions[order[i]]);
	json_end_array(&json);
	json_stacks(&json, tree, report->stacks);
	json_end_object(&json);
	json_end_line(&json);
	free(order);
}

static int show(const char *path, const struct report *report)
{
	struct spulse_error *err = NULL;
	struct calltree tree = {0};
	struct out *out;

	if (calltree_read(&tree, path, &report->read, &err) < 0) {
		calltree_release(&tree);
		return tool_fail(err);
	}
	calltree_sort_tasks(&tree.processes);
	calltree_sort_tasks(&tree.threads);
	out = out_stdout();
	out_set_color(out, (enum out_color)report->color);
	if (report->json) {
		print_json(out, &tree, report);
	} else {
		print_summary(out, &tree, path, report);
		if (tree.samples) {
			print_functions(out, &tree, false, report);
			print_functions(out, &tree, true, report);
			print_tasks(out, &tree, &tree.processes, "processes");
			if (tree.threads.count > tree.processes.count)
				print_tasks(out, &tree, &tree.threads, "threads");
			print_stacks(out, &tree, report);
			unnamed_tell(out, &tree);
		}
	}
	calltree_release(&tree);
	return out_close(out, TOOL_DONE);
}

int cmd_report(int argc, char **argv)
{
	struct report report = {.functions = 20, .stacks = 5, .depth = 24};
	struct cli_option symbols[SYMOPTS_COUNT], selection[CALLTREE_OPTION_COUNT];
	const struct cli_option options[] = {
		{'n', "limit", CLI_NUMBER, &report.functions, "N",
		 .help = "Functions per table. Default: 20."},
		{0, "stacks", CLI_NUMBER, &report.stacks, "N",
		 .help = "How many of the hottest stacks. Default: 5."},
		{0, "depth", CLI_NUMBER, &report.depth, "N",
		 .help = "Frames shown of each stack; the middle is left out. 0: all. Default: "
			 "24."},
		{0, "full-names", CLI_FLAG, &report.full_names, NULL,
		 .help = "Do not shorten long names."},
		{0, "addresses", CLI_FLAG, &report.addresses, NULL,
		 .help = "Show each address of code without a name, not one line per function."},
		{0, "json", CLI_FLAG, &report.json, NULL,
		 .help = "One JSON object with all functions."},
		{0, "color", CLI_CHOICE, &report.color, "WHEN",
		 .help = "Colours: auto (on a terminal, unless NO_COLOR is set), always or never.",
		 .choices = cli_color_words},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		CLI_GROUP("Selection", selection),
		CLI_GROUP("Names", symbols),
	};
	const struct cli_spec spec = {
		.command = "report",
		.usage = "[OPTION...] [FILE]",
		.about = "Shows the functions with the largest shares of the samples, by their own "
			 "code (self) and with everything they call (total), and the hottest "
			 "stacks. "
			 "FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 3,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&report.read.symopts, symbols);
	calltree_cli_options(&report.read, selection);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	report.read.merge_unnamed = !report.addresses;
	return show(argc ? argv[0] : TOOL_DEFAULT_SPOOL, &report);
}

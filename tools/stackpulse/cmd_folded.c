/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "calltree.h"
#include "tool.h"

/* One line: the names of a node's path, outermost first, and its samples. */
static void print_line(struct out *out, const struct calltree *tree, uint32_t node, uint32_t **path,
		       size_t *cap)
{
	size_t depth = 0;

	for (uint32_t at = node; at; at = tree->nodes[at].parent)
		MEM_PUSH(*path, depth, *cap) = tree->nodes[at].function;
	while (depth--) {
		const struct calltree_function *function = &tree->functions[(*path)[depth]];

		out_name(out, function->name, function->name_len);
		if (depth)
			out_puts(out, ";");
	}
	out_printf(out, " %" PRIu64 "\n", tree->nodes[node].self);
}

static int show(const char *path, const char *output, const struct calltree_options *options)
{
	struct spulse_error *err = NULL;
	struct calltree tree = {0};
	uint32_t *order, *stack = NULL;
	size_t count, cap = 0;
	struct out *out;

	if (calltree_read(&tree, path, options, &err) < 0) {
		calltree_release(&tree);
		return tool_fail(err);
	}
	out = out_file(output, path);
	if (!out) {
		calltree_release(&tree);
		return TOOL_FAILED;
	}
	order = calltree_hottest(&tree, &count);
	for (size_t i = 0; i < count && !out_stopped(out); i++)
		print_line(out, &tree, order[i], &stack, &cap);
	free(stack);
	free(order);
	calltree_release(&tree);
	return out_close(out, TOOL_DONE);
}

int cmd_folded(int argc, char **argv)
{
	struct calltree_options read = {0};
	struct cli_option symbols[SYMOPTS_COUNT], selection[CALLTREE_OPTION_COUNT];
	const char *output = "-";
	const struct cli_option options[] = {
		{'o', "output", CLI_STRING, &output, "FILE",
		 .help = "Write to FILE, not to stdout."},
		{0, "merge-unnamed", CLI_FLAG, &read.merge_unnamed, NULL,
		 .help = "Merge code without a name by function, as report does: MODULE+0xSTART "
			 "stands for the function that starts there."},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		CLI_GROUP("Selection", selection),
		CLI_GROUP("Names", symbols),
	};
	const struct cli_spec spec = {
		.command = "folded",
		.usage = "[OPTION...] [FILE]",
		.about = "Prints one line per distinct stack: function names from the outermost "
			 "inwards, separated by \";\", then a space and the number of samples; the "
			 "hottest first. Many tools read this. In names, backslash, \";\" and line "
			 "ends are written \\x5c, \\x3b, \\x0a and \\x0d.",
		.groups = groups,
		.group_count = 3,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&read.symopts, symbols);
	calltree_cli_options(&read, selection);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	return show(argc ? argv[0] : TOOL_DEFAULT_SPOOL, output, &read);
}

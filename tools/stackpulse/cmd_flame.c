/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "flame_page.h"
#include "json.h"
#include "text.h"
#include "tool.h"

struct flame {
	struct calltree_options read;
	const char *output;
	const char *title;
	bool addresses;
};

static void write_title(struct out *out, const char *title)
{
	for (const char *at = title; *at; at++) {
		if (*at == '<')
			out_puts(out, "&lt;");
		else if (*at == '&')
			out_puts(out, "&amp;");
		else if ((unsigned char)*at >= 0x20 && (unsigned char)*at != 0x7f)
			out_write(out, at, 1);
	}
}

static void write_meta(struct json *json, const struct calltree *tree)
{
	json_key(json, "meta");
	json_begin_object(json);
	json_field_uint(json, "samples", tree->samples);
	json_field_uint(json, "truncated_samples", tree->truncated_samples);
	json_field_uint(json, "unresolved_samples", tree->unresolved_samples);
	json_field_uint(json, "processes", tree->processes.count);
	json_field_uint(json, "threads", tree->threads.count);
	json_field_uint(json, "duration_ns", tree->last_ns - tree->first_ns);
	json_field_bool(json, "recovered", tree->recovered);
	json_end_object(json);
}

enum function_number { KIND, FLAGS, INLINED, SELF, TOTAL };

static void function_numbers(struct json *json, const struct calltree *tree, const char *key,
			     enum function_number which)
{
	json_key(json, key);
	json_begin_array(json);
	for (size_t i = 0; i < tree->function_count; i++) {
		const struct calltree_function *function = &tree->functions[i];
		const uint64_t numbers[] = {function->kind, function->flags, function->inlined,
					    function->self, function->total};

		json_uint(json, numbers[which]);
	}
	json_end_array(json);
}

/* Number of a module among those named so far. */
static uint32_t module_number(struct idmap *map, const char ***names, size_t *count, size_t *cap,
			      const char *module)
{
	uint64_t hash = text_hash(module, strlen(module));
	uint32_t number;
	int is_new;

	for (;; hash++) {
		number = idmap_intern(map, hash, (uint32_t)*count, &is_new);
		if (is_new)
			break;
		if (!strcmp((*names)[number], module))
			return number;
	}
	MEM_PUSH(*names, *count, *cap) = module;
	return number;
}

/* Modules repeat: functions hold their numbers. */
static void write_modules(struct json *json, const struct calltree *tree)
{
	const char **names = NULL;
	size_t count = 0, cap = 0;
	struct idmap map = {0};
	uint32_t *numbers = mem_alloc(tree->function_count * sizeof(*numbers));

	for (size_t i = 0; i < tree->function_count; i++)
		numbers[i] = module_number(&map, &names, &count, &cap, tree->functions[i].module);
	idmap_release(&map);
	json_key(json, "module");
	json_begin_array(json);
	for (size_t i = 0; i < tree->function_count; i++)
		json_uint(json, numbers[i]);
	json_end_array(json);
	json_end_object(json);
	json_key(json, "modules");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		json_text(json, names[i]);
	json_end_array(json);
	free(names);
	free(numbers);
}

static void write_functions(struct json *json, const struct calltree *tree)
{
	json_key(json, "functions");
	json_begin_object(json);
	json_key(json, "name");
	json_begin_array(json);
	for (size_t i = 0; i < tree->function_count; i++)
		json_string(json, tree->functions[i].name, tree->functions[i].name_len);
	json_end_array(json);
	json_key(json, "file");
	json_begin_array(json);
	for (size_t i = 0; i < tree->function_count; i++)
		json_text(json, tree->functions[i].file);
	json_end_array(json);
	function_numbers(json, tree, "kind", KIND);
	function_numbers(json, tree, "flags", FLAGS);
	function_numbers(json, tree, "inlined", INLINED);
	function_numbers(json, tree, "self", SELF);
	function_numbers(json, tree, "total", TOTAL);
	write_modules(json, tree);
}

static void write_nodes(struct json *json, const struct calltree *tree)
{
	json_key(json, "nodes");
	json_begin_object(json);
	json_key(json, "parent");
	json_begin_array(json);
	for (size_t i = 0; i < tree->node_count; i++)
		json_uint(json, i ? tree->nodes[i].parent : 0);
	json_end_array(json);
	json_key(json, "func");
	json_begin_array(json);
	for (size_t i = 0; i < tree->node_count; i++)
		json_uint(json, i ? tree->nodes[i].function : 0);
	json_end_array(json);
	json_key(json, "self");
	json_begin_array(json);
	for (size_t i = 0; i < tree->node_count; i++)
		json_uint(json, tree->nodes[i].self);
	json_end_array(json);
	json_end_object(json);
}

static void write_page(struct out *out, const struct calltree *tree, const char *title)
{
	struct json json;

	out_puts(out, flame_page_head);
	write_title(out, title);
	out_puts(out, flame_page_middle);
	json_init(&json, out);
	json.html_safe = true;
	json_begin_object(&json);
	json_field_text(&json, "title", title);
	write_meta(&json, tree);
	write_functions(&json, tree);
	write_nodes(&json, tree);
	json_end_object(&json);
	out_puts(out, flame_page_tail);
}

static int make(const char *path, const struct flame *flame)
{
	struct spulse_error *err = NULL;
	struct calltree tree = {0};
	struct out *out;
	int status;

	if (calltree_read(&tree, path, &flame->read, &err) < 0) {
		calltree_release(&tree);
		return tool_fail(err);
	}
	out = out_file(flame->output, path);
	if (!out) {
		calltree_release(&tree);
		return TOOL_FAILED;
	}
	write_page(out, &tree, flame->title ? flame->title : text_basename(path));
	status = out_close(out, TOOL_DONE);
	if (status == TOOL_DONE && strcmp(flame->output, "-"))
		tool_message("open %s in a browser", flame->output);
	calltree_release(&tree);
	return status;
}

int cmd_flame(int argc, char **argv)
{
	struct flame flame = {.output = "flame.html"};
	struct cli_option symbols[SYMOPTS_COUNT], selection[CALLTREE_OPTION_COUNT];
	const struct cli_option options[] = {
		{'o', "output", CLI_STRING, &flame.output, "FILE",
		 .help = "Write to FILE; \"-\" is stdout. Default: flame.html."},
		{0, "title", CLI_STRING, &flame.title, "TEXT",
		 .help = "Title of the page. Default: the recording's file name."},
		{0, "addresses", CLI_FLAG, &flame.addresses, NULL,
		 .help = "Show each address of code without a name, not one box per function."},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		CLI_GROUP("Selection", selection),
		CLI_GROUP("Names", symbols),
	};
	const struct cli_spec spec = {
		.command = "flame",
		.usage = "[OPTION...] [FILE]",
		.about =
			"Makes an interactive flame graph: one HTML file that needs no network and "
			"no other file. FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 3,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&flame.read.symopts, symbols);
	calltree_cli_options(&flame.read, selection);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	flame.read.merge_unnamed = !flame.addresses;
	return make(argc ? argv[0] : TOOL_DEFAULT_SPOOL, &flame);
}

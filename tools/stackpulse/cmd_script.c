/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calltree.h"
#include "json.h"
#include "tool.h"

struct script {
	struct calltree_options read;
	const char *output;
	bool json;
	bool raw;
	struct names names;
};

/* What one line about a frame is made from; resolved is NULL with --raw. */
struct shown_frame {
	const struct spulse_frame_context *context;
	const struct spulse_resolved_frame *resolved;
};

static const char *mode_name(uint32_t mode)
{
	static const char *const names[] = {"user", "kernel", "truncated"};

	return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

static void print_location(struct out *out, const struct spulse_resolved_frame *frame)
{
	const char *file = spulse_resolved_frame_file(frame);
	int64_t line = spulse_resolved_frame_line(frame);

	if (!file)
		return;
	out_puts(out, " at ");
	out_line(out, file, strlen(file));
	if (line > 0)
		out_printf(out, ":%" PRId64, line);
}

static void print_frame(struct out *out, const struct shown_frame *shown)
{
	const struct spulse_frame_context *context = shown->context;
	const struct spulse_resolved_frame *frame = shown->resolved;
	const char *name = frame ? spulse_resolved_frame_name(frame) : NULL;

	if (spulse_frame_is_truncated_marker(context->frame)) {
		out_puts(out, "                  <stack truncated>\n");
		return;
	}
	out_printf(out, "  %16" PRIx64 " ", context->frame->abs_ip);
	if (name) {
		out_name(out, name, spulse_resolved_frame_name_len(frame));
		if (spulse_resolved_frame_inline_depth(frame))
			out_puts(out, " (inlined)");
		else if (spulse_resolved_frame_offset(frame))
			out_printf(out, "+0x%" PRIx64, spulse_resolved_frame_offset(frame));
	} else {
		out_puts(out, "[unknown]");
	}
	if (context->module) {
		out_puts(out, " (");
		out_line(out, spulse_module_path(context->module),
			 spulse_module_path_len(context->module));
		out_printf(out, "+0x%" PRIx64 ")", context->file_relative_ip);
	}
	if (frame)
		print_location(out, frame);
	out_puts(out, "\n");
}

static void json_symbol(struct json *json, const struct spulse_resolved_frame *frame)
{
	const char *file = spulse_resolved_frame_file(frame);
	int64_t line = spulse_resolved_frame_line(frame);
	int64_t column = spulse_resolved_frame_column(frame);
	const char *name = spulse_resolved_frame_name(frame);

	if (name)
		json_field_string(json, "name", name, spulse_resolved_frame_name_len(frame));
	else
		json_field_text(json, "name", NULL);
	json_field_text(json, "kind", spulse_frame_kind_name(spulse_resolved_frame_kind(frame)));
	json_field_text(json, "origin",
			spulse_symbol_origin_name(spulse_resolved_frame_origin(frame)));
	json_field_uint(json, "offset", spulse_resolved_frame_offset(frame));
	json_field_uint(json, "inline", spulse_resolved_frame_inline_depth(frame));
	if (file)
		json_field_text(json, "file", file);
	if (line >= 0)
		json_field_int(json, "line", line);
	if (column >= 0)
		json_field_int(json, "column", column);
}

static void json_frame(struct json *json, const struct shown_frame *shown)
{
	const struct spulse_frame_context *context = shown->context;

	json_begin_object(json);
	json_field_hex(json, "ip", context->frame->abs_ip);
	json_field_text(json, "mode", mode_name(context->frame->mode));
	json_field_hex(json, "rel", context->file_relative_ip);
	json_key(json, "module");
	if (context->module) {
		json_uint(json, spulse_module_id(context->module));
		json_field_bytes(json, "path", spulse_module_path(context->module),
				 spulse_module_path_len(context->module));
	} else {
		json_null(json);
	}
	if (shown->resolved)
		json_symbol(json, shown->resolved);
	json_end_object(json);
}

static void show_frame(struct out *out, struct json *json, const struct shown_frame *shown)
{
	if (json)
		json_frame(json, shown);
	else
		print_frame(out, shown);
}

/* The frames of one recorded address: what was inlined into the function there, then itself. */
static size_t show_address(struct out *out, struct json *json, const struct script *script,
			   const struct spulse_frame_context *context,
			   const struct spulse_resolved *resolved, size_t next)
{
	struct shown_frame shown = {.context = context};
	uint32_t depth;

	if (!resolved) {
		show_frame(out, json, &shown);
		return next;
	}
	do {
		shown.resolved = spulse_resolved_at(resolved, next++);
		if (!shown.resolved)
			break;
		depth = spulse_resolved_frame_inline_depth(shown.resolved);
		if (!depth || !script->read.symopts.no_inline)
			show_frame(out, json, &shown);
	} while (depth);
	return next;
}

static void show_frames(struct out *out, struct json *json, const struct script *script,
			const struct spulse_stack *stack, const struct spulse_resolved *resolved)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;
	size_t next = 0;

	while (spulse_frame_iter_next_context(&iter, &context))
		next = show_address(out, json, script, &context, resolved, next);
}

static void show_sample(struct out *out, const struct script *script,
			const struct spulse_stack *stack, const struct spulse_resolved *resolved)
{
	const struct spulse_sample *sample = spulse_stack_sample(stack);
	const char *name = names_thread(&script->names, sample->pid, sample->tid);
	struct json json;

	if (!script->json) {
		if (name) {
			out_line(out, name, strlen(name));
			out_puts(out, " ");
		}
		out_printf(out, "%d/%d %" PRIu64 ".%09" PRIu64 ":\n", (int)sample->pid,
			   (int)sample->tid, sample->timestamp_ns / 1000000000,
			   sample->timestamp_ns % 1000000000);
		show_frames(out, NULL, script, stack, resolved);
		out_puts(out, "\n");
		return;
	}
	json_init(&json, out);
	json_begin_object(&json);
	json_field_uint(&json, "timestamp_ns", sample->timestamp_ns);
	json_field_int(&json, "pid", sample->pid);
	json_field_int(&json, "tid", sample->tid);
	if (name)
		json_field_text(&json, "name", name);
	json_key(&json, "frames");
	json_begin_array(&json);
	show_frames(out, &json, script, stack, resolved);
	json_end_array(&json);
	json_end_object(&json);
	json_end_line(&json);
}

static int show_all(struct out *out, const struct script *script, struct spulse_replay *replay,
		    struct spulse_symbolizer *symbolizer, struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_replay_stacks(replay, &stacks, err);

	if (r < 0)
		return r;
	while (!out_stopped(out) && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		const struct spulse_resolved *resolved = NULL;

		if (!calltree_selected(&script->read, spulse_stack_pid(stack),
				       spulse_stack_tid(stack)))
			continue;
		if (symbolizer) {
			r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);
			if (r < 0)
				return r;
		}
		show_sample(out, script, stack, resolved);
	}
	return r < 0 ? r : 0;
}

static int show(const char *path, struct script *script)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	struct spulse_error *err = NULL;
	struct out *out;

	if (spulse_replay_open(path, &replay, &err) < 0)
		return tool_fail(err);
	names_load(&script->names, spulse_replay_source(replay));
	if (!script->raw && (symopts_open(&script->read.symopts, spulse_replay_source(replay),
					  &symbolizer, &err) < 0 ||
			     spulse_symbolizer_prepare(symbolizer, &err) < 0))
		return tool_fail(err);
	out = out_file(script->output, path);
	if (!out)
		return TOOL_FAILED;
	if (show_all(out, script, replay, symbolizer, &err) < 0)
		return out_abandon(out, tool_fail(err));
	return out_close(out, TOOL_DONE);
}

int cmd_script(int argc, char **argv)
{
	struct script script = {.output = "-"};
	struct cli_option symbols[SYMOPTS_COUNT], selection[CALLTREE_OPTION_COUNT];
	const struct cli_option options[] = {
		{0, "json", CLI_FLAG, &script.json, NULL,
		 .help = "One JSON object per line and sample: timestamp_ns, pid, tid, name (of "
			 "the thread) and frames "
			 "from the innermost, each with ip, mode, rel (address in the file), "
			 "module "
			 "(id), path, name, kind, origin, offset, inline (0: the function that "
			 "exists), file, line, column."},
		{0, "raw", CLI_FLAG, &script.raw, NULL,
		 .help = "Addresses only: look up no names."},
		{'o', "output", CLI_STRING, &script.output, "FILE",
		 .help = "Write to FILE, not to stdout."},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		/* Every sample with every frame: those that change a tree do not apply. */
		{.title = "Selection", .options = selection, .count = CALLTREE_SAMPLE_OPTIONS},
		CLI_GROUP("Names", symbols),
	};
	const struct cli_spec spec = {
		.command = "script",
		.usage = "[OPTION...] [FILE]",
		.about = "Prints every sample: process/thread, time in seconds (CLOCK_MONOTONIC) "
			 "and "
			 "its frames from the innermost to the outermost.",
		.groups = groups,
		.group_count = 3,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&script.read.symopts, symbols);
	calltree_cli_options(&script.read, selection);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	status = show(argc ? argv[0] : TOOL_DEFAULT_SPOOL, &script);
	names_release(&script.names);
	return status;
}

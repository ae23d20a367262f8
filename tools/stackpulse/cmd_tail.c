/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "text.h"
#include "tool.h"

enum { WAIT_NS = 200000000 };

struct follow {
	struct out *out;
	bool json;
	uint64_t until_exit; /* 0 = until a signal */
	uint64_t samples;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* Without SA_RESTART, so that waiting ends at once. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static const char *mode_name(uint32_t mode)
{
	return mode == SPULSE_FRAME_USER     ? "user"
	       : mode == SPULSE_FRAME_KERNEL ? "kernel"
					     : "truncated";
}

static void json_frame(struct json *json, const struct spulse_frame_context *context)
{
	json_begin_object(json);
	json_field_hex(json, "ip", context->frame->abs_ip);
	json_field_text(json, "mode", mode_name(context->frame->mode));
	if (context->module) {
		json_field_uint(json, "module", spulse_module_id(context->module));
		json_field_hex(json, "rel", context->file_relative_ip);
		json_field_bytes(json, "path", spulse_module_path(context->module),
				 spulse_module_path_len(context->module));
	}
	json_end_object(json);
}

static void print_json(struct out *out, const struct spulse_stack *stack)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;
	struct json json;

	json_init(&json, out);
	json_begin_object(&json);
	json_field_uint(&json, "timestamp_ns", spulse_stack_timestamp_ns(stack));
	json_field_int(&json, "pid", spulse_stack_pid(stack));
	json_field_int(&json, "tid", spulse_stack_tid(stack));
	json_key(&json, "frames");
	json_begin_array(&json);
	while (spulse_frame_iter_next_context(&iter, &context))
		json_frame(&json, &context);
	json_end_array(&json);
	json_end_object(&json);
	json_end_line(&json);
}

/* The innermost frame, as the file knows it: names are the business of report and script. */
static void print_line(struct out *out, const struct spulse_stack *stack)
{
	uint64_t ns = spulse_stack_timestamp_ns(stack);
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;
	const char *base;

	out_printf(out, "%" PRIu64 ".%09" PRIu64 " %d/%d %" PRIu32 " frames", ns / 1000000000,
		   ns % 1000000000, (int)spulse_stack_pid(stack), (int)spulse_stack_tid(stack),
		   spulse_stack_depth(stack));
	if (spulse_frame_iter_next_context(&iter, &context)) {
		out_printf(out, " 0x%" PRIx64, context.frame->abs_ip);
		if (context.module) {
			base = text_basename(spulse_module_path(context.module));
			out_puts(out, " (");
			out_name(out, base, strlen(base));
			out_printf(out, "+0x%" PRIx64 ")", context.file_relative_ip);
		}
	}
	out_puts(out, "\n");
}

static int print_batch(struct follow *follow, const struct spulse_batch *batch,
		       struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_batch_stacks(batch, &stacks, err);

	while (r == 0 && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		if (follow->json)
			print_json(follow->out, stack);
		else
			print_line(follow->out, stack);
		follow->samples++;
		r = 0;
	}
	return r;
}

/* Everything that is visible now. */
static int print_visible(struct follow *follow, struct spulse_tail *tail,
			 struct spulse_error **err)
{
	const struct spulse_batch *batch;
	int r;

	do {
		r = spulse_tail_poll(tail, &batch, err);
		if (r == 0)
			r = print_batch(follow, batch, err);
	} while (r == 0 && spulse_batch_has_more(batch) && !out_stopped(follow->out));
	out_flush(follow->out);
	return r;
}

static bool is_over(const struct follow *follow)
{
	pid_t pid = (pid_t)follow->until_exit;

	if (stopped || out_stopped(follow->out) || out_reader_left(follow->out))
		return true;
	return pid && kill(pid, 0) < 0 && errno == ESRCH;
}

static int follow_file(struct follow *follow, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	enum spulse_tail_state state;
	bool last = false;
	int r = spulse_tail_open(path, &tail, err);

	while (r == 0) {
		r = print_visible(follow, tail, err);
		if (r < 0 || last)
			break;
		r = spulse_tail_wait(tail, WAIT_NS, &state, err);
		/* Look once more: the process may have written and ended in between. */
		last = is_over(follow);
		r = r < 0 ? r : 0;
	}
	return r;
}

int cmd_tail(int argc, char **argv)
{
	struct follow follow = {0};
	const struct cli_option options[] = {
		{0, "json", CLI_FLAG, &follow.json, NULL,
		 .help = "One JSON object per sample and line, with all frames."},
		{0, "until-exit", CLI_NUMBER, &follow.until_exit, "PID",
		 .help = "End when this process has ended: the recorder, for example.",
		 .minimum = 1,
		 .maximum = INT32_MAX},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "tail",
		.usage = "[--json] [--until-exit PID] [FILE]",
		.about = "Follows a recording that is being written and prints its samples as they "
			 "become visible, until Ctrl-C. FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	struct spulse_error *err = NULL;
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	catch_signals();
	follow.out = out_stdout();
	status = TOOL_DONE;
	if (follow_file(&follow, argc ? argv[0] : TOOL_DEFAULT_SPOOL, &err) < 0)
		status = tool_fail(err);
	return out_close(follow.out, status);
}

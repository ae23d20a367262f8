/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <time.h>

#include "json.h"
#include "symopts.h"
#include "tool.h"

/* Symbolizes every stack and counts: a measure without any cost of showing. */

enum { ORIGINS = SPULSE_ORIGIN_JIT + 1 };

struct counts {
	uint64_t samples;
	uint64_t frames;
	uint64_t inlined;
	uint64_t with_line;
	uint64_t provisional;
	uint64_t origins[ORIGINS];
	double seconds;
	double cpu_seconds;
};

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void count_stack(struct counts *counts, const struct spulse_resolved *resolved)
{
	size_t count = spulse_resolved_count(resolved);

	counts->samples++;
	counts->frames += count;
	counts->provisional += !spulse_resolved_is_cacheable(resolved);
	for (size_t i = 0; i < count; i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);
		enum spulse_symbol_origin origin = spulse_resolved_frame_origin(frame);

		counts->inlined += spulse_resolved_frame_inline_depth(frame) > 0;
		counts->with_line += spulse_resolved_frame_line(frame) >= 0;
		if ((unsigned int)origin < ORIGINS)
			counts->origins[origin]++;
	}
}

static int resolve_all(const char *path, const struct symopts *symopts, bool prepare,
		       struct counts *counts, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_resolved *resolved;
	const struct spulse_stack *stack;
	int r;

	if ((r = spulse_replay_open(path, &replay, err)) < 0 ||
	    (r = symopts_open(symopts, spulse_replay_source(replay), &symbolizer, err)) < 0 ||
	    (prepare && (r = spulse_symbolizer_prepare(symbolizer, err)) < 0) ||
	    (r = spulse_replay_stacks(replay, &stacks, err)) < 0)
		return r;
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);
		if (r < 0)
			break;
		count_stack(counts, resolved);
	}
	return r;
}

static void print_text(struct out *out, const struct counts *counts)
{
	out_printf(out, "samples       %" PRIu64 "\n", counts->samples);
	out_printf(out, "frames        %" PRIu64 "\n", counts->frames);
	out_printf(out, "inlined       %" PRIu64 "\n", counts->inlined);
	out_printf(out, "with line     %" PRIu64 "\n", counts->with_line);
	out_printf(out, "provisional   %" PRIu64 "\n", counts->provisional);
	for (int i = 0; i < ORIGINS; i++)
		out_printf(out, "%-13s %" PRIu64 "\n", spulse_symbol_origin_name(i),
			   counts->origins[i]);
	out_printf(out, "seconds       %.3f\n", counts->seconds);
	out_printf(out, "cpu seconds   %.3f\n", counts->cpu_seconds);
}

static void print_json(struct out *out, const struct counts *counts)
{
	struct json json;

	json_init(&json, out);
	json_begin_object(&json);
	json_field_uint(&json, "samples", counts->samples);
	json_field_uint(&json, "frames", counts->frames);
	json_field_uint(&json, "inlined", counts->inlined);
	json_field_uint(&json, "with_line", counts->with_line);
	json_field_uint(&json, "provisional", counts->provisional);
	json_key(&json, "origins");
	json_begin_object(&json);
	for (int i = 0; i < ORIGINS; i++)
		json_field_uint(&json, spulse_symbol_origin_name(i), counts->origins[i]);
	json_end_object(&json);
	json_key(&json, "seconds");
	json_number(&json, counts->seconds, 6);
	json_key(&json, "cpu_seconds");
	json_number(&json, counts->cpu_seconds, 6);
	json_end_object(&json);
	json_end_line(&json);
}

int cmd_resolve(int argc, char **argv)
{
	struct cli_option symbols[SYMOPTS_COUNT];
	struct symopts symopts = {0};
	struct spulse_error *err = NULL;
	struct counts counts = {0};
	bool as_json = false, prepare = true;
	double start, cpu_start;
	struct out *out;
	const struct cli_option options[] = {
		{0, "json", CLI_FLAG, &as_json, NULL, .help = "Print a JSON object."},
		{0, "no-prepare", CLI_FLAG_OFF, &prepare, NULL,
		 .help = "Resolve stack by stack, with one thread, not everything in advance."},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		CLI_GROUP("Names", symbols),
	};
	const struct cli_spec spec = {
		.command = "resolve",
		.usage = "[OPTION...] [FILE]",
		.about = "Symbolizes every stack of a recording and prints how many frames got "
			 "their names from where, and how long it took.",
		.groups = groups,
		.group_count = 2,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&symopts, symbols);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	start = seconds(CLOCK_MONOTONIC);
	cpu_start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	if (resolve_all(argc ? argv[0] : TOOL_DEFAULT_SPOOL, &symopts, prepare, &counts, &err) < 0)
		return tool_fail(err);
	counts.seconds = seconds(CLOCK_MONOTONIC) - start;
	counts.cpu_seconds = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
	out = out_stdout();
	if (as_json)
		print_json(out, &counts);
	else
		print_text(out, &counts);
	return out_close(out, TOOL_DONE);
}

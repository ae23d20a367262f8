/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <time.h>

#include "cli.h"
#include "output.h"
#include "tool.h"

enum depth { DEPTH_SAMPLES, DEPTH_FRAMES, DEPTH_CONTEXTS };

struct counts {
	uint64_t samples;
	uint64_t frames;
	uint64_t bound;
	/* So that nothing that was read can be left out. */
	uint64_t sum;
};

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int walk_samples(const struct spulse_replay *replay, struct counts *counts,
			struct spulse_error **err)
{
	SPULSE_CLEANUP(samples) samples = NULL;
	const struct spulse_sample *block;
	size_t count;
	int r = spulse_replay_samples(replay, &samples, err);

	if (r < 0)
		return r;
	while ((r = spulse_samples_next_block(samples, &block, &count, err)) > 0) {
		counts->samples += count;
		for (size_t i = 0; i < count; i++)
			counts->sum += block[i].timestamp_ns + (uint64_t)block[i].tid;
	}
	return r;
}

static int walk_frames(struct spulse_stacks *stacks, const struct spulse_frame *frames,
		       struct counts *counts, struct spulse_error **err)
{
	const uint32_t *ids;
	size_t count;
	int r = spulse_stacks_frame_ids(stacks, &ids, &count, err);

	if (r < 0)
		return r;
	counts->frames += count;
	for (size_t i = 0; i < count; i++)
		counts->sum += frames[ids[i]].abs_ip;
	return 0;
}

static void walk_contexts(const struct spulse_stack *stack, struct counts *counts)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;

	while (spulse_frame_iter_next_context(&iter, &context)) {
		counts->frames++;
		counts->bound += context.module != NULL;
		counts->sum += context.file_relative_ip;
	}
}

static int walk_stacks(const struct spulse_replay *replay, enum depth depth, struct counts *counts,
		       struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_frame *frames;
	const struct spulse_stack *stack;
	size_t count;
	int r = spulse_replay_stacks(replay, &stacks, err);

	if (r < 0)
		return r;
	frames = spulse_source_frames(spulse_replay_source(replay), &count);
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		counts->samples++;
		if (depth == DEPTH_CONTEXTS)
			walk_contexts(stack, counts);
		else if ((r = walk_frames(stacks, frames, counts, err)) < 0)
			break;
	}
	return r;
}

static void print_counts(struct out *out, const struct spulse_replay *replay, enum depth depth,
			 const struct counts *counts)
{
	const struct spulse_source *source = spulse_replay_source(replay);
	size_t frames, nodes, threads;

	spulse_source_frames(source, &frames);
	spulse_source_stack_nodes(source, &nodes);
	spulse_source_threads(source, &threads);
	out_printf(out, "samples=%" PRIu64 " threads=%zu modules=%zu distinct_frames=%zu "
			"stack_nodes=%zu", counts->samples, threads,
		   spulse_source_module_count(source), frames, nodes);
	if (depth != DEPTH_SAMPLES)
		out_printf(out, " frames=%" PRIu64, counts->frames);
	if (depth == DEPTH_CONTEXTS)
		out_printf(out, " bound=%" PRIu64, counts->bound);
	out_printf(out, " check=%016" PRIx64 "\n", counts->sum);
}

static int replay_file(const char *path, enum depth depth)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	struct spulse_error *err = NULL;
	struct counts counts = {0};
	double begin = now(), opened, end;
	struct out *out;
	int r;

	if (spulse_replay_open(path, &replay, &err) < 0)
		return tool_fail(err);
	opened = now();
	r = depth == DEPTH_SAMPLES ? walk_samples(replay, &counts, &err)
				   : walk_stacks(replay, depth, &counts, &err);
	if (r < 0)
		return tool_fail(err);
	end = now();
	out = out_stdout();
	print_counts(out, replay, depth, &counts);
	out_printf(out, "open_seconds=%.6f walk_seconds=%.6f samples_per_second=%.0f\n",
		   opened - begin, end - opened,
		   end > opened ? (double)counts.samples / (end - opened) : 0.0);
	return out_close(out, TOOL_DONE);
}

int cmd_replay(int argc, char **argv)
{
	bool frames = false, contexts = false;
	const struct cli_option options[] = {
		{0, "frames", CLI_FLAG, &frames, NULL,
		 .help = "Visit every frame of every sample."},
		{0, "contexts", CLI_FLAG, &contexts, NULL,
		 .help = "Visit every frame and find its module."},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "replay",
		.usage = "[--frames | --contexts] [FILE]",
		.about = "Decodes a whole recording and prints counts and times, for measuring. "
			 "FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	return replay_file(argc ? argv[0] : TOOL_DEFAULT_SPOOL,
			   contexts ? DEPTH_CONTEXTS : frames ? DEPTH_FRAMES : DEPTH_SAMPLES);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Reads a spool through the public interface and tells what that cost: CPU seconds of the opening
 * (which checks the whole file) and of the walk. `tail` follows a spool that is being written until
 * it saw so many samples.
 * usage: spool_read open|samples|blocks|frames|ids|snapshot FILE
 *        spool_read tail|bytes FILE SAMPLES
 * `bytes` tells how long the file is before the last of so many samples.
 */
#include <stackpulse/stackpulse.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct counts {
	uint64_t samples, frames;
	uint64_t sum; /* so that nothing that was read can be left out */
};

static double seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

/* Highest resident memory of this process alone. */
static void print_peak(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	long kib;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			printf("peak_kib=%ld\n", kib);
	if (status)
		fclose(status);
}

static int walk_samples(const struct spulse_replay *replay, struct counts *counts,
			struct spulse_error **err)
{
	SPULSE_CLEANUP(samples) samples = NULL;
	struct spulse_sample sample;
	int r = spulse_replay_samples(replay, &samples, err);

	while (r >= 0 && (r = spulse_samples_next(samples, &sample, err)) > 0) {
		counts->samples++;
		counts->sum += sample.timestamp_ns;
	}
	return r;
}

static int walk_blocks(const struct spulse_replay *replay, struct counts *counts,
		       struct spulse_error **err)
{
	SPULSE_CLEANUP(samples) samples = NULL;
	const struct spulse_sample *block;
	size_t count;
	int r = spulse_replay_samples(replay, &samples, err);

	while (r >= 0 && (r = spulse_samples_next_block(samples, &block, &count, err)) > 0) {
		counts->samples += count;
		for (size_t i = 0; i < count; i++)
			counts->sum += block[i].timestamp_ns;
	}
	return r;
}

static void visit(const struct spulse_stack *stack, struct counts *counts)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	const struct spulse_frame *frame;

	while ((frame = spulse_frame_iter_next(&iter))) {
		counts->frames++;
		counts->sum += frame->abs_ip;
	}
}

static int walk_frames(const struct spulse_replay *replay, struct counts *counts,
		       struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_replay_stacks(replay, &stacks, err);

	while (r >= 0 && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		counts->samples++;
		visit(stack, counts);
	}
	return r;
}

static int walk_ids(struct spulse_stacks *stacks, const struct spulse_source *source,
		    struct counts *counts, struct spulse_error **err)
{
	const struct spulse_stack *stack;
	const struct spulse_frame *frames;
	const uint32_t *ids;
	size_t count;
	int r;

	frames = spulse_source_frames(source, &count);
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = spulse_stacks_frame_ids(stacks, &ids, &count, err);
		if (r < 0)
			break;
		counts->samples++;
		counts->frames += count;
		for (size_t i = 0; i < count; i++)
			counts->sum += frames[ids[i]].abs_ip;
	}
	return r;
}

static int replay_ids(const struct spulse_replay *replay, struct counts *counts,
		      struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	int r = spulse_replay_stacks(replay, &stacks, err);

	return r < 0 ? r : walk_ids(stacks, spulse_replay_source(replay), counts, err);
}

static int read_batch(struct spulse_tail *tail, struct counts *counts, struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_batch *batch;
	int r = spulse_tail_poll(tail, &batch, err);

	if (r == 0)
		r = spulse_batch_stacks(batch, &stacks, err);
	return r < 0 ? r : walk_ids(stacks, spulse_tail_source(tail), counts, err);
}

static int read_tail(const char *path, uint64_t samples, struct counts *counts,
		     struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	double begin = seconds();
	int r = spulse_tail_open(path, &tail, err);

	while (r >= 0 && counts->samples < samples) {
		r = spulse_tail_wait(tail, 1000000000, NULL, err);
		if (r > 0)
			r = read_batch(tail, counts, err);
	}
	printf("cpu_seconds=%.6f\n", seconds() - begin);
	return r;
}

static int measure_bytes(const char *path, uint64_t samples, struct counts *counts,
			 struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(records) records = NULL;
	struct spulse_record record = {.size = sizeof(record)};
	int r = spulse_replay_open(path, &replay, err);

	if (r == 0)
		r = spulse_replay_records(replay, &records, err);
	while (r >= 0 && (r = spulse_records_next(records, &record, err)) > 0)
		if (record.kind == SPULSE_RECORD_SAMPLE && ++counts->samples == samples)
			break;
	printf("bytes=%" PRIu64 "\n", record.offset);
	return r;
}

static int read_snapshot(const char *path, struct counts *counts, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	double begin = seconds();
	int r = spulse_snapshot_open(path, &snapshot, err);

	if (r == 0)
		printf("open_seconds=%.6f walk_seconds=0\n", seconds() - begin);
	(void)counts;
	return r;
}

static int read_replay(const char *mode, const char *path, struct counts *counts,
		       struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	double begin = seconds(), opened;
	int r = spulse_replay_open(path, &replay, err);

	opened = seconds();
	if (r == 0 && !strcmp(mode, "samples"))
		r = walk_samples(replay, counts, err);
	else if (r == 0 && !strcmp(mode, "blocks"))
		r = walk_blocks(replay, counts, err);
	else if (r == 0 && !strcmp(mode, "frames"))
		r = walk_frames(replay, counts, err);
	else if (r == 0 && !strcmp(mode, "ids"))
		r = replay_ids(replay, counts, err);
	printf("open_seconds=%.6f walk_seconds=%.6f\n", opened - begin, seconds() - opened);
	return r;
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	struct counts counts = {0};
	bool bytes = !strcmp(argc == 4 ? argv[1] : "", "bytes");
	int r;

	if (argc != 3 && (argc != 4 || (!bytes && strcmp(argv[1], "tail") != 0))) {
		fprintf(stderr, "usage: spool_read open|samples|blocks|frames|ids|snapshot FILE\n"
				"       spool_read tail|bytes FILE SAMPLES\n");
		return 2;
	}
	if (bytes)
		r = measure_bytes(argv[2], strtoull(argv[3], NULL, 10), &counts, &err);
	else if (argc == 4)
		r = read_tail(argv[2], strtoull(argv[3], NULL, 10), &counts, &err);
	else if (!strcmp(argv[1], "snapshot"))
		r = read_snapshot(argv[2], &counts, &err);
	else
		r = read_replay(argv[1], argv[2], &counts, &err);
	if (err)
		fprintf(stderr, "spool_read: %s\n", spulse_error_message(err));
	printf("samples=%" PRIu64 " frames=%" PRIu64 " sum=%" PRIx64 "\n", counts.samples,
	       counts.frames, counts.sum);
	print_peak();
	return r < 0;
}

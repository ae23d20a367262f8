/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds of CPU that the spool's writer takes: for each node of stacks that are all new, and
 * for stacks that come again. Twice: frames given as a recorder does, which knows their numbers,
 * and as programs do through the public interface.
 * usage: spool_write [-n SAMPLES] [-s STACKS] [-d DEPTH] [-t THREADS] [-f 3|4]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "made_stacks.h"
#include "spool/spool.h"

struct bench {
	struct made_stacks made;
	struct spulse_spool_writer *writer;
	uint32_t *numbers; /* of all frames, or NULL for the public interface */
};

/* Takes everything and keeps nothing. */
static ssize_t write_nothing(void *data, const void *bytes, size_t len)
{
	(void)bytes;
	*(uint64_t *)data += len;
	return len;
}

static double seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static bool number_frames(struct bench *b)
{
	size_t count = b->made.options.stacks * b->made.options.depth * 2;

	b->numbers = calloc(count, sizeof(*b->numbers));
	for (size_t i = 0; b->numbers && i < count; i++)
		b->numbers[i] = spool_writer_intern(b->writer, &b->made.frames[i]);
	return b->numbers;
}

static int put(struct bench *b, uint64_t stack, struct spulse_error **err)
{
	struct spulse_sample sample = made_sample(&b->made);
	const struct spulse_frame *frames = made_frames(&b->made, stack);
	uint32_t depth = b->made.depths[stack];

	if (b->numbers)
		return spool_writer_sample(b->writer, &sample,
					   b->numbers + (frames - b->made.frames), depth, err);
	return spulse_spool_writer_sample(b->writer, &sample, frames, depth, err);
}

/* All stacks once, which are new, and then many times in a random order. */
static int measure(struct bench *b, const char *way, struct spulse_error **err)
{
	const struct made_options *options = &b->made.options;
	uint64_t nodes = 0, stacks = options->stacks;
	double before = seconds(), fresh;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < stacks; i++) {
		nodes += b->made.depths[i];
		r = put(b, i, err);
	}
	fresh = seconds() - before;
	before = seconds();
	for (uint64_t i = 0; r == 0 && i < options->samples; i++)
		r = put(b, made_pick(&b->made), err);
	printf("%s: new_node_ns=%.2f repeated_stack_ns=%.2f nodes=%" PRIu64, way,
	       fresh / nodes * 1e9, (seconds() - before) / options->samples * 1e9, nodes);
	return r;
}

static int run(const struct made_options *options, bool by_numbers, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_nothing};
	struct bench b = {.writer = NULL};
	uint64_t bytes = 0;
	int r = -1;

	if (made_stacks_new(&b.made, options, true))
		r = made_writer_new(options, &output, &bytes, &b.writer, err);
	if (r == 0 && by_numbers && !number_frames(&b))
		r = -1;
	if (r == 0)
		r = measure(&b, by_numbers ? "recorder" : "public", err);
	if (r == 0)
		r = spulse_spool_writer_finish(b.writer, err);
	printf(" bytes=%" PRIu64 "\n", bytes);
	spulse_spool_writer_free(b.writer);
	made_stacks_free(&b.made);
	free(b.numbers);
	return r;
}

int main(int argc, char **argv)
{
	struct spulse_error *err = NULL;
	struct made_options options;
	int r;

	if (!made_parse(&options, argc, argv) || options.path) {
		fprintf(stderr, "usage: spool_write [-n SAMPLES] [-s STACKS] [-d DEPTH] "
				"[-t THREADS] [-f 3|4]\n");
		return 2;
	}
	r = run(&options, true, &err);
	if (r == 0)
		r = run(&options, false, &err);
	if (err)
		fprintf(stderr, "spool_write: %s\n", spulse_error_message(err));
	spulse_error_free(err);
	return r < 0;
}

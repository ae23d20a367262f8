/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writes a made-up recording of any size, at once or at a rate, as a recorder does.
 * usage: spool_gen [-n SAMPLES] [-s STACKS] [-d DEPTH] [-t THREADS] [-f 3|4] [-r PER_SECOND] OUT
 */
#include <stackpulse/stackpulse.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "made_stacks.h"

static ssize_t write_some(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

enum { STEPS_PER_SECOND = 100 };

/* Makes what was written visible and waits for the time of the next step. */
static int pause_step(struct spulse_spool_writer *writer, struct timespec *due,
		      struct spulse_error **err)
{
	due->tv_nsec += 1000000000 / STEPS_PER_SECOND;
	if (due->tv_nsec >= 1000000000) {
		due->tv_nsec -= 1000000000;
		due->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
	return spulse_spool_writer_flush(writer, err);
}

static int put_all(struct made_stacks *made, struct spulse_spool_writer *writer,
		   struct spulse_error **err)
{
	uint64_t step = made->options.rate / STEPS_PER_SECOND;
	struct timespec due;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &due);
	for (uint64_t i = 0; r == 0 && i < made->options.samples; i++) {
		struct spulse_sample sample = made_sample(made);
		uint64_t stack = made_pick(made);

		r = spulse_spool_writer_sample(writer, &sample, made_frames(made, stack),
					       made->depths[stack], err);
		if (r == 0 && step && i % step == step - 1)
			r = pause_step(writer, &due, err);
	}
	return r < 0 ? r : spulse_spool_writer_finish(writer, err);
}

static int generate(struct made_stacks *made, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_some};
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	int fd = open(made->options.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r;

	if (fd < 0) {
		perror(made->options.path);
		return -1;
	}
	r = made_writer_new(&made->options, &output, &fd, &writer, err);
	if (r == 0)
		r = put_all(made, writer, err);
	return close(fd) < 0 ? -1 : r;
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	struct made_options options;
	struct made_stacks made;
	int r;

	if (!made_parse(&options, argc, argv) || !options.path) {
		fprintf(stderr, "usage: spool_gen [-n SAMPLES] [-s STACKS] [-d DEPTH] [-t THREADS] "
				"[-f 3|4] [-r PER_SECOND] OUT\n");
		return 2;
	}
	if (!made_stacks_new(&made, &options, false))
		return 1;
	r = generate(&made, &err);
	if (err)
		fprintf(stderr, "spool_gen: %s\n", spulse_error_message(err));
	made_stacks_free(&made);
	return r < 0;
}

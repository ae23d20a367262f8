/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Made-up recordings. Stacks are leaves of one random tree, so that they share callers as real
 * ones do; some are far more frequent than others. Or they share nothing, to measure new nodes.
 */
#ifndef BENCH_MADE_STACKS_H
#define BENCH_MADE_STACKS_H

#include <stackpulse/error.h>
#include <stackpulse/spool.h>

struct made_options {
	uint64_t samples, stacks, depth, threads, format;
	uint64_t rate; /* samples per second; 0 = as fast as it goes */
	const char *path; /* the last argument */
};

struct made_stacks {
	struct made_options options;
	struct spulse_frame *frames; /* options.stacks times options.depth * 2, innermost first */
	uint32_t *depths;
	uint64_t random;
	uint64_t ns;
	uint64_t samples; /* given so far */
};

/* -n SAMPLES -s STACKS -d DEPTH -t THREADS -f 3|4 -r PER_SECOND */
bool made_parse(struct made_options *options, int argc, char **argv);
/* `apart`: they share no callers. */
bool made_stacks_new(struct made_stacks *made, const struct made_options *options, bool apart);
void made_stacks_free(struct made_stacks *made);
/* A writer with the modules that the frames are in. */
int made_writer_new(const struct made_options *options, const struct spulse_output *output,
		    void *data, struct spulse_spool_writer **writer_out,
		    struct spulse_error **err);
/* Number of the next sample's stack: hot ones come often. */
uint64_t made_pick(struct made_stacks *made);
struct spulse_sample made_sample(struct made_stacks *made);
const struct spulse_frame *made_frames(const struct made_stacks *made, uint64_t stack);

#endif

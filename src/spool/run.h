/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_RUN_H
#define SPULSE_SPOOL_RUN_H

#include "codec.h"

/*
 * Samples that stand one after another, which is what most of a spool is. They are decoded many
 * at a time; whatever is not a plain sample ends the run and is left to the decoder.
 */

struct raw_sample {
	uint64_t timestamp_ns;
	uint32_t thread, node;
};

enum {
	/* Bytes that can be read after the end of a window. They are not looked at. */
	RUN_SLACK = 80,
};

struct sample_run {
	const uint8_t *p, *end; /* what is left of the window */
	uint64_t last_ns; /* timestamp base */
	size_t threads, nodes; /* defined so far */
};

/*
 * Decodes and checks up to `max` samples and moves the run behind them; returns how many there
 * were. There may be more even when that is less than `max`, unless it is 0.
 */
size_t run_take(struct sample_run *run, struct raw_sample *out, size_t max);
/* The same in public terms. */
size_t run_take_samples(struct sample_run *run, const struct spulse_thread *threads,
			struct spulse_sample *out, size_t max);
/* All that follow, checked but not kept. */
size_t run_skip(struct sample_run *run);

struct three_numbers {
	uint32_t first, zero, second, third;
};

/*
 * Takes up to `max` records that have that tag and three numbers of at most four bytes each, and
 * moves *p behind them; there may be more, and where the machine has no quick way there are none.
 */
size_t run_take_numbers(const uint8_t **p, const uint8_t *end, uint8_t tag,
			struct three_numbers *out, size_t max);

/* The sample at p, of which SMALL_RECORD_MAX bytes are there; NULL when anything is wrong. */
static inline const uint8_t *take_sample(const uint8_t *p, uint64_t last_ns, size_t threads,
					 size_t nodes, struct raw_sample *sample)
{
	uint64_t delta, thread, node;

	p = take_uv(p + 1, &delta);
	if (unlikely(!p || add_overflows(last_ns, unzigzag(delta), &sample->timestamp_ns)))
		return NULL;
	p = take_uv(p, &thread);
	if (unlikely(!p || thread >= threads))
		return NULL;
	p = take_uv(p, &node);
	if (unlikely(!p || node >= nodes))
		return NULL;
	sample->thread = thread;
	sample->node = node;
	return p;
}

#endif

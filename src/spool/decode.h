/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_DECODE_H
#define SPULSE_SPOOL_DECODE_H

#include "input.h"
#include "run.h"
#include "source.h"

/*
 * The one decoder. It goes through a spool record by record, checks everything, and adds what a
 * record defines to the source. A record that is cut off or bad changes nothing.
 */

enum { DECODE_END = 0, DECODE_CUT = 256 };

struct decoder {
	struct input in;
	const uint8_t *p, *end; /* what is left of the window */
	struct spulse_source *source;
	uint64_t last_ns; /* timestamp base */
	struct raw_sample sample; /* of the last record when that was a sample */
	uint64_t record_offset; /* of what was decoded last, if it was not a sample */
	pid_t pid; /* process of the last record when that was not a sample; 0 = none */
	uint32_t id; /* number of what the last record defined or retired */
};

/* Reads the header. */
int decode_open(struct decoder *d, int fd, uint64_t limit, struct spulse_source *source,
		struct spulse_error **err);
void decode_release(struct decoder *d);

static inline uint64_t decode_offset(const struct decoder *d)
{
	return input_end(&d->in) - (d->end - d->p);
}

/* Lets the file be `limit` bytes long and forgets what was read ahead. */
void decode_set_limit(struct decoder *d, uint64_t limit);

/*
 * Takes frames and nodes that stand one after another and are plainly right, which is what most
 * definitions are; returns whether there was any.
 */
bool decode_plain(struct decoder *d);
int decode_slow(struct decoder *d, struct spulse_error **err);

/* One record, or several frames and stack nodes: a tag, DECODE_END, DECODE_CUT or an error. */
static inline int decode_next(struct decoder *d, struct spulse_error **err)
{
	if (likely(d->end - d->p >= SMALL_RECORD_MAX && *d->p == TAG_SAMPLE)) {
		const uint8_t *p = take_sample(d->p, d->last_ns, d->source->threads.len,
					       d->source->nodes.len, &d->sample);

		if (likely(p)) {
			d->p = p;
			d->last_ns = d->sample.timestamp_ns;
			return TAG_SAMPLE;
		}
	}
	return decode_slow(d, err);
}

/*
 * Samples that follow, as many as are plainly there but at most `max`, to `out`; all of them
 * to nowhere when that is NULL. When there are none, decode_next() tells what is there instead.
 */
static inline size_t decode_samples(struct decoder *d, struct raw_sample *out, size_t max)
{
	struct sample_run run = {
		.p = d->p,
		.end = d->end,
		.last_ns = d->last_ns,
		.threads = d->source->threads.len,
		.nodes = d->source->nodes.len,
	};
	size_t count = out ? run_take(&run, out, max) : run_skip(&run);

	d->p = run.p;
	d->last_ns = run.last_ns;
	return count;
}

/*
 * For a second reading of what was checked: moves the cursor over one record without looking at
 * its values but `id`, the first number of tags 7 and 8.
 */
int skip_record(struct cursor *c, uint64_t *id);

#endif

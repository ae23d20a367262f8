/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_DECODE_H
#define SPULSE_SPOOL_DECODE_H

#include "input.h"
#include "source.h"

/*
 * The one decoder. It goes through a spool record by record, checks everything, and adds what a
 * record defines to the source. A record that is cut off or bad changes nothing.
 */

enum { DECODE_END = 0, DECODE_CUT = 256 };

struct raw_sample {
	uint64_t timestamp_ns;
	uint32_t thread, node;
};

struct decoder {
	struct input in;
	const uint8_t *p, *end; /* what is left of the window */
	struct spulse_source *source;
	uint64_t last_ns; /* timestamp base */
	struct raw_sample sample; /* of the last record when that was a sample */
	uint64_t record_offset; /* of the last record that was not a sample */
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

/* A number whose ten bytes are all there; NULL when it is none. */
static inline const uint8_t *take_uv(const uint8_t *p, uint64_t *value)
{
	uint64_t word, stop;
	unsigned int bits;

	if (likely(*p < 0x80)) {
		*value = *p;
		return p + 1;
	}
	word = load_u64(p);
	stop = ~word & 0x8080808080808080u;
	if (unlikely(!stop)) {
		int n = varint_get(p, VARINT_MAX, value);

		return n > 0 ? p + n : NULL;
	}
	/* Without branches on the length: keep the bytes up to the last, squeeze out bit 7. */
	bits = __builtin_ctzll(stop) + 1;
	word &= ~(uint64_t)0 >> (64 - bits);
	word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
	word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
	*value = (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
	return p + bits / 8;
}

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

int decode_slow(struct decoder *d, struct spulse_error **err);

/* One record: its tag, DECODE_END, DECODE_CUT or an error. */
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
 * For a second reading of what was checked: moves the cursor over one record without looking at
 * its values but `id`, the first number of tags 7 and 8.
 */
int skip_record(struct cursor *c, uint64_t *id);

#endif

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

#endif

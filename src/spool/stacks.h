/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_STACKS_H
#define SPULSE_SPOOL_STACKS_H

#include "decode.h"
#include "source.h"

/* One stack: a sample and the node of its innermost frame. */
struct spulse_stack {
	struct spulse_sample sample;
	const struct spulse_source *source;
	uint32_t node;
};

/* Samples with their nodes, both by index. */
struct sample_store {
	VEC(struct spulse_sample) samples;
	VEC(uint32_t) nodes;
};

bool sample_store_add(struct sample_store *store, const struct spulse_source *source,
		      const struct raw_sample *raw);
void sample_store_clear(struct sample_store *store);
void sample_store_release(struct sample_store *store);

/* Walks a store that stays as it is meanwhile. */
int stacks_over_store(const struct spulse_source *source, const struct sample_store *store,
		      struct spulse_stacks **stacks_out, struct spulse_error **err);
/* Walks a replay's file again: see stream.h. Takes the stream over. */
struct stream;
int stacks_over_stream(struct stream *stream, struct spulse_stacks **stacks_out,
		       struct spulse_error **err);

static inline struct spulse_sample sample_from_raw(const struct spulse_source *source,
						   const struct raw_sample *raw)
{
	const struct spulse_thread *thread = &source->threads.data[raw->thread];

	return (struct spulse_sample){ raw->timestamp_ns, thread->pid, thread->tid };
}

#endif

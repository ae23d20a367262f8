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

/* Walks samples in memory, which stay as they are meanwhile. */
int stacks_over_array(const struct spulse_source *source, const struct raw_sample *samples,
		      size_t count, struct spulse_stacks **stacks_out, struct spulse_error **err);
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

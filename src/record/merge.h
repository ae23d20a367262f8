/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_RECORD_MERGE_H
#define SPULSE_RECORD_MERGE_H

#include "../perf/perf.h"

/* What one pass does with events that another stream may still have to precede. */
enum merge_mode {
	MERGE_SETTLED, /* keeps them for the next pass, out of the ring */
	MERGE_ALL,     /* passes them on too */
};

struct merge_front {
	uint64_t time;
	uint32_t stream;
};

struct merge {
	struct perf_source *source;
	VEC(struct merge_front) heap;
	bool pending; /* the last pass kept something */
	bool seen;    /* any event since this was last cleared */
};

typedef int (*merge_fn)(void *data, const struct perf_event *event, struct spulse_error **err);

/*
 * One pass over all streams: fn gets their events in the order of their times, equal times in
 * the order of the streams. A failure of a stream or of fn ends it.
 */
int merge_pass(struct merge *merge, enum merge_mode mode, merge_fn fn, void *data,
	       struct spulse_error **err);
void merge_release(struct merge *merge);

#endif

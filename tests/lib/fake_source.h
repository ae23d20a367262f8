/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAKE_SOURCE_H
#define TESTS_FAKE_SOURCE_H

#include "perf/perf.h"

/*
 * A source of events that a test puts there, one list for each stream, as rings would show them:
 * an event can be seen from the next snapshot on.
 */
struct fake_stream {
	VEC(struct perf_event) events;
	size_t next, seen, seen_before;
	bool broken; /* what comes after the last event is malformed */
};

struct fake_source {
	struct perf_source source;
	VEC(struct fake_stream) streams;
	size_t snapshots, detached;
	/* Called at each snapshot, for what turns up in between. */
	void (*on_snapshot)(struct fake_source *fake, size_t stream, size_t number);
};

void fake_source_init(struct fake_source *fake, size_t streams);
void fake_source_release(struct fake_source *fake);
void fake_source_put(struct fake_source *fake, size_t stream, const struct perf_event *event);
/* An event of no importance with a time and a number (as its pid). */
void fake_source_put_time(struct fake_source *fake, size_t stream, uint64_t time, int32_t number);

#endif

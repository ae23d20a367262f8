/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "fake_source.h"

#include <errno.h>
#include <stdlib.h>

static struct fake_stream *stream_of(struct perf_source *source, size_t stream)
{
	return &((struct fake_source *)source)->streams.data[stream];
}

static size_t count_streams(struct perf_source *source)
{
	return ((struct fake_source *)source)->streams.len;
}

static int snapshot(struct perf_source *source, size_t stream, struct spulse_error **err)
{
	struct fake_source *fake = (struct fake_source *)source;
	struct fake_stream *s = stream_of(source, stream);

	(void)err;
	fake->snapshots++;
	if (fake->on_snapshot)
		fake->on_snapshot(fake, stream, fake->snapshots);
	s->seen_before = s->seen;
	s->seen = s->events.len;
	return 0;
}

static int front(struct perf_source *source, size_t stream, const struct perf_event **event,
		 struct spulse_error **err)
{
	struct fake_stream *s = stream_of(source, stream);

	if (s->next == s->seen)
		return s->broken ? err_file(err, SPULSE_ERROR_IO, EBADMSG, NULL, "broken") : 0;
	*event = &s->events.data[s->next];
	return 1;
}

static bool settled(struct perf_source *source, size_t stream)
{
	struct fake_stream *s = stream_of(source, stream);

	return s->next < s->seen_before;
}

static void advance(struct perf_source *source, size_t stream)
{
	stream_of(source, stream)->next++;
}

static int detach(struct perf_source *source, struct spulse_error **err)
{
	(void)err;
	((struct fake_source *)source)->detached++;
	return 0;
}

static void nothing(struct perf_source *source)
{
	(void)source;
}

static const struct perf_source_ops ops = {
	.streams = count_streams,
	.snapshot = snapshot,
	.front = front,
	.settled = settled,
	.advance = advance,
	.detach = detach,
	.free = nothing,
};

void fake_source_init(struct fake_source *fake, size_t streams)
{
	*fake = (struct fake_source){ .source = { .ops = &ops } };
	for (size_t i = 0; i < streams; i++)
		if (!vec_push(&fake->streams, (struct fake_stream){ 0 }))
			abort();
}

void fake_source_release(struct fake_source *fake)
{
	for (size_t i = 0; i < fake->streams.len; i++)
		vec_free(&fake->streams.data[i].events);
	vec_free(&fake->streams);
}

void fake_source_put(struct fake_source *fake, size_t stream, const struct perf_event *event)
{
	if (!vec_push(&fake->streams.data[stream].events, *event))
		abort();
}

void fake_source_put_time(struct fake_source *fake, size_t stream, uint64_t time, int32_t number)
{
	const struct perf_event event = {
		.type = PERF_RECORD_MAX, .has_time = true, .time = time,
		.has_ids = true, .pid = number, .tid = number,
	};

	fake_source_put(fake, stream, &event);
}

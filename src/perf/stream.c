/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One ring as a stream of decoded records. Records are used where they lie. What is left at the
 * end of a pass is copied, without the unused end of its stack, and comes first in the next one.
 */
#include <errno.h>

#include "live.h"

int perf_stream_snapshot(struct perf_stream *stream, struct spulse_error **err)
{
	return perf_ring_snapshot(&stream->ring, err);
}

static int front_of_ring(struct perf_stream *stream, struct spulse_error **err)
{
	const void *record;
	size_t size;
	int r = perf_ring_front(&stream->ring, &record, &size, err);

	if (r <= 0)
		return r;
	if (perf_record_decode(&stream->layout, record, size, &stream->front) < 0)
		return err_file(err, SPULSE_ERROR_IO, EBADMSG, NULL,
				"malformed ring data at position %llu: a record of type %u and %zu "
				"bytes breaks its layout",
				(unsigned long long)stream->ring.position,
				((const struct perf_event_header *)record)->type, size);
	stream->front_size = size;
	return 1;
}

int perf_stream_front(struct perf_stream *stream, const struct perf_event **event,
		      struct spulse_error **err)
{
	int r;

	if (!stream->front_size) {
		if (stream->copied_next < stream->copied.len) {
			const struct perf_copied *copy =
				&stream->copied.data[stream->copied_next];

			stream->front = copy->event;
			perf_event_move(&stream->front, copy->base,
					stream->bytes.data + copy->offset);
			stream->front_size = copy->size;
			stream->front_copied = true;
		} else {
			r = front_of_ring(stream, err);
			if (r <= 0)
				return r;
			stream->front_copied = false;
		}
	}
	*event = &stream->front;
	return 1;
}

bool perf_stream_settled(const struct perf_stream *stream)
{
	return stream->front_copied || stream->ring.position < stream->ring.old_head;
}

void perf_stream_advance(struct perf_stream *stream)
{
	if (!stream->front_size)
		return;
	if (!stream->front_copied) {
		perf_ring_advance(&stream->ring, stream->front_size);
	} else if (++stream->copied_next == stream->copied.len) {
		stream->copied.len = stream->bytes.len = 0;
		stream->copied_next = 0;
	}
	stream->front_size = 0;
}

size_t perf_event_used_bytes(const struct perf_event *event, const uint8_t *record, size_t size)
{
	if (event->type != PERF_RECORD_SAMPLE || !event->sample.stack)
		return size;
	return event->sample.stack + event->sample.stack_len - record;
}

/* Drops what was consumed, so that the copies never grow without end. */
static void compact(struct perf_stream *stream)
{
	size_t start;

	if (stream->copied_next == 0)
		return;
	start = stream->copied.data[stream->copied_next].offset;
	stream->bytes.len -= start;
	memmove(stream->bytes.data, stream->bytes.data + start, stream->bytes.len);
	stream->copied.len -= stream->copied_next;
	memmove(stream->copied.data, stream->copied.data + stream->copied_next,
		stream->copied.len * sizeof(stream->copied.data[0]));
	stream->copied_next = 0;
	for (size_t i = 0; i < stream->copied.len; i++)
		stream->copied.data[i].offset -= start;
}

int perf_stream_detach(struct perf_stream *stream, struct spulse_error **err)
{
	int r;

	if (stream->front_copied)
		stream->front_size = 0;
	compact(stream);
	stream->front_copied = false;
	for (;;) {
		const void *record;
		size_t size, used;
		struct perf_copied copy = { 0 };

		if (!stream->front_size) {
			r = front_of_ring(stream, err);
			if (r <= 0)
				break;
		}
		r = perf_ring_front(&stream->ring, &record, &size, err);
		if (r <= 0)
			break;
		used = (perf_event_used_bytes(&stream->front, record, size) + 7) & ~(size_t)7;
		copy = (struct perf_copied){
			.event = stream->front,
			.base = record,
			.offset = stream->bytes.len,
			.size = size,
		};
		if (!vec_reserve(&stream->bytes, used) || !vec_push(&stream->copied, copy)) {
			r = err_no_memory(err);
			break;
		}
		memcpy(stream->bytes.data + stream->bytes.len, record, used);
		stream->bytes.len += used;
		perf_ring_advance(&stream->ring, size);
		stream->front_size = 0;
	}
	perf_ring_publish(&stream->ring);
	return r;
}

void perf_stream_release(struct perf_stream *stream)
{
	perf_ring_release(&stream->ring);
	vec_free(&stream->copied);
	vec_free(&stream->bytes);
}

#define MOVE(pointer) \
	((pointer) = (pointer) ? (const void *)(to + ((const uint8_t *)(pointer) - from)) : NULL)

void perf_event_move(struct perf_event *event, const uint8_t *from, const uint8_t *to)
{
	switch (event->type) {
	case PERF_RECORD_SAMPLE:
		MOVE(event->sample.callchain);
		MOVE(event->sample.regs);
		MOVE(event->sample.stack);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		MOVE(event->mmap.path);
		MOVE(event->mmap.build_id);
		break;
	case PERF_RECORD_COMM:
		MOVE(event->comm.name);
		break;
	}
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A k-way merge over the fronts of streams, by time. Events are used where they lie.
 *
 * An event may go out only when every other stream was looked at again after it was seen: until
 * then an older one may turn up there. So a pass takes two snapshots of all streams and passes on
 * what was there at the first one; of what came in between only little exists, and it is copied
 * out of the rings at the end, so that no call returns holding ring space. Only the oldest front
 * is ever looked at: if it may not go, nothing goes.
 */
#include "merge.h"

static bool before(const struct merge_front *a, const struct merge_front *b)
{
	return a->time != b->time ? a->time < b->time : a->stream < b->stream;
}

static void sift_down(struct merge *m, size_t i)
{
	struct merge_front *heap = m->heap.data;
	size_t n = m->heap.len;

	for (;;) {
		size_t least = i, left = 2 * i + 1, right = left + 1;
		struct merge_front swap;

		if (left < n && before(&heap[left], &heap[least]))
			least = left;
		if (right < n && before(&heap[right], &heap[least]))
			least = right;
		if (least == i)
			return;
		swap = heap[i];
		heap[i] = heap[least];
		heap[least] = swap;
		i = least;
	}
}

/* Events without a time come first. */
static uint64_t time_of(const struct perf_event *event)
{
	return event->has_time ? event->time : 0;
}

static int snapshot_all(struct merge *m, size_t streams, struct spulse_error **err)
{
	const struct perf_source_ops *ops = m->source->ops;
	int r = 0;

	for (size_t i = 0; i < streams && r == 0; i++)
		r = ops->snapshot(m->source, i, err);
	return r;
}

static int fill_heap(struct merge *m, size_t streams, struct spulse_error **err)
{
	const struct perf_event *event;

	m->heap.len = 0;
	if (!vec_reserve(&m->heap, streams))
		return err_no_memory(err);
	for (size_t i = 0; i < streams; i++) {
		int r = m->source->ops->front(m->source, i, &event, err);

		if (r < 0)
			return r;
		if (r > 0)
			m->heap.data[m->heap.len++] =
				(struct merge_front){ .time = time_of(event), .stream = i };
	}
	for (size_t i = m->heap.len / 2; i-- > 0;)
		sift_down(m, i);
	return 0;
}

/* Replaces the heap's least entry by its stream's next front. */
static int next_front(struct merge *m, struct spulse_error **err)
{
	struct merge_front *top = &m->heap.data[0];
	const struct perf_event *event;
	int r = m->source->ops->front(m->source, top->stream, &event, err);

	if (r < 0)
		return r;
	if (r > 0)
		top->time = time_of(event);
	else
		*top = vec_pop(&m->heap);
	sift_down(m, 0);
	return 0;
}

static int pass_on(struct merge *m, enum merge_mode mode, merge_fn fn, void *data,
		   struct spulse_error **err)
{
	const struct perf_source_ops *ops = m->source->ops;
	const struct perf_event *event;
	int r = 0;

	while (r == 0 && m->heap.len) {
		size_t stream = m->heap.data[0].stream;

		r = ops->front(m->source, stream, &event, err);
		if (r < 0)
			break;
		if (mode == MERGE_SETTLED && ops->settled && !ops->settled(m->source, stream))
			return 0;
		m->seen = true;
		r = fn(data, event, err);
		ops->advance(m->source, stream);
		if (r == 0)
			r = next_front(m, err);
	}
	return r;
}

int merge_pass(struct merge *m, enum merge_mode mode, merge_fn fn, void *data,
	       struct spulse_error **err)
{
	size_t streams = m->source->ops->streams(m->source);
	int r = snapshot_all(m, streams, err), second;

	if (r == 0)
		r = snapshot_all(m, streams, err);
	if (r == 0)
		r = fill_heap(m, streams, err);
	if (r == 0)
		r = pass_on(m, mode, fn, data, err);
	m->pending = r == 0 && m->heap.len > 0;
	if (r == 0 && !m->pending)
		return 0;
	second = m->source->ops->detach(m->source, r < 0 ? NULL : err);
	return r < 0 ? r : second;
}

void merge_release(struct merge *m)
{
	vec_free(&m->heap);
}

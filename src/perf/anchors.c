/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Waiting, and the rings as streams of a source. One descriptor of each ring, its anchor, is in
 * the epoll set. When its task ends it reports a hang-up for ever: another one takes its place.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "live.h"

void perf_anchor_lost(struct perf_events *events, int fd)
{
	for (size_t i = 0; i < events->rings.len; i++) {
		struct perf_ring_owner *ring = events->rings.data[i];

		if (ring->anchor != fd)
			continue;
		epoll_ctl(events->epoll, EPOLL_CTL_DEL, fd, NULL);
		ring->anchor = -1;
		events->anchors_missing = true;
	}
}

/* The owner first, then the lowest descriptor. */
static int choose_anchor(const struct perf_events *events, uint32_t ring)
{
	int best = -1;

	for (size_t i = 0; i < events->members.len; i++) {
		const struct perf_member *m = &events->members.data[i];

		if (m->ring != ring || m->hung_up)
			continue;
		if (m->owner)
			return m->fd;
		if (best < 0 || m->fd < best)
			best = m->fd;
	}
	return best;
}

int perf_anchors_place(struct perf_events *events, struct spulse_error **err)
{
	if (!events->anchors_missing)
		return 0;
	events->anchors_missing = false;
	for (size_t i = 0; i < events->rings.len; i++) {
		struct perf_ring_owner *ring = events->rings.data[i];
		struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };

		if (ring->anchor >= 0)
			continue;
		event.data.fd = choose_anchor(events, i);
		/* Nobody is left: the ring is still read in every pass. */
		if (event.data.fd < 0)
			continue;
		if (epoll_ctl(events->epoll, EPOLL_CTL_ADD, event.data.fd, &event) < 0) {
			events->anchors_missing = true;
			return err_io(err, errno, NULL, "cannot wait for the ring of CPU %u",
				      ring->cpu);
		}
		ring->anchor = event.data.fd;
	}
	return 0;
}

static void hang_up(struct perf_events *events, int fd)
{
	for (size_t i = 0; i < events->members.len; i++)
		if (events->members.data[i].fd == fd)
			events->members.data[i].hung_up = true;
	perf_anchor_lost(events, fd);
}

int perf_events_wait(struct perf_events *events, int64_t timeout_ns, struct spulse_error **err)
{
	struct epoll_event ready[16];
	int timeout = -1, n, r;

	perf_members_reap(events);
	r = perf_anchors_place(events, err);
	if (r < 0)
		return r;
	if (events->data_seen)
		timeout_ns = 0;
	if (timeout_ns >= 0)
		timeout = (int)MIN((timeout_ns + 999999) / 1000000, INT32_MAX);
	n = epoll_wait(events->epoll, ready, ARRAY_LEN(ready), timeout);
	if (n < 0 && errno != EINTR)
		return err_io(err, errno, NULL, "cannot wait for samples");
	for (int i = 0; i < n; i++)
		if (ready[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
			hang_up(events, ready[i].data.fd);
	r = n > 0 || events->data_seen;
	events->data_seen = false;
	return r;
}

int perf_events_fd(const struct perf_events *events)
{
	return events->epoll;
}

/* ---- the source ---- */

static struct perf_stream *stream_of(struct perf_source *source, size_t stream)
{
	return &((struct perf_events *)source)->rings.data[stream]->stream;
}

static size_t live_streams(struct perf_source *source)
{
	return ((struct perf_events *)source)->rings.len;
}

static int live_snapshot(struct perf_source *source, size_t stream, struct spulse_error **err)
{
	return perf_stream_snapshot(stream_of(source, stream), err);
}

static int live_front(struct perf_source *source, size_t stream, const struct perf_event **event,
		      struct spulse_error **err)
{
	return perf_stream_front(stream_of(source, stream), event, err);
}

static bool live_settled(struct perf_source *source, size_t stream)
{
	return perf_stream_settled(stream_of(source, stream));
}

static void live_advance(struct perf_source *source, size_t stream)
{
	struct perf_stream *s = stream_of(source, stream);

	if (unlikely(s->front.type == PERF_RECORD_COMM && s->front_size && s->front.comm.exec))
		perf_members_executed((struct perf_events *)source, s->front.pid);
	perf_stream_advance(s);
}

static int live_detach(struct perf_source *source, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < live_streams(source); i++) {
		int one = perf_stream_detach(stream_of(source, i), r < 0 ? NULL : err);

		r = r < 0 ? r : one;
	}
	return MIN(r, 0);
}

static void live_free(struct perf_source *source)
{
	perf_events_free((struct perf_events *)source);
}

const struct perf_source_ops perf_live_ops = {
	.streams = live_streams,
	.snapshot = live_snapshot,
	.front = live_front,
	.settled = live_settled,
	.advance = live_advance,
	.detach = live_detach,
	.free = live_free,
};

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What happens to open events: switched on and off, their losses, their end. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "live.h"

/* ---- closing ---- */

void perf_member_close(struct perf_events *events, size_t index)
{
	struct perf_member *m = &events->members.data[index];

	perf_anchor_lost(events, m->fd);
	events->watched -= m->watched;
	perf_sys->close(m->fd);
	*m = vec_last(&events->members);
	events->members.len--;
}

void perf_members_truncate(struct perf_events *events, size_t from, size_t ring_from)
{
	while (events->members.len > from)
		perf_member_close(events, events->members.len - 1);
	while (events->rings.len > ring_from) {
		struct perf_ring_owner *ring = vec_pop(&events->rings);

		perf_stream_release(&ring->stream);
		free(ring);
	}
}

static void retire(struct perf_events *events, size_t index)
{
	perf_sys->ioctl(events->members.data[index].fd, PERF_EVENT_IOC_DISABLE, 0);
	perf_member_read_loss(events, &events->members.data[index], NULL);
	perf_member_close(events, index);
}

/*
 * A thread that is gone can still be counted by events that its descendants inherited: those are
 * closed when the last of them is gone. The owner of a ring stays for those that share it.
 */
void perf_events_close(struct perf_events *events, pid_t pid, pid_t tid)
{
	for (size_t i = events->members.len; i-- > 0;) {
		struct perf_member *m = &events->members.data[i];

		if (m->pid != pid || (tid && m->tid != tid) || m->owner || m->watched)
			continue;
		if (m->inherits) {
			m->watched = true;
			events->watched++;
		} else {
			retire(events, i);
		}
	}
}

static bool ring_is_shared(const struct perf_events *events, uint32_t ring, pid_t pid)
{
	for (size_t i = 0; i < events->members.len; i++) {
		const struct perf_member *m = &events->members.data[i];

		if (m->ring == ring && m->pid != pid)
			return true;
	}
	return false;
}

static void drop_last_ring(struct perf_events *events)
{
	struct perf_ring_owner *ring = vec_pop(&events->rings);

	perf_stream_release(&ring->stream);
	free(ring);
}

void perf_events_rollback(struct perf_events *events, pid_t pid)
{
	for (size_t i = events->members.len; i-- > 0;) {
		struct perf_member *m = &events->members.data[i];

		if (m->pid != pid)
			continue;
		if (m->owner && ring_is_shared(events, m->ring, pid)) {
			perf_sys->ioctl(m->fd, PERF_EVENT_IOC_DISABLE, 0);
			m->enabled = false;
			m->on_exec = true; /* not to be enabled with the others */
		} else {
			perf_member_close(events, i);
		}
	}
	/* Rings are told apart by index: only unused ones at the end can go. */
	while (events->rings.len) {
		uint32_t last = events->rings.len - 1;
		bool used = false;

		for (size_t i = 0; i < events->members.len; i++)
			used |= events->members.data[i].ring == last;
		if (used)
			break;
		drop_last_ring(events);
	}
}

/* Closes watched members whose task and inheriting descendants are all gone. */
void perf_members_reap(struct perf_events *events)
{
	struct timespec ts;
	int64_t now;

	if (!events->watched)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000000000ll + ts.tv_nsec;
	if (now - events->watched_at < 100000000)
		return;
	events->watched_at = now;
	for (size_t i = events->members.len; i-- > 0;) {
		struct pollfd fd = { .fd = events->members.data[i].fd, .events = POLLIN };

		if (!events->members.data[i].watched || poll(&fd, 1, 0) <= 0)
			continue;
		if (fd.revents & POLLHUP)
			retire(events, i);
		else if (fd.revents & POLLIN)
			events->data_seen = true; /* this look took the ring's wake-up */
	}
}

/* ---- on and off ---- */

static int switch_all(struct perf_events *events, bool owners, bool on, struct spulse_error **err)
{
	int first = 0;

	for (size_t i = 0; i < events->members.len; i++) {
		struct perf_member *m = &events->members.data[i];
		int r;

		if (m->owner != owners || (on && (m->enabled || m->on_exec)))
			continue;
		r = perf_sys->ioctl(m->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
		if (r < 0 && first == 0)
			first = err_io(err, -r, NULL, "cannot %s the events of thread %d",
				       on ? "enable" : "disable", m->tid);
		m->enabled = on;
		if (!on)
			m->on_exec = false;
	}
	return first;
}

int perf_events_enable(struct perf_events *events, struct spulse_error **err)
{
	int r = switch_all(events, true, true, err);
	int second = switch_all(events, false, true, r < 0 ? NULL : err);

	events->running = true;
	return r < 0 ? r : second;
}

int perf_events_disable(struct perf_events *events, struct spulse_error **err)
{
	int r = switch_all(events, true, false, err);
	int second = switch_all(events, false, false, r < 0 ? NULL : err);

	events->running = false;
	return r < 0 ? r : second;
}

void perf_members_executed(struct perf_events *events, pid_t pid)
{
	if (!events->wait_for_exec)
		return;
	events->wait_for_exec = false;
	for (size_t i = 0; i < events->members.len; i++) {
		struct perf_member *m = &events->members.data[i];

		if (m->on_exec && m->pid == pid) {
			m->on_exec = false;
			m->enabled = true;
		}
		events->wait_for_exec |= m->on_exec;
	}
}

/* ---- losses ---- */

static int keep_loss(struct perf_events *events, pid_t pid, pid_t tid, uint64_t lost)
{
	struct perf_old_loss loss = { .pid = pid, .tid = tid, .lost = lost };

	return vec_push(&events->old_losses, loss) ? 0 : -ENOMEM;
}

int perf_member_read_loss(struct perf_events *events, struct perf_member *m,
			  struct spulse_error **err)
{
	uint64_t values[2];
	ssize_t n = perf_sys->read(m->fd, values, sizeof(values));
	uint64_t more;

	if (n < 0)
		return err_io(err, -n, NULL, "cannot read the loss counter of thread %d", m->tid);
	/* An event in error state reads as nothing. */
	if (n == 0)
		return 0;
	if (n != sizeof(values))
		return err_file(err, SPULSE_ERROR_IO, EBADMSG, NULL,
				"the loss counter of thread %d has %zd bytes", m->tid, n);
	if (values[1] < m->lost)
		return err_file(err, SPULSE_ERROR_IO, EBADMSG, NULL,
				"the loss counter of thread %d regressed from %llu to %llu",
				m->tid, (unsigned long long)m->lost,
				(unsigned long long)values[1]);
	more = values[1] - m->lost;
	if (more && keep_loss(events, m->pid, m->tid, more) < 0)
		return err_no_memory(err);
	m->lost = values[1];
	return 0;
}

int perf_events_read_losses(struct perf_events *events, perf_loss_fn fn, void *data,
			    struct spulse_error **err)
{
	uint64_t total = 0;
	int r = 0;

	for (size_t i = 0; i < events->members.len && r == 0; i++)
		r = perf_member_read_loss(events, &events->members.data[i], err);
	for (size_t i = 0; i < events->old_losses.len; i++) {
		const struct perf_old_loss *loss = &events->old_losses.data[i];

		if (add_overflows(total, loss->lost, &total) && r == 0)
			r = err_file(err, SPULSE_ERROR_IO, EOVERFLOW, NULL,
				     "the sum of losses is too large");
		if (r == 0)
			fn(data, loss->pid, loss->tid, loss->lost);
	}
	if (r == 0)
		events->old_losses.len = 0;
	return r;
}

/* ---- what is known ---- */

bool perf_events_kernel_enabled(const struct perf_events *events)
{
	return events->how[PERF_KIND_SAMPLING].kernel;
}

enum spulse_sampling_event perf_events_event(const struct perf_events *events)
{
	return events->how[PERF_KIND_SAMPLING].type == PERF_TYPE_HARDWARE ?
		SPULSE_EVENT_CYCLES : SPULSE_EVENT_CPU_CLOCK;
}

void perf_events_ring_range(const struct perf_events *events, uint64_t *min, uint64_t *max)
{
	*min = *max = 0;
	for (size_t i = 0; i < events->rings.len; i++) {
		uint64_t size = events->rings.data[i]->stream.ring.size;

		*min = i ? MIN(*min, size) : size;
		*max = MAX(*max, size);
	}
}

size_t perf_events_descriptors(const struct perf_events *events)
{
	return events->members.len;
}

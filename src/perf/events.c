/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The open events of a recording: one ring per CPU, owned by the first event opened there; every
 * later event of that CPU writes into it too. Opening is a transaction: what it added is at the
 * end of the lists and is cut off again when something fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "live.h"

static const char *const rate_path = "/proc/sys/kernel/perf_event_max_sample_rate";

/* ---- rings ---- */

static struct perf_ring_owner *find_ring(struct perf_events *events, uint32_t cpu,
					 enum perf_event_kind kind, uint32_t *index)
{
	for (size_t i = 0; i < events->rings.len; i++) {
		struct perf_ring_owner *ring = events->rings.data[i];

		if (ring->cpu == cpu && ring->kind == kind) {
			*index = i;
			return ring;
		}
	}
	return NULL;
}

static bool means_too_big(int r)
{
	return r == -EPERM || r == -ENOMEM;
}

/* What one event open needs, and what is known when it fails. */
struct opening {
	struct perf_events *events;
	pid_t pid;
	uint64_t cap; /* of a new ring; smaller after a CPU had no room */
	struct perf_open_request request;
	struct perf_event_attr attr;
	bool mapping_failed;
};

static int fail(struct opening *o, int errnum, struct spulse_error **err)
{
	struct perf_events *events = o->events;

	return perf_report_failure(&(struct perf_failure){
		.mapping = o->mapping_failed,
		.errnum = errnum,
		.pid = o->pid,
		.tid = o->request.tid,
		.cpu = o->request.cpu,
		.kind = o->request.kind,
		.software = o->attr.type == PERF_TYPE_SOFTWARE,
		.bytes = o->request.ring_bytes,
		.descriptors = events->members.len,
	}, err);
}

/* Opens an event with a ring of its own, smaller and smaller until it fits. -errno on failure. */
static int open_with_ring(struct opening *o, struct perf_ring_owner *ring)
{
	struct perf_events *events = o->events;
	uint64_t bytes = o->cap;
	void *area;
	int fd, r;

	for (;;) {
		o->request.ring_bytes = bytes;
		o->mapping_failed = false;
		fd = perf_open_one(&o->request, &events->how[o->request.kind], &o->attr);
		if (fd < 0)
			return fd;
		o->mapping_failed = true;
		r = perf_sys->map(fd, events->page + bytes, &area);
		if (r == 0)
			break;
		perf_sys->close(fd);
		if (!means_too_big(r) || bytes / 2 < events->minimum)
			return r;
		bytes /= 2;
	}
	if (!perf_ring_init(&ring->stream.ring, area, events->page + bytes, events->page)) {
		perf_sys->unmap(area, events->page + bytes);
		perf_sys->close(fd);
		return -EBADMSG;
	}
	perf_attr_layout(&o->attr, o->request.kind, &ring->stream.layout);
	ring->cpu = o->request.cpu;
	ring->kind = o->request.kind;
	ring->owner = fd;
	ring->anchor = -1;
	return fd;
}

/* As open_with_ring(), adding the ring to the list. */
static int open_owner(struct opening *o, uint32_t *index)
{
	struct perf_events *events = o->events;
	struct perf_ring_owner *ring = calloc(1, sizeof(*ring));
	int fd;

	if (!ring || !vec_reserve(&events->rings, 1)) {
		free(ring);
		return -ENOMEM;
	}
	fd = open_with_ring(o, ring);
	if (fd < 0) {
		free(ring);
		return fd;
	}
	*index = events->rings.len;
	events->rings.data[events->rings.len++] = ring;
	events->anchors_missing = true;
	return fd;
}

static int open_redirected(struct opening *o, struct perf_ring_owner *ring)
{
	struct perf_events *events = o->events;
	int fd, r;

	o->mapping_failed = false;
	o->request.ring_bytes = ring->stream.ring.size;
	fd = perf_open_one(&o->request, &events->how[o->request.kind], &o->attr);
	if (fd < 0)
		return fd;
	r = perf_sys->ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->owner);
	if (r < 0) {
		perf_sys->close(fd);
		return r;
	}
	return fd;
}

/* Opens one thread's event of one kind on one CPU. -errno on failure. */
static int open_member(struct opening *o, uint32_t cpu, enum perf_event_kind kind)
{
	struct perf_events *events = o->events;
	struct perf_ring_owner *ring;
	struct perf_member member = { .pid = o->pid, .tid = o->request.tid };
	uint32_t index = 0;

	if (!vec_reserve(&events->members, 1))
		return -ENOMEM;
	o->request.cpu = cpu;
	o->request.kind = kind;
	ring = find_ring(events, cpu, kind, &index);
	member.owner = !ring;
	member.fd = ring ? open_redirected(o, ring) : open_owner(o, &index);
	if (member.fd < 0)
		return member.fd;
	member.ring = index;
	member.inherits = o->attr.inherit;
	member.on_exec = o->attr.enable_on_exec;
	events->wait_for_exec |= member.on_exec;
	events->members.data[events->members.len++] = member;
	return 0;
}

/* ---- threads ---- */

/* A CPU that went offline between the listing and now is no reason to fail. */
static bool cpu_is_gone(const struct opening *o, int r)
{
	return r == -ENODEV && o->attr.type == PERF_TYPE_SOFTWARE && !o->mapping_failed;
}

/* All events of one thread; what it opened stays on failure. -errno. */
static int open_everywhere(struct opening *o, const uint32_t *cpus, size_t cpu_count)
{
	int kinds = o->events->options.off_cpu ? PERF_KINDS : 1, r = 0;

	for (size_t i = 0; i < cpu_count && r == 0; i++)
		for (int kind = 0; kind < kinds && r == 0; kind++) {
			r = open_member(o, cpus[i], kind);
			if (r < 0 && cpu_is_gone(o, r))
				r = 0;
		}
	return r;
}

static uint64_t largest_ring_since(const struct perf_events *events, size_t from)
{
	uint64_t largest = 0;

	for (size_t i = from; i < events->rings.len; i++)
		largest = MAX(largest, events->rings.data[i]->stream.ring.size);
	return largest;
}

/*
 * As open_everywhere(), but all or nothing. When a CPU has no room for even the smallest ring,
 * because those before it took all of the locked memory, everything is opened again with rings of
 * half the size.
 */
static int open_thread(struct opening *o, const uint32_t *cpus, size_t cpu_count)
{
	struct perf_events *events = o->events;
	size_t members = events->members.len, rings = events->rings.len;

	for (;;) {
		int r = open_everywhere(o, cpus, cpu_count);
		uint64_t largest;

		if (r == 0)
			return 0;
		largest = largest_ring_since(events, rings);
		perf_members_truncate(events, members, rings);
		if (!o->mapping_failed || !means_too_big(r) || largest <= events->minimum)
			return r;
		o->cap = largest / 2;
	}
}

/* ---- rate ---- */

/* The kernel's limit, read once per call of perf_events_open(). */
static int check_rate(struct perf_events *events, bool clamp, uint32_t *frequency,
		      struct spulse_error **err)
{
	int64_t limit;

	*frequency = events->options.frequency;
	if (perf_sys->read_number(rate_path, &limit) < 0 || limit <= 0)
		return 0;
	if (*frequency <= limit)
		return 0;
	if (!clamp)
		return err_frequency(err, *frequency, limit);
	*frequency = limit;
	return 0;
}

/* ---- the room's calls ---- */

static int new_epoll(struct perf_events *events, struct spulse_error **err)
{
	events->epoll = epoll_create1(EPOLL_CLOEXEC);
	return events->epoll < 0 ? err_io(err, errno, NULL, "cannot make an epoll set") : 0;
}

static int copy_cpus(struct perf_events *events, const struct perf_options *options,
		     struct spulse_error **err)
{
	if (options->cpu_count == 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "no CPU to record on");
	if (!vec_reserve(&events->cpus, options->cpu_count))
		return err_no_memory(err);
	memcpy(events->cpus.data, options->cpus, options->cpu_count * sizeof(uint32_t));
	events->cpus.len = options->cpu_count;
	events->options.cpus = NULL;
	return 0;
}

static int check_options(const struct perf_options *options, struct spulse_error **err)
{
	if (options->stack_size > PERF_STACK_MAX)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a user stack of %u bytes is above the kernel's limit of %u",
			       options->stack_size, PERF_STACK_MAX);
	if (options->frequency == 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "a sample rate of 0 Hz");
	return 0;
}

int perf_events_new(const struct perf_options *options, struct perf_events **events_out,
		    struct spulse_error **err)
{
	struct perf_events *events;
	int r = check_options(options, err);

	if (r < 0)
		return r;
	events = calloc(1, sizeof(*events));
	if (!events)
		return err_no_memory(err);
	events->epoll = -1;
	events->options = *options;
	events->options.stack_size = (options->stack_size + 7) & ~7u;
	events->page = sysconf(_SC_PAGESIZE);
	events->source.ops = &perf_live_ops;
	events->source.arch = PERF_ARCH_HOST;
	for (int kind = 0; kind < PERF_KINDS; kind++)
		perf_how_init(&events->how[kind], options, kind);
	r = perf_ring_size(events->options.stack_size, options->ring_stacks, events->page,
			   options->cpu_count * (options->off_cpu ? PERF_KINDS : 1),
			   &events->minimum, &events->wanted, err);
	if (r == 0)
		r = copy_cpus(events, options, err);
	if (r == 0)
		r = new_epoll(events, err);
	if (r < 0)
		perf_events_free(events);
	else
		*events_out = events;
	return r;
}

void perf_events_free(struct perf_events *events)
{
	if (!events)
		return;
	perf_members_truncate(events, 0, 0);
	if (events->epoll >= 0)
		close(events->epoll);
	vec_free(&events->cpus);
	vec_free(&events->rings);
	vec_free(&events->members);
	vec_free(&events->old_losses);
	free(events);
}

struct perf_source *perf_events_source(struct perf_events *events)
{
	return &events->source;
}

static bool is_gone_thread(const struct opening *o, int r)
{
	/* EACCES: a thread other than the leader that is ending already has no credentials to
	 * compare with. */
	return r == -ESRCH || (r == -EACCES && o->request.tid != o->pid && o->pid != -1);
}

static int open_threads(struct opening *o, const pid_t *tids, size_t count,
			const uint32_t *cpus, size_t cpu_count, struct perf_opened *opened,
			struct spulse_error **err)
{
	size_t gone_errno_threads = 0;
	int r, first_denied = 0;

	for (size_t i = 0; i < count; i++) {
		o->request.tid = tids[i];
		o->cap = o->events->wanted;
		r = open_thread(o, cpus, cpu_count);
		if (r == 0) {
			opened->threads++;
			opened->inherits |= vec_last(&o->events->members).inherits;
		} else if (is_gone_thread(o, r)) {
			gone_errno_threads++;
			if (r == -EACCES && !first_denied)
				first_denied = r;
		} else {
			return fail(o, -r, err);
		}
	}
	if (opened->threads)
		return 0;
	return first_denied ? fail(o, -first_denied, err) : fail(o, ESRCH, err);
}

int perf_events_open(struct perf_events *events, pid_t pid, const pid_t *tids, size_t count,
		     bool enable_on_exec, bool clamp, struct perf_opened *opened,
		     struct spulse_error **err)
{
	static const pid_t everyone = -1;
	size_t members = events->members.len, rings = events->rings.len;
	struct perf_how how[PERF_KINDS];
	struct perf_opened result = { 0 };
	struct opening o = {
		.events = events,
		.pid = pid,
		.request = { .options = &events->options, .on_exec = enable_on_exec },
	};
	int r = check_rate(events, clamp, &o.request.frequency, err);

	if (r < 0)
		return r;
	memcpy(how, events->how, sizeof(how));
	r = open_threads(&o, pid == -1 ? &everyone : tids, pid == -1 ? 1 : count,
			 events->cpus.data, events->cpus.len, &result, err);
	if (r == 0)
		r = perf_anchors_place(events, err);
	if (r < 0) {
		perf_members_truncate(events, members, rings);
		memcpy(events->how, how, sizeof(how));
		return r;
	}
	*opened = result;
	return 0;
}

static bool has_cpu(const struct perf_events *events, uint32_t cpu)
{
	for (size_t i = 0; i < events->cpus.len; i++)
		if (events->cpus.data[i] == cpu)
			return true;
	return false;
}

/* Opens on one new CPU what is open on the others; false when that failed. */
static bool cover_cpu(struct perf_events *events, uint32_t cpu)
{
	size_t members = events->members.len, rings = events->rings.len;
	uint32_t first = events->rings.len ? events->rings.data[0]->cpu : cpu;
	struct opening o = {
		.events = events,
		.request = { .options = &events->options },
		.cap = events->wanted,
	};

	if (check_rate(events, true, &o.request.frequency, NULL) < 0)
		return false;
	for (size_t i = 0; i < members; i++) {
		struct perf_member *m = &events->members.data[i];
		struct perf_ring_owner *ring = events->rings.data[m->ring];
		int r;

		if (ring->cpu != first || ring->kind != PERF_KIND_SAMPLING || m->hung_up)
			continue;
		o.pid = m->pid;
		o.request.tid = m->tid;
		o.request.on_exec = m->on_exec;
		o.cap = events->wanted;
		r = open_thread(&o, &cpu, 1);
		if (r < 0 && !is_gone_thread(&o, r)) {
			perf_members_truncate(events, members, rings);
			return false;
		}
	}
	return events->members.len > members;
}

size_t perf_events_cover_cpus(struct perf_events *events, const uint32_t *cpus, size_t count)
{
	bool added = false;
	size_t uncovered = 0;

	for (size_t i = 0; i < count; i++) {
		if (has_cpu(events, cpus[i]))
			continue;
		if (vec_reserve(&events->cpus, 1) && cover_cpu(events, cpus[i])) {
			events->cpus.data[events->cpus.len++] = cpus[i];
			added = true;
		} else {
			uncovered++;
		}
	}
	if (added) {
		perf_anchors_place(events, NULL);
		if (events->running)
			perf_events_enable(events, NULL);
	}
	return uncovered;
}

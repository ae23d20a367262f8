/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Ladders of one perf_event_open, from the outside in: inheritance by threads only, hardware or
 * software event, guest, kernel frames, descriptor limit. Only a success is remembered; errors
 * that a rung does not name end the climb.
 */
#include <errno.h>

#include "live.h"

void perf_how_init(struct perf_how *how, const struct perf_options *options,
		   enum perf_event_kind kind)
{
	*how = (struct perf_how){
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.kernel = options->include_kernel,
		.inherit = true,
	};
	if (kind == PERF_KIND_SWITCH || options->event == SPULSE_EVENT_CPU_CLOCK) {
		how->type = PERF_TYPE_SOFTWARE;
		how->config = PERF_COUNT_SW_CPU_CLOCK;
	}
}

/* The soft limit up to the hard one; false when it is there already. */
static bool raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (perf_sys->get_limit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return perf_sys->set_limit(RLIMIT_NOFILE, &limit) == 0;
}

static int try_files(const struct perf_open_request *q, struct perf_how *how,
		     struct perf_event_attr *attr)
{
	int fd;

	perf_attr_build(attr, q, how);
	fd = perf_sys->open(attr, q->tid, q->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd == -EMFILE && raise_descriptor_limit())
		fd = perf_sys->open(attr, q->tid, q->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd;
}

static int try_kernel(const struct perf_open_request *q, struct perf_how *how,
		      struct perf_event_attr *attr)
{
	struct perf_how user = *how;
	int fd = try_files(q, how, attr);

	if ((fd == -EACCES || fd == -EPERM) && how->kernel && q->kind == PERF_KIND_SAMPLING) {
		user.kernel = false;
		fd = try_files(q, &user, attr);
		if (fd >= 0)
			*how = user;
	}
	return fd;
}

static int try_guest(const struct perf_open_request *q, struct perf_how *how,
		     struct perf_event_attr *attr)
{
	struct perf_how host = *how;
	int fd = try_kernel(q, how, attr);

	if (fd == -EOPNOTSUPP && !how->exclude_guest) {
		host.exclude_guest = true;
		fd = try_kernel(q, &host, attr);
		if (fd >= 0)
			*how = host;
	}
	return fd;
}

static bool means_no_such_event(int r)
{
	return r == -ENOENT || r == -ENODEV || r == -ENXIO || r == -EOPNOTSUPP;
}

static int try_events(const struct perf_open_request *q, struct perf_how *how,
		      struct perf_event_attr *attr)
{
	struct perf_how software = *how;
	int fd = try_guest(q, how, attr);

	if (means_no_such_event(fd) && how->type == PERF_TYPE_HARDWARE &&
	    q->options->event == SPULSE_EVENT_AUTO) {
		software.type = PERF_TYPE_SOFTWARE;
		software.config = PERF_COUNT_SW_CPU_CLOCK;
		fd = try_guest(q, &software, attr);
		if (fd >= 0)
			*how = software;
	}
	return fd;
}

int perf_open_one(const struct perf_open_request *q, struct perf_how *how,
		  struct perf_event_attr *attr)
{
	struct perf_how alone = *how;
	int fd = try_events(q, how, attr);

	/* Inheriting to children is what the caller asked for: it is never dropped silently. */
	if ((fd == -EINVAL || fd == -ENOSYS || fd == -EOPNOTSUPP) && how->inherit &&
	    !q->options->inherit_children && q->tid != -1) {
		alone.inherit = false;
		fd = try_events(q, &alone, attr);
		if (fd >= 0)
			*how = alone;
	}
	return fd;
}

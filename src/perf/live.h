/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_PERF_LIVE_H
#define SPULSE_PERF_LIVE_H

#include <sys/resource.h>

#include "perf.h"

/* Shared inside the room only. */

/* ---- system calls, so that tests can put their own in ---- */

struct perf_sys {
	/* Each returns a value or -errno. */
	int (*open)(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		    unsigned long flags);
	int (*map)(int fd, size_t bytes, void **area_out);
	void (*unmap)(void *area, size_t bytes);
	int (*ioctl)(int fd, unsigned long request, unsigned long argument);
	ssize_t (*read)(int fd, void *buf, size_t len);
	void (*close)(int fd);
	int (*get_limit)(int resource, struct rlimit *limit);
	int (*set_limit)(int resource, const struct rlimit *limit);
	/* Whether this process has a capability. */
	bool (*capable)(int capability);
	/* Effective user of a process, and the owner of its files in /proc (another one when it is
	 * not dumpable). */
	int (*owners)(pid_t pid, uid_t *user, uid_t *folder);
	/* Whether a file can be opened for reading. */
	int (*open_file)(const char *path);
	/* First number of a file. */
	int (*read_number)(const char *path, int64_t *value);
};

extern const struct perf_sys perf_real_sys;
/* What the room uses; a test may replace it. */
extern const struct perf_sys *perf_sys;

/* ---- limits ---- */

#define PERF_RECORD_MAX 65535u
#define PERF_RING_CEILING (256ull << 20)
#define PERF_RING_BUDGET (1ull << 30)
#define PERF_STACK_MAX 65528u
#define PERF_DEFAULT_RING_STACKS 32u

/* Registers of a user sample: all that unwinding can use. */
#define PERF_REGS_X86_64 0xff01ffull
#define PERF_REGS_AARCH64 0x1ffffffffull
#if defined(__aarch64__)
#define PERF_REGS_HOST PERF_REGS_AARCH64
#define PERF_ARCH_HOST PERF_ARCH_AARCH64
#else
#define PERF_REGS_HOST PERF_REGS_X86_64
#define PERF_ARCH_HOST PERF_ARCH_X86_64
#endif

/* ---- attributes and opening (attr.c, open.c) ---- */

/* What one event is for; the value is the event_id of its samples. */
enum perf_event_kind {
	PERF_KIND_SAMPLING = PERF_EVENT_SAMPLING,
	PERF_KIND_SWITCH = PERF_EVENT_CONTEXT_SWITCH,
	PERF_KINDS,
};

/* What worked: each later open starts from it, so that a refused way is tried once. */
struct perf_how {
	uint32_t type;
	uint64_t config;
	bool kernel;		 /* kernel frames */
	bool inherit;		 /* anything at all */
	bool exclude_guest;
};

struct perf_open_request {
	const struct perf_options *options;
	enum perf_event_kind kind;
	uint32_t frequency;
	bool on_exec;
	pid_t tid; /* -1: every process */
	uint32_t cpu;
	uint64_t ring_bytes;
};

void perf_attr_build(struct perf_event_attr *attr, const struct perf_open_request *request,
		     const struct perf_how *how);
/* What the records of such an event look like. */
void perf_attr_layout(const struct perf_event_attr *attr, enum perf_event_kind kind,
		      struct perf_layout *layout);
/* How a first open is tried. */
void perf_how_init(struct perf_how *how, const struct perf_options *options,
		   enum perf_event_kind kind);

/*
 * Opens one event, going down the ladders; *how becomes what worked. Returns the descriptor or
 * -errno, with *attr as it was last tried.
 */
int perf_open_one(const struct perf_open_request *request, struct perf_how *how,
		  struct perf_event_attr *attr);

/* ---- explaining failures (hint.c) ---- */

struct perf_failure {
	bool mapping; /* mmap of a ring, else perf_event_open */
	int errnum;
	pid_t pid, tid; /* tid -1: every process */
	uint32_t cpu;
	enum perf_event_kind kind;
	bool software;	    /* which event was refused last */
	uint64_t bytes;	    /* of the ring */
	size_t descriptors; /* open by then */
};
int perf_report_failure(const struct perf_failure *failure, struct spulse_error **err);

/* ---- one ring (ring.c) ---- */

struct perf_ring {
	struct perf_event_mmap_page *page;
	size_t map_bytes;
	uint8_t *data;
	uint64_t size;	    /* of the data, a power of two */
	uint64_t position;  /* what was consumed */
	uint64_t published; /* what the kernel knows of that */
	uint64_t head;	    /* of the snapshot */
	uint64_t old_head;  /* of the snapshot before it */
	uint8_t *bounce;    /* a record that wraps, allocated when needed */
};

/* Takes over a mapping of map_bytes; false when its description makes no sense. */
bool perf_ring_init(struct perf_ring *ring, void *area, size_t map_bytes, size_t page_size);
void perf_ring_release(struct perf_ring *ring);
/* Looks at the head. 0 or an error of what the kernel shows. */
int perf_ring_snapshot(struct perf_ring *ring, struct spulse_error **err);
/* The oldest record of the snapshot: 1, 0 none, or an error. */
int perf_ring_front(struct perf_ring *ring, const void **record, size_t *size,
		    struct spulse_error **err);
/* Consumes `size` bytes; the kernel is told now and then, or at once. */
void perf_ring_advance(struct perf_ring *ring, size_t size);
void perf_ring_publish(struct perf_ring *ring);

/* ---- a stream: a ring and what was copied out of it (stream.c) ---- */

struct perf_copied {
	struct perf_event event; /* its pointers are into the record, as decoded at `base` */
	size_t offset, size;	 /* in bytes */
	const uint8_t *base;
};

struct perf_stream {
	struct perf_ring ring;
	struct perf_layout layout;
	struct perf_event front;
	size_t front_size; /* in the ring; 0: there is no decoded front */
	bool front_copied;
	VEC(struct perf_copied) copied;
	size_t copied_next; /* entries before it were consumed */
	VEC(uint8_t) bytes;
	bool seen; /* a record since this was last cleared */
};

int perf_stream_snapshot(struct perf_stream *stream, struct spulse_error **err);
int perf_stream_front(struct perf_stream *stream, const struct perf_event **event,
		      struct spulse_error **err);
/* Whether the front is older than the latest snapshot. */
bool perf_stream_settled(const struct perf_stream *stream);
void perf_stream_advance(struct perf_stream *stream);
int perf_stream_detach(struct perf_stream *stream, struct spulse_error **err);
void perf_stream_release(struct perf_stream *stream);

/* ---- the set of events (events.c, members.c, anchors.c) ---- */

struct perf_ring_owner {
	struct perf_stream stream;
	uint32_t cpu;
	enum perf_event_kind kind;
	int owner;  /* descriptor that owns the mapping */
	int anchor; /* descriptor in the epoll set; -1: none is left */
};

/* One open event. */
struct perf_member {
	int fd;
	pid_t pid, tid; /* -1: every process */
	uint32_t ring;	/* index of its ring */
	bool owner, inherits, enabled;
	bool on_exec;	/* the kernel enables it */
	bool hung_up;	/* its task is gone: no anchor */
	bool watched;	/* to be closed once its inheriting descendants are gone */
	uint64_t lost;	/* what was reported of it */
};

/* A loss of a member that was closed before anyone asked. */
struct perf_old_loss {
	pid_t pid, tid;
	uint64_t lost;
};

struct perf_events {
	struct perf_source source; /* first: the source is this object */
	struct perf_options options;
	VEC(uint32_t) cpus;
	struct perf_how how[PERF_KINDS];
	bool had_kernel_refused;
	uint64_t minimum, wanted; /* bytes of a ring */
	size_t page;
	int64_t limit; /* the kernel's sample rate, -1 unknown; read once per open call */
	int epoll;
	VEC(struct perf_ring_owner *) rings;
	VEC(struct perf_member) members;
	VEC(struct perf_old_loss) old_losses;
	size_t watched;
	int64_t watched_at; /* monotonic ns of the last look */
	bool anchors_missing, data_seen;
	bool running;	   /* enabled and not paused */
	bool wait_for_exec; /* some member is left to an execve */
};

extern const struct perf_source_ops perf_live_ops;

/* Closes watched members whose task and inheriting descendants are all gone. */
void perf_members_reap(struct perf_events *events);
/* Closes the members from `from` on and the rings from `ring_from` on. */
void perf_members_truncate(struct perf_events *events, size_t from, size_t ring_from);
/* Reads a member's counter into the pending losses; 0 or an error. */
int perf_member_read_loss(struct perf_events *events, struct perf_member *member,
			  struct spulse_error **err);
/* Closes one that owns no ring; the last member takes its place. */
void perf_member_close(struct perf_events *events, size_t index);
/* A process executed a program: the kernel has enabled what waited for it. */
void perf_members_executed(struct perf_events *events, pid_t pid);
/* Gives each ring without one a descriptor to wait on. */
int perf_anchors_place(struct perf_events *events, struct spulse_error **err);
/* Forgets `fd` as an anchor. */
void perf_anchor_lost(struct perf_events *events, int fd);

/* Bytes of a record, from its start, that anything points at. */
size_t perf_event_used_bytes(const struct perf_event *event, const uint8_t *record, size_t size);
/* Points an event that was decoded at `from` at the same record at `to`. */
void perf_event_move(struct perf_event *event, const uint8_t *from, const uint8_t *to);

#endif

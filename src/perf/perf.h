/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * perf: perf_event: attributes and fallback ladders, per-CPU rings, record decoding, perf.data.
 * Owns event descriptors and ring mappings. Never decides what a record means for a profile,
 * never orders records of different rings: it offers each ring as one stream of a source.
 */
#ifndef SPULSE_PERF_H
#define SPULSE_PERF_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/base.h"

#include <stackpulse/record.h>

/* ---- decoded records ---- */

enum perf_arch { PERF_ARCH_X86_64, PERF_ARCH_AARCH64 };

/* Most registers that a sample carries. */
enum { PERF_REGS_MAX = 33 };

struct perf_sample_data {
	uint64_t ip;
	const uint64_t *callchain; /* with context markers; NULL when n is 0 */
	uint64_t callchain_len;
	uint64_t regs_abi;	/* PERF_SAMPLE_REGS_ABI_* */
	uint64_t regs_mask;	/* which perf registers follow, ascending bits */
	const uint64_t *regs;	/* NULL: none */
	bool has_stack;
	const uint8_t *stack;	/* from sp upwards */
	uint64_t stack_len;	/* bytes really captured */
	uint64_t stack_requested;
	uint64_t period;	/* 0: unknown */
	uint64_t event_id;	/* PERF_EVENT_*: what the sample stands for */
};

struct perf_mmap_data {
	uint64_t start, len, offset;
	uint64_t inode, inode_generation;
	uint32_t dev_major, dev_minor;
	uint32_t prot;
	bool exec;		/* executable, or an old MMAP without the data flag */
	const char *path;	/* NUL-terminated inside the record */
	size_t path_len;
	const uint8_t *build_id; /* or NULL */
	size_t build_id_len;
};

struct perf_event {
	uint32_t type;	/* PERF_RECORD_* */
	uint16_t misc;
	bool has_ids, has_time;
	int32_t pid, tid; /* as the record says; may be -1 or 0 */
	uint64_t time;
	uint32_t cpu;	/* UINT32_MAX unknown */
	union {
		struct perf_sample_data sample;
		struct perf_mmap_data mmap;	/* MMAP and MMAP2 */
		struct { int32_t ppid, ptid; } task;	/* FORK and EXIT */
		struct { const char *name; size_t len; bool exec; } comm;
		struct { uint64_t id, count; } lost;	/* LOST and LOST_SAMPLES */
		struct { bool out, preempt; } context_switch; /* SWITCH and SWITCH_CPU_WIDE */
	};
};

/* Which fields the records of an event have. */
struct perf_layout {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t regs_user_mask, regs_intr_mask;
	bool sample_id_all;
	uint64_t event_id; /* goes to the samples */
};

/* Values of perf_sample_data.event_id. */
enum { PERF_EVENT_SAMPLING = 0, PERF_EVENT_CONTEXT_SWITCH = 1, PERF_EVENT_OTHER = 2 };

/*
 * Decodes one record of `size` bytes (its header included). 0, or -EBADMSG when it breaks its
 * layout. Pointers in *event point into the record.
 */
int perf_record_decode(const struct perf_layout *layout, const void *record, size_t size,
		       struct perf_event *event);

/* ---- source: one or more streams, each in itself in the order of its making ---- */

struct perf_source;

struct perf_source_ops {
	size_t (*streams)(struct perf_source *source);
	/* Looks once at what a stream has; front() and advance() stay within that until the next
	 * snapshot. */
	int (*snapshot)(struct perf_source *source, size_t stream, struct spulse_error **err);
	/*
	 * The stream's oldest record: 1, or 0 when there is none in the snapshot. Repeatable. The
	 * event lives until advance() or detach() of the stream.
	 */
	int (*front)(struct perf_source *source, size_t stream, const struct perf_event **event,
		     struct spulse_error **err);
	/*
	 * Whether the front was there at the snapshot before the latest already, so that every
	 * other stream was looked at again after it. NULL: always.
	 */
	bool (*settled)(struct perf_source *source, size_t stream);
	/* Gives the front's space back. */
	void (*advance)(struct perf_source *source, size_t stream);
	/*
	 * End of a pass: whatever is still unread of the snapshot is copied out (used bytes only)
	 * so that no ring space is held; it stays readable by front().
	 */
	int (*detach)(struct perf_source *source, struct spulse_error **err);
	void (*free)(struct perf_source *source);
};

struct perf_source {
	const struct perf_source_ops *ops;
	enum perf_arch arch;
};

/* ---- live events ---- */

struct perf_options {
	uint32_t frequency; /* resolved, not 0 */
	uint32_t stack_size; /* rounded; 0 = no user stack */
	uint32_t ring_stacks;
	bool include_kernel, inherit_children, off_cpu;
	enum spulse_sampling_event event;
	const uint32_t *cpus; /* online, ascending; copied by perf_events_new() */
	size_t cpu_count;
};

/* Everything that a recorder's events share: CPUs, rings, what worked before. A perf_source. */
struct perf_events;
int perf_events_new(const struct perf_options *options, struct perf_events **events_out,
		    struct spulse_error **err);
void perf_events_free(struct perf_events *events);
struct perf_source *perf_events_source(struct perf_events *events);

/*
 * One transaction of opens, of exactly the threads `tids` (the leader, if it is there, goes
 * first): on failure what it opened is closed again and nothing changed.
 * Threads that are gone are skipped; TARGET_GONE when all are. pid -1 (no tids) opens every
 * process of the machine. A frequency above the kernel's limit is FREQUENCY_LIMIT the first
 * time; later opens are clamped to the limit when `clamp` is set. Nothing is enabled yet.
 */
struct perf_opened {
	bool inherits; /* whether threads made by it are covered by the kernel */
	size_t threads; /* opened; the rest is gone */
};
int perf_events_open(struct perf_events *events, pid_t pid, const pid_t *tids, size_t count,
		     bool enable_on_exec, bool clamp, struct perf_opened *opened,
		     struct spulse_error **err);
/* Enables what is not enabled yet; events that wait for an execve are left to it. */
int perf_events_enable(struct perf_events *events, struct spulse_error **err);
int perf_events_disable(struct perf_events *events, struct spulse_error **err);
/* Closes what is not needed for other threads: a thread's events, or all of a process (tid 0). */
void perf_events_close(struct perf_events *events, pid_t pid, pid_t tid);
/* Waits until a ring has data: 1, 0 on time-out or EINTR. */
int perf_events_wait(struct perf_events *events, int64_t timeout_ns, struct spulse_error **err);
int perf_events_fd(const struct perf_events *events);
/* Losses since the last call, by target thread (pid, tid); overflow or going back is an error. */
typedef void (*perf_loss_fn)(void *data, pid_t pid, pid_t tid, uint64_t lost);
int perf_events_read_losses(struct perf_events *events, perf_loss_fn fn, void *data,
			    struct spulse_error **err);
bool perf_events_kernel_enabled(const struct perf_events *events);
enum spulse_sampling_event perf_events_event(const struct perf_events *events);
void perf_events_ring_range(const struct perf_events *events, uint64_t *min, uint64_t *max);
/* Opens all tracked threads on CPUs (online ones, ascending) that came after the events were
 * opened, and enables them unless recording is paused; returns how many CPUs stay uncovered. */
size_t perf_events_cover_cpus(struct perf_events *events, const uint32_t *cpus, size_t count);
/* Descriptors that are open now. */
size_t perf_events_descriptors(const struct perf_events *events);
/* Undoes one perf_events_open() whose caller failed afterwards: closes all events of a process
 * that were opened for it, rings that nobody else uses included. */
void perf_events_rollback(struct perf_events *events, pid_t pid);

/* Pure ring sizing, for tests: bytes of one ring's data area; see the public option's text. */
int perf_ring_size(uint64_t stack_size, uint32_t stacks, size_t page, size_t cpus,
		   uint64_t *minimum_out, uint64_t *wanted_out, struct spulse_error **err);

/* ---- perf.data ---- */

/* A file's build ID as the recording found it. */
struct perf_file_build_id {
	const char *path;
	uint8_t id[20];
	uint8_t len;
	bool kernel;
};

/*
 * What a perf.data file says of its recording; strings and arrays live as long as the source, and
 * are NULL or 0 where it says nothing. A piped file tells its build IDs at its end.
 */
struct perf_file_info {
	const char *hostname, *kernel, *cmdline;
	uint32_t cpus_online;
	uint64_t frequency; /* of the event whose samples are the profile; 0: it has a period */
	bool callchain_only; /* no user stacks: the call chains are all there is */
	uint32_t chain_limit; /* most addresses of a call chain, markers of contexts aside */
	uint64_t first_ns, last_ns;
	bool has_clock; /* when wall and clock were the same moment */
	uint64_t clock_wall_ns, clock_ns;
	const struct perf_file_build_id *build_ids;
	size_t build_id_count;
	bool truncated;	  /* ends inside of a record, or was not closed properly */
	uint64_t skipped; /* records of events that the file does not describe */
};

/*
 * Opens a perf.data file, or the output of "perf record -o -"; "-" is the standard input. The
 * source has one stream, already in the order of time, and every snapshot() shows more of it
 * until the file's end: two in a row without a front() mean the end. Mappings carry the build IDs
 * that the header has. Samples of a second event have PERF_EVENT_OTHER as their event_id.
 * Errors name the path and the offset.
 */
int perf_file_open(const char *path, struct perf_source **source_out,
		   const struct perf_file_info **info_out, struct spulse_error **err);

#endif

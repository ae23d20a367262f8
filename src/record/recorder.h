/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_RECORD_RECORDER_H
#define SPULSE_RECORD_RECORDER_H

#include "../base/base.h"
#include "../image/image.h"
#include "../perf/perf.h"
#include "../proc/proc.h"
#include "../spool/spool.h"
#include "../unwind/unwind.h"

#include "merge.h"
#include "record.h"

/* ---- modules (modules.c) ---- */

/* An executable mapping as maps or a record tells of it. Path bytes are borrowed. */
struct rec_mapping {
	uint64_t start, end, offset, inode, generation;
	uint32_t dev_major, dev_minor;
	const char *path;
	size_t path_len;
	const uint8_t *build_id; /* while it is being registered */
	size_t build_id_len;	 /* 0: unknown */
};

/* One that is active and in the spool. */
struct rec_module {
	struct rec_mapping map; /* path interned */
	uint32_t id;
	uint8_t opens_left;	/* of its image */
	bool kernel;
	struct image *file;	 /* or NULL */
	struct unw_image *image; /* or NULL */
	uint64_t bias;
};

/* Of a process: ascending and disjoint; of the kernel: by age. */
struct rec_modules {
	struct rec_module *list;
	struct places places;
};

/* ---- processes (process.c) ---- */

enum rec_python { REC_PYTHON_UNKNOWN, REC_PYTHON_NO, REC_PYTHON_YES };

struct rec_process {
	pid_t pid;
	uint32_t index;		    /* in the list */
	struct proc_handle *handle; /* NULL: it was gone when it was first heard of */
	bool exited;		    /* seen dead */
	bool doomed;		    /* seen dead before this pass: retired after it */
	bool opened;		    /* has events of its own */
	bool attached;		    /* by a call, not by a fork */
	pid_t counted_by;	    /* whose events count its losses; 0 unknown */
	bool has_exe;
	uint64_t exe_device, exe_inode;
	uint64_t exe_looked;	    /* time of the name that it was last compared at */
	struct rec_modules modules;
	struct unw_space *space;
	bool python;		    /* the spool says so */
	enum rec_python perf_support;
	uint64_t exit_time;	    /* of the last EXIT record */
	struct u64map tried_pages;  /* looked up in maps since the last change */
	bool warned;		    /* of unreadable maps */
	bool named;		    /* comm was written */
	bool renamed;		    /* and is another one since */
	uint32_t comm;		    /* that one, interned */
	uint32_t comm_written;	    /* the last one of them in the spool, or UINT32_MAX */
	bool unwanted;		    /* its name is not one of those that are asked for */
	uint32_t threads;
};

struct rec_thread {
	pid_t tid, pid;
	bool inherits;
	bool opened;   /* has events of its own */
	bool sampled;  /* its name was asked for */
	uint32_t name; /* interned, UINT32_MAX unknown */
	uint32_t written; /* the name that the spool has, like that */
};

/* ---- lifecycle (lifecycle.c) ---- */

enum rec_action_kind { REC_THREAD_FORK, REC_PROCESS_FORK, REC_THREAD_EXIT };

/* What an event asks for that must wait until the pass is over. */
struct rec_action {
	enum rec_action_kind kind;
	pid_t pid, tid;
};

/* ---- losses (losses.c) ---- */

struct rec_loss {
	struct spulse_loss loss;
	bool counted; /* by loss counters of its own */
};

/* A record that tells of a loss. */
struct rec_loss_note {
	pid_t pid, tid, counted_by;
	uint64_t count;
};

/* ---- the recorder ---- */

/* A frame of a kernel call chain is at most one entry of a record of 64 KiB. */
enum { REC_KERNEL_FRAMES = 8192 };

struct rec_off_cpu; /* offcpu.c */

struct spulse_recorder {
	struct spulse_recorder_options options;
	char *comm_pattern; /* NULL: every process is asked for */
	struct perf_events *events; /* NULL: another source */
	struct perf_source *source;
	struct merge merge;
	struct spulse_spool_writer *writer;
	struct image_cache *images;
	struct unwinder *unwinder;
	struct interner strings;
	VEC(struct unw_image *) rules; /* kept for other processes, by index in rule_of_image */
	struct u64map rule_of_image;
	size_t rules_next;

	VEC(struct rec_process *) processes;
	VEC(struct proc_handle *) handles; /* scratch for asking them all at once */
	VEC(bool) handles_exited;
	struct u64map process_of_pid;
	struct rec_process *last;    /* of the last sample */
	struct rec_process *walking; /* whose stack is walked */
	struct rec_modules kernel_modules;
	VEC(struct rec_thread) threads;
	struct u64map thread_of_tid;
	VEC(struct rec_action) actions;
	pid_t root;

	uint32_t *frames; /* of the sample in work */
	uint32_t marker;  /* interned truncation marker */
	uint64_t newest;  /* time of the last event */
	struct rec_off_cpu *off_cpu;

	int64_t losses_read_ns, sweep_ns, reconcile_ns, publish_ns, cpus_ns;
	bool sweep_pending, paused, finished;
	bool offline;	  /* the events are of another time: /proc says nothing of them */
	bool inherits;	  /* whether the events last opened cover new threads */
	bool imported;	  /* from a file, whose records are all that tells of losses */
	uint64_t lost_records, lost_samples; /* told by such records */
	uint32_t chain_limit; /* addresses of a call chain that is cut; 0: unknown */
	bool user_chains; /* user frames of call chains are kept where nothing can be walked */
	VEC(struct rec_loss) losses;
	VEC(struct rec_loss_note) loss_notes;
	VEC(struct spulse_loss) loss_list; /* what the caller got */
	struct u64map loss_of_thread;
	VEC(struct spulse_module_fallbacks) fallbacks;
	VEC(struct spulse_module_fallbacks) fallback_list; /* what the caller got */
	struct u64map fallback_of; /* by path and cause */
	uint64_t last_lost;
	struct spulse_recording_summary summary;
	struct spulse_poll_summary poll;
	struct spulse_error *terminal; /* every later call returns it */

	int fd; /* for the tail; -1 without one */
	char *path;
	bool tail_taken;
	struct spool_channel *channel;
	struct image_handover *handover; /* open images for the tail; NULL without one */
};

static inline bool rec_annotates(const struct spulse_recorder *rec)
{
	return rec->options.annotate;
}

int64_t rec_monotonic_ns(void);

/* modules.c */
int modules_map(struct spulse_recorder *rec, struct rec_process *process,
		const struct rec_mapping *mapping, struct spulse_error **err);
int modules_map_kernel(struct spulse_recorder *rec, const struct rec_mapping *mapping,
		       struct spulse_error **err);
/* Writes the parent's modules again, for the child. */
int modules_fork(struct spulse_recorder *rec, struct rec_process *parent,
		 struct rec_process *child, struct spulse_error **err);
/* Retires all modules of a process. */
int modules_retire(struct spulse_recorder *rec, struct rec_process *process,
		   struct spulse_error **err);
const struct rec_module *modules_find(const struct rec_modules *modules, uint64_t address);
const struct rec_module *modules_find_kernel(const struct rec_modules *modules, uint64_t address);
/* The number of a frame at an address; UINT32_MAX: memory ran out. */
uint32_t modules_intern(struct spulse_recorder *rec, const struct rec_module *module,
			uint64_t address, bool kernel);
void modules_release(struct rec_modules *modules);
/* images.c */
void images_attach(struct spulse_recorder *rec, struct rec_process *process,
		   struct rec_module *module);
/* Starts sharing the open images with a tail; NULL when memory ran out. */
struct spool_attachment *share_images(struct spulse_recorder *rec);
void images_release(struct spulse_recorder *rec);
/* code.c: for the unwinder; `data` is the recorder. */
bool code_read(void *data, struct unw_space *space, uint64_t address, void *buf, size_t len);
/* maps.c */
/*
 * Reads maps of this very process: 1, 0 when there is nothing to see (*gone: the process ended;
 * else it is not permitted), or an error.
 */
int maps_read(struct spulse_recorder *rec, struct rec_process *process, struct proc_maps *maps,
	      bool *gone, struct spulse_error **err);
/* Registers their executable mappings, as of the attach. */
int maps_register(struct spulse_recorder *rec, struct rec_process *process,
		  const struct proc_maps *maps, struct spulse_error **err);
/* Reads and registers, as of now. */
int maps_look(struct spulse_recorder *rec, struct rec_process *process, bool *gone,
	      struct spulse_error **err);
/* Takes the maps of a sweep over, unless they are what is known already. */
int maps_reconcile(struct spulse_recorder *rec, struct rec_process *process, bool same_image,
		   bool *gone, struct spulse_error **err);
/* Reads the maps again when `pc` lies in no module, once for each page. */
int maps_cover(struct spulse_recorder *rec, struct rec_process *process, uint64_t pc,
	       struct spulse_error **err);
/* process.c */
/* Finds, or starts to track one whose beginning was missed. NULL on failure. */
struct rec_process *process_get(struct spulse_recorder *rec, pid_t pid,
				struct spulse_error **err);
struct rec_process *process_find(const struct spulse_recorder *rec, pid_t pid);
/* Starts to track; the handle is taken over (NULL: it is gone). NULL: memory ran out. */
struct rec_process *process_add(struct spulse_recorder *rec, pid_t pid,
				struct proc_handle *handle);
void process_read_exe(struct rec_process *process);
/* Ends a process for the spool and forgets it. */
int process_retire(struct spulse_recorder *rec, struct rec_process *process, uint64_t time,
		   struct spulse_error **err);
void process_free_all(struct spulse_recorder *rec);
/* Marks the processes that ended since. */
int process_find_dead(struct spulse_recorder *rec, struct spulse_error **err);
/* Whether a process is alive now: 1 or 0. */
int process_alive(struct spulse_recorder *rec, struct rec_process *process,
		  struct spulse_error **err);
int process_clone(struct spulse_recorder *rec, pid_t ppid, pid_t pid, uint64_t time,
		  struct spulse_error **err);
int process_exec(struct spulse_recorder *rec, struct rec_process *process,
		 const struct perf_event *event, struct spulse_error **err);
/* threads.c */
struct rec_thread *threads_find(const struct spulse_recorder *rec, pid_t tid);
/* NULL: memory ran out. */
struct rec_thread *threads_add(struct spulse_recorder *rec, pid_t pid, pid_t tid, bool inherits);
void threads_remove(struct spulse_recorder *rec, pid_t tid);
void threads_remove_process(struct spulse_recorder *rec, pid_t pid, pid_t except);
bool threads_any_inherits(const struct spulse_recorder *rec, pid_t pid);
/* Opens events for threads that nothing covers. */
int threads_open(struct spulse_recorder *rec, pid_t pid, const pid_t *tids, size_t n,
		 struct spulse_error **err);
int threads_refresh(struct spulse_recorder *rec, struct rec_process *process, bool *gone,
		    struct spulse_error **err);
int threads_reconcile(struct spulse_recorder *rec, struct spulse_error **err);
/* python.c */
int python_check(struct spulse_recorder *rec, struct rec_process *process,
		 const struct rec_mapping *mapping, uint64_t time, struct spulse_error **err);
int python_set(struct spulse_recorder *rec, struct rec_process *process, bool on, uint64_t time,
	       struct spulse_error **err);
/* select.c */
/* Whether a process is asked for, by its present name (NULL: as /proc has it). */
void select_process(const struct spulse_recorder *rec, struct rec_process *process,
		    const char *comm, size_t len);
/* sample.c */
int sample_take(struct spulse_recorder *rec, const struct perf_event *event,
		struct spulse_error **err);
/* Adds a sample's frames, innermost first, to the *n that are in rec->frames. */
int sample_collect(struct spulse_recorder *rec, struct rec_process *process,
		   const struct perf_event *event, size_t *n, struct spulse_error **err);
int sample_prepare(struct spulse_recorder *rec, struct spulse_error **err);
/* offcpu.c: all do nothing unless blocked time is asked for. */
int offcpu_prepare(struct spulse_recorder *rec, struct spulse_error **err);
int offcpu_sample(struct spulse_recorder *rec, struct rec_process *process,
		  const struct perf_event *event, struct spulse_error **err);
int offcpu_switch(struct spulse_recorder *rec, const struct perf_event *event,
		  struct spulse_error **err);
/* The thread ended, though its end may not have been recorded: a wait of it does not go on. */
void offcpu_gone(struct spulse_recorder *rec, pid_t tid);
void offcpu_forget(struct spulse_recorder *rec, pid_t tid);
/* Writes the waits that are not over. */
int offcpu_finish(struct spulse_recorder *rec, struct spulse_error **err);
uint64_t offcpu_cut(const struct spulse_recorder *rec);
void offcpu_free(struct spulse_recorder *rec);
/* lifecycle.c */
int lifecycle_event(void *data, const struct perf_event *event, struct spulse_error **err);
/* Carries out what waits; may_open false: nothing new is opened. */
int lifecycle_replay(struct spulse_recorder *rec, bool may_open, struct spulse_error **err);
/* attach.c */
struct rec_attach {
	pid_t pid;
	enum spulse_attach_mode mode;
	bool clamp;	   /* the rate to the kernel's limit */
	bool first;	   /* the recorder's first target */
	enum spulse_attach_outcome outcome;
};
/* Opens, registers and enables one process; all of it or nothing. */
int attach_process(struct spulse_recorder *rec, struct rec_attach *attach,
		   int (*opened)(struct spulse_recorder *rec, void *data,
				 struct spulse_error **err),
		   void *data, struct spulse_error **err);
int attach_descendants(struct spulse_recorder *rec, pid_t pid, enum spulse_attach_mode mode,
		       struct spulse_error **err);
/* drain.c */
enum rec_drain { REC_CONSUME, REC_FLUSH, REC_FINAL };
int drain(struct spulse_recorder *rec, enum rec_drain kind, struct spulse_error **err);
int drain_publish(struct spulse_recorder *rec, struct spulse_error **err);
/* recover.c */
int recover_read_losses(struct spulse_recorder *rec, struct spulse_error **err);
bool recover_losses_due(const struct spulse_recorder *rec, enum rec_drain kind);
bool recover_due(const struct spulse_recorder *rec, enum rec_drain kind);
int recover_sweep(struct spulse_recorder *rec, bool may_open, struct spulse_error **err);
/* losses.c */
/* Adds what a loss counter says; false when memory ran out. */
bool losses_count(struct spulse_recorder *rec, pid_t pid, pid_t tid, uint64_t lost);
int losses_note(struct spulse_recorder *rec, const struct perf_event *event,
		struct spulse_error **err);
/* Gives threads without events of their own their part. */
int losses_share(struct spulse_recorder *rec, struct spulse_error **err);
void losses_free(struct spulse_recorder *rec);
/* fallbacks.c: for the unwinder; `data` is the recorder. */
void fallbacks_count(void *data, const struct unw_map *map, uint64_t address,
		     enum spulse_unwind_fallback cause);
void fallbacks_free(struct spulse_recorder *rec);
/* annotate.c: all do nothing unless names are asked for. */
int annotate_host(struct spulse_recorder *rec, struct spulse_error **err);
int annotate_process(struct spulse_recorder *rec, struct rec_process *process, const char *comm,
		     size_t comm_len, struct spulse_error **err);
/* The name that a process took since the last one that was written. */
int annotate_new_comm(struct spulse_recorder *rec, struct rec_process *process,
		      struct spulse_error **err);
/* Its command line too: of what it runs since its attach or its last execve. */
int annotate_program(struct spulse_recorder *rec, struct rec_process *process, const char *comm,
		     size_t comm_len, struct spulse_error **err);
int annotate_thread(struct spulse_recorder *rec, struct rec_thread *thread,
		    struct spulse_error **err);
int annotate_build_id(struct spulse_recorder *rec, const struct rec_module *module,
		      struct spulse_error **err);
int annotate_end(struct spulse_recorder *rec, struct spulse_error **err);
/* recorder.c: puts a recorder together; finishing is in control.c. */
int recorder_new(const struct spulse_recorder_options *options, struct spulse_recorder **rec_out,
		 struct spulse_error **err);
/* The error that every later call gives; sampling stops. */
void recorder_latch(struct spulse_recorder *rec, struct spulse_error *error);

#endif

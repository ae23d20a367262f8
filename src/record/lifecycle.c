/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What records other than samples mean. Modules and processes change at once, in the order of the
 * events; whatever opens or closes events waits until the pass over the rings is done.
 */
#include "recorder.h"

#include <errno.h>
#include <string.h>

static bool follows(const struct spulse_recorder *rec)
{
	return rec->options.follow != SPULSE_FOLLOW_NONE || rec->options.system_wide;
}

static int later(struct spulse_recorder *rec, enum rec_action_kind kind, pid_t pid, pid_t tid,
		 struct spulse_error **err)
{
	const struct rec_action action = { .kind = kind, .pid = pid, .tid = tid };

	return vec_push(&rec->actions, action) ? 0 : err_no_memory(err);
}

/* ---- mappings ---- */

static int on_mmap(struct spulse_recorder *rec, const struct perf_event *event,
		   struct spulse_error **err)
{
	const struct perf_mmap_data *data = &event->mmap;
	unsigned int mode = event->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct rec_mapping mapping = {
		.start = data->start,
		.offset = data->offset,
		.inode = data->inode,
		.generation = data->inode_generation,
		.dev_major = data->dev_major,
		.dev_minor = data->dev_minor,
		.path = data->path,
		.path_len = data->path_len,
		.build_id = data->build_id,
		.build_id_len = data->build_id_len,
	};
	struct rec_process *process;
	int r;

	if (add_overflows(data->start, data->len, &mapping.end))
		mapping.end = UINT64_MAX;
	if (mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL)
		return modules_map_kernel(rec, &mapping, err);
	if (!data->exec || event->pid <= 0)
		return 0;
	process = process_get(rec, event->pid, err);
	if (!process)
		return err && *err ? -(int)spulse_error_kind(*err) : -SPULSE_ERROR_NO_MEMORY;
	r = modules_map(rec, process, &mapping, err);
	return r < 0 ? r : python_check(rec, process, &mapping,
					event->has_time ? event->time : 0, err);
}

/* ---- forks and exits ---- */

/* A new thread has the name of the one that made it. */
static int add_covered(struct spulse_recorder *rec, pid_t pid, pid_t tid, pid_t parent,
		       struct spulse_error **err)
{
	struct rec_thread *maker = threads_find(rec, parent);
	uint32_t name = maker ? maker->name : UINT32_MAX;
	struct rec_thread *thread = threads_add(rec, pid, tid, true);

	if (!thread)
		return err_no_memory(err);
	thread->name = name;
	return 0;
}

static bool parent_inherits(const struct spulse_recorder *rec, pid_t parent)
{
	const struct rec_thread *maker = threads_find(rec, parent);

	return !rec->events || rec->options.system_wide ||
	       (maker ? maker->inherits : rec->inherits);
}

static int on_fork(struct spulse_recorder *rec, const struct perf_event *event,
		   struct spulse_error **err)
{
	bool process = event->pid != event->task.ppid;
	bool covered = parent_inherits(rec, event->task.ptid);
	int r = 0;

	if (event->pid <= 0 || event->tid <= 0)
		return 0;
	if (process && !follows(rec))
		return 0;
	if (process)
		r = process_clone(rec, event->task.ppid, event->pid, event->time, err);
	if (r < 0)
		return r;
	if (!process && threads_find(rec, event->tid))
		return 0;
	if (covered)
		return add_covered(rec, event->pid, event->tid, event->task.ptid, err);
	return later(rec, process ? REC_PROCESS_FORK : REC_THREAD_FORK, event->pid, event->tid,
		     err);
}

static int on_exit_record(struct spulse_recorder *rec, const struct perf_event *event,
			  struct spulse_error **err)
{
	struct rec_process *process = process_find(rec, event->pid);
	struct rec_thread *thread = threads_find(rec, event->tid);
	bool opened = thread && thread->opened;

	if (process)
		process->exit_time = event->time;
	offcpu_forget(rec, event->tid);
	/* A thread that was found late may never have had events. */
	if (!thread || thread->pid != event->pid)
		return 0;
	threads_remove(rec, event->tid);
	return opened ? later(rec, REC_THREAD_EXIT, event->pid, event->tid, err) : 0;
}

/* ---- names ---- */

enum { LOOK_AGAIN_NS = 20 * 1000000 };

/* A kernel that does not say so: another program, and the name is the one that it has now. */
static bool changed_program(const struct spulse_recorder *rec, struct rec_process *process,
			    const struct perf_event *event)
{
	struct strbuf comm = { 0 };
	uint64_t device, inode;
	bool same_name;

	/* Not for each name of a program that takes thousands of them: we would fall behind. */
	if (rec->offline || (process->exe_looked && event->has_time &&
			     event->time - process->exe_looked < LOOK_AGAIN_NS))
		return false;
	process->exe_looked = event->has_time ? event->time : 0;
	if (proc_exe_identity(process->pid, &device, &inode) < 0 ||
	    !process->has_exe || (device == process->exe_device && inode == process->exe_inode))
		return false;
	same_name = proc_file_read(process->pid, 0, "comm", 64, &comm) == 0 &&
		    comm.len == event->comm.len &&
		    !memcmp(comm.data, event->comm.name, comm.len);
	strbuf_release(&comm);
	return same_name;
}

/*
 * A new name is written with the next sample only: a program may take another one many thousand
 * times a second.
 */
static void rename_thread(struct spulse_recorder *rec, const struct perf_event *event)
{
	struct rec_thread *thread = threads_find(rec, event->tid);

	if (rec_annotates(rec) && thread)
		thread->name = intern(&rec->strings, event->comm.name, event->comm.len);
}

static int rename_process(struct spulse_recorder *rec, struct rec_process *process,
			  const struct perf_event *event, struct spulse_error **err)
{
	select_process(rec, process, event->comm.name, event->comm.len);
	if (!process->named)
		return annotate_process(rec, process, event->comm.name, event->comm.len, err);
	process->comm = intern(&rec->strings, event->comm.name, event->comm.len);
	process->renamed = process->comm != process->comm_written;
	return 0;
}

static int on_comm(struct spulse_recorder *rec, const struct perf_event *event,
		   struct spulse_error **err)
{
	struct rec_process *process = process_find(rec, event->pid);
	int r;

	if (!process && event->comm.exec && event->pid > 0 && follows(rec))
		process = process_get(rec, event->pid, err);
	if (!process)
		return err && *err ? -(int)spulse_error_kind(*err) : 0;
	if (event->pid != event->tid) {
		rename_thread(rec, event);
		return 0;
	}
	if (event->comm.exec || changed_program(rec, process, event)) {
		r = process_exec(rec, process, event, err);
		if (r < 0)
			return r;
		/* Whichever thread did it is the leader now. */
		if (!threads_find(rec, event->tid) &&
		    !threads_add(rec, event->pid, event->tid, rec->inherits))
			return err_no_memory(err);
	} else {
		r = rename_process(rec, process, event, err);
		if (r < 0)
			return r;
	}
	rename_thread(rec, event);
	return 0;
}

/* ---- all of them ---- */

/*
 * A file has what its writer saw in the rings, and newer ones also the kernel's counters, added at
 * their end: both tell of the same losses.
 */
static int on_recorded_loss(struct spulse_recorder *rec, const struct perf_event *event,
			    struct spulse_error **err)
{
	uint64_t *sum = event->type == PERF_RECORD_LOST ? &rec->lost_records : &rec->lost_samples;

	if (add_overflows(*sum, event->lost.count, sum))
		return err_file(err, SPULSE_ERROR_IO, EOVERFLOW, NULL, "too many lost records");
	rec->summary.lost_events = MAX(rec->lost_records, rec->lost_samples);
	return 0;
}

static int on_lost_samples(struct spulse_recorder *rec, const struct perf_event *event,
			   struct spulse_error **err)
{
	if (rec->imported)
		return on_recorded_loss(rec, event, err);
	if (add_overflows(rec->summary.lost_events, event->lost.count, &rec->summary.lost_events))
		return err_file(err, SPULSE_ERROR_IO, EOVERFLOW, NULL, "too many lost samples");
	return 0;
}

int lifecycle_event(void *data, const struct perf_event *event, struct spulse_error **err)
{
	struct spulse_recorder *rec = data;

	if (event->has_time && event->time > rec->newest)
		rec->newest = event->time;
	switch (event->type) {
	case PERF_RECORD_SAMPLE:
		return sample_take(rec, event, err);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_mmap(rec, event, err);
	case PERF_RECORD_FORK:
		return on_fork(rec, event, err);
	case PERF_RECORD_EXIT:
		return on_exit_record(rec, event, err);
	case PERF_RECORD_COMM:
		return on_comm(rec, event, err);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return offcpu_switch(rec, event, err);
	case PERF_RECORD_LOST:
		/* Of a ring: the kernel's counters say how many, the record who. */
		return rec->imported ? on_recorded_loss(rec, event, err) :
				       losses_note(rec, event, err);
	case PERF_RECORD_LOST_SAMPLES:
		return on_lost_samples(rec, event, err);
	default:
		return 0;
	}
}

/* Opens the events of a run of new threads of one process in one go. */
static int open_threads(struct spulse_recorder *rec, size_t *i, struct spulse_error **err)
{
	const struct rec_action *first = &rec->actions.data[*i], *action = first;
	size_t end = rec->actions.len - *i, n = 0;
	VEC(pid_t) tids = { 0 };
	int r = 0;

	for (; n < end && action->kind == REC_THREAD_FORK && action->pid == first->pid;
	     n++, action++)
		if (!threads_find(rec, action->tid) && !vec_push(&tids, action->tid))
			r = err_no_memory(err);
	*i += n - 1;
	if (r == 0 && tids.len)
		r = threads_open(rec, first->pid, tids.data, tids.len, err);
	vec_free(&tids);
	return r;
}

static int open_child(struct spulse_recorder *rec, pid_t pid, struct spulse_error **err)
{
	struct rec_process *child = process_find(rec, pid);

	return child && !child->exited ? threads_open(rec, pid, &pid, 1, err) : 0;
}

int lifecycle_replay(struct spulse_recorder *rec, bool may_open, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < rec->actions.len && r == 0; i++) {
		const struct rec_action action = rec->actions.data[i];

		if (action.kind == REC_THREAD_EXIT)
			perf_events_close(rec->events, action.pid, action.tid);
		else if (!may_open)
			continue;
		else if (action.kind == REC_THREAD_FORK)
			r = open_threads(rec, &i, err);
		else
			r = open_child(rec, action.pid, err);
	}
	rec->actions.len = 0;
	return r;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The processes of a recording. One that ended is kept for one more pass, because events that it
 * made may still wait in the rings.
 */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

struct rec_process *process_find(const struct spulse_recorder *rec, pid_t pid)
{
	uint64_t *slot = u64map_get(&rec->process_of_pid, (uint32_t)pid);

	return slot ? (struct rec_process *)(uintptr_t)*slot : NULL;
}

static void free_process(struct rec_process *process)
{
	if (!process)
		return;
	proc_handle_free(process->handle);
	modules_release(&process->modules);
	unw_space_free(process->space);
	u64map_release(&process->tried_pages);
	free(process);
}

struct rec_process *process_add(struct spulse_recorder *rec, pid_t pid,
				struct proc_handle *handle)
{
	struct rec_process *process = calloc(1, sizeof(*process));

	if (!process) {
		proc_handle_free(handle);
		return NULL;
	}
	process->pid = pid;
	process->comm_written = UINT32_MAX;
	process->handle = handle;
	process->exited = !handle && !rec->offline;
	process->index = rec->processes.len;
	if (unw_space_new(&process->space, NULL) < 0 || !vec_reserve(&rec->handles, 1) ||
	    !vec_reserve(&rec->processes, 1) ||
	    !u64map_set(&rec->process_of_pid, (uint32_t)pid, (uintptr_t)process)) {
		free_process(process);
		return NULL;
	}
	rec->processes.data[rec->processes.len++] = process;
	select_process(rec, process, NULL, 0);
	return process;
}

static void forget(struct spulse_recorder *rec, struct rec_process *process)
{
	struct rec_process *last = vec_pop(&rec->processes);

	if (last != process) {
		rec->processes.data[process->index] = last;
		last->index = process->index;
	}
	u64map_remove(&rec->process_of_pid, (uint32_t)process->pid);
	if (rec->last == process)
		rec->last = NULL;
	free_process(process);
}

void process_read_exe(struct rec_process *process)
{
	process->has_exe = proc_exe_identity(process->pid, &process->exe_device,
					     &process->exe_inode) == 0;
}

int process_retire(struct spulse_recorder *rec, struct rec_process *process, uint64_t time,
		   struct spulse_error **err)
{
	int r = python_set(rec, process, false, process->exit_time ? process->exit_time : time,
			   err);
	int second = modules_retire(rec, process, r < 0 ? NULL : err);

	threads_remove_process(rec, process->pid, 0);
	if (rec->events && process->opened)
		perf_events_close(rec->events, process->pid, 0);
	forget(rec, process);
	return r < 0 ? r : second;
}

void process_free_all(struct spulse_recorder *rec)
{
	for (size_t i = 0; i < rec->processes.len; i++)
		free_process(rec->processes.data[i]);
	vec_free(&rec->processes);
	vec_free(&rec->handles);
	vec_free(&rec->handles_exited);
	u64map_release(&rec->process_of_pid);
}

int process_find_dead(struct spulse_recorder *rec, struct spulse_error **err)
{
	size_t n = 0, asked = 0;
	int r;

	rec->handles.len = rec->handles_exited.len = 0;
	if (!vec_reserve(&rec->handles, rec->processes.len) ||
	    !vec_reserve(&rec->handles_exited, rec->processes.len))
		return err_no_memory(err);
	for (size_t i = 0; i < rec->processes.len; i++)
		if (!rec->processes.data[i]->exited)
			rec->handles.data[n++] = rec->processes.data[i]->handle;
	if (!n || rec->offline)
		return 0;
	r = proc_handles_exited(rec->handles.data, n, rec->handles_exited.data, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rec->processes.len; i++)
		if (!rec->processes.data[i]->exited)
			rec->processes.data[i]->exited = rec->handles_exited.data[asked++];
	return 0;
}

int process_alive(struct spulse_recorder *rec, struct rec_process *process,
		  struct spulse_error **err)
{
	int r;

	/* In a recording that is over, one whose number is used again has ended. */
	if (process->exited || rec->offline)
		return rec->offline && !process->exit_time;
	r = proc_handle_exited(process->handle, err);
	if (r > 0)
		process->exited = true;
	return r < 0 ? r : !process->exited;
}

struct rec_process *process_get(struct spulse_recorder *rec, pid_t pid,
				struct spulse_error **err)
{
	struct rec_process *process = process_find(rec, pid);
	struct proc_handle *handle = NULL;
	bool gone;

	if (process)
		return process;
	if (!rec->offline)
		proc_handle_open(pid, &handle, NULL);
	process = process_add(rec, pid, handle);
	if (!process) {
		err_no_memory(err);
		return NULL;
	}
	if (process->exited || rec->offline)
		return process;
	process_read_exe(process);
	if (maps_look(rec, process, &gone, err) < 0 ||
	    annotate_program(rec, process, NULL, 0, err) < 0)
		return NULL;
	return process;
}

/* Makes room for a process whose number is in use already: that one ended unnoticed. */
static int drop_stale(struct spulse_recorder *rec, struct rec_process *process, uint64_t time,
		      struct spulse_error **err)
{
	return process ? process_retire(rec, process, time, err) : 0;
}

static int inherit(struct spulse_recorder *rec, struct rec_process *parent,
		   struct rec_process *child, uint64_t time, struct spulse_error **err)
{
	struct unw_space *space = unw_space_fork(parent->space);
	struct rec_thread *thread = threads_find(rec, parent->pid);
	int r;

	if (!space)
		return err_no_memory(err);
	unw_space_free(child->space);
	child->space = space;
	child->counted_by = parent->counted_by;
	child->has_exe = parent->has_exe;
	child->exe_device = parent->exe_device;
	child->exe_inode = parent->exe_inode;
	child->perf_support = parent->perf_support;
	child->unwanted = parent->unwanted;
	r = python_set(rec, child, parent->python, time, err);
	if (r == 0)
		r = modules_fork(rec, parent, child, err);
	if (r == 0 && thread && thread->name != UINT32_MAX) {
		const struct interned *name = &rec->strings.strings.data[thread->name];

		r = annotate_process(rec, child, name->bytes, name->len, err);
	}
	return r;
}

int process_clone(struct spulse_recorder *rec, pid_t ppid, pid_t pid, uint64_t time,
		  struct spulse_error **err)
{
	struct rec_process *parent = process_find(rec, ppid), *child = process_find(rec, pid);
	struct proc_handle *handle = NULL;
	int r;

	if (child) {
		r = process_alive(rec, child, err);
		if (r < 0)
			return r;
		/* Its own attach came before the record of its fork. */
		if (r > 0)
			return 0;
	}
	r = drop_stale(rec, child, time, err);
	if (r < 0)
		return r;
	/* It may be gone; its events are still to come. */
	if (!rec->offline)
		proc_handle_open(pid, &handle, NULL);
	child = process_add(rec, pid, handle);
	if (!child)
		return err_no_memory(err);
	return parent ? inherit(rec, parent, child, time, err) : 0;
}

int process_exec(struct spulse_recorder *rec, struct rec_process *process,
		 const struct perf_event *event, struct spulse_error **err)
{
	int r = modules_retire(rec, process, err);

	if (r == 0)
		r = python_set(rec, process, false, event->has_time ? event->time : 0, err);
	process->perf_support = REC_PYTHON_UNKNOWN;
	process->warned = false;
	/* The records that follow name every mapping of the new program. */
	unw_space_set_partial(process->space, false);
	select_process(rec, process, event->comm.name, event->comm.len);
	threads_remove_process(rec, process->pid, process->pid);
	if (!rec->offline)
		process_read_exe(process);
	return r < 0 ? r : annotate_program(rec, process, event->comm.name, event->comm.len, err);
}

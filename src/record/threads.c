/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The threads that are known to be covered: by events of their own, or because the thread that
 * made them has events that its children inherit.
 */
#include "recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const int64_t reconcile_pause_ns = 100 * 1000000;

struct rec_thread *threads_find(const struct spulse_recorder *rec, pid_t tid)
{
	uint64_t *slot = u64map_get(&rec->thread_of_tid, (uint32_t)tid);

	return slot ? &rec->threads.data[*slot] : NULL;
}

static void count(struct spulse_recorder *rec, pid_t pid, int by)
{
	struct rec_process *process = process_find(rec, pid);

	if (process)
		process->threads += by;
}

struct rec_thread *threads_add(struct spulse_recorder *rec, pid_t pid, pid_t tid, bool inherits)
{
	struct rec_thread *thread = threads_find(rec, tid);
	const struct rec_thread fresh = {
		.tid = tid, .pid = pid, .inherits = inherits, .name = UINT32_MAX,
		.written = UINT32_MAX,
	};

	if (thread) {
		if (thread->pid != pid) {
			count(rec, thread->pid, -1);
			count(rec, pid, 1);
			*thread = fresh;
		}
		thread->inherits = inherits;
		return thread;
	}
	if (!vec_reserve(&rec->threads, 1) ||
	    !u64map_set(&rec->thread_of_tid, (uint32_t)tid, rec->threads.len))
		return NULL;
	count(rec, pid, 1);
	rec->threads.data[rec->threads.len++] = fresh;
	return &vec_last(&rec->threads);
}

static void remove_at(struct spulse_recorder *rec, size_t i)
{
	struct rec_thread *thread = &rec->threads.data[i];

	offcpu_gone(rec, thread->tid);
	count(rec, thread->pid, -1);
	u64map_remove(&rec->thread_of_tid, (uint32_t)thread->tid);
	*thread = vec_pop(&rec->threads);
	if (i < rec->threads.len)
		u64map_set(&rec->thread_of_tid, (uint32_t)thread->tid, i);
}

void threads_remove(struct spulse_recorder *rec, pid_t tid)
{
	uint64_t *slot = u64map_get(&rec->thread_of_tid, (uint32_t)tid);

	if (slot)
		remove_at(rec, *slot);
}

void threads_remove_process(struct spulse_recorder *rec, pid_t pid, pid_t except)
{
	struct rec_process *process = process_find(rec, pid);
	struct rec_thread *leader = threads_find(rec, pid);

	/* The usual short process has its leader only: no search. */
	if (process && process->threads == (leader && leader->pid == pid)) {
		if (leader && leader->pid == pid && except != pid)
			threads_remove(rec, pid);
		return;
	}
	for (size_t i = rec->threads.len; i-- > 0;)
		if (rec->threads.data[i].pid == pid && rec->threads.data[i].tid != except)
			remove_at(rec, i);
}

bool threads_any_inherits(const struct spulse_recorder *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->threads.len; i++)
		if (rec->threads.data[i].pid == pid && rec->threads.data[i].inherits)
			return true;
	return false;
}

/* Removes what is tracked and listed no longer. */
static void drop_ended(struct spulse_recorder *rec, pid_t pid, const struct proc_tids *listed)
{
	for (size_t i = rec->threads.len; i-- > 0;) {
		pid_t tid = rec->threads.data[i].tid;
		bool found = false;

		if (rec->threads.data[i].pid != pid || tid == pid)
			continue;
		for (size_t j = 0; j < listed->tids.len && !found; j++)
			found = listed->tids.data[j] == tid;
		if (!found) {
			if (rec->threads.data[i].opened)
				perf_events_close(rec->events, pid, tid);
			remove_at(rec, i);
		}
	}
}

int threads_open(struct spulse_recorder *rec, pid_t pid, const pid_t *tids, size_t n,
		 struct spulse_error **err)
{
	struct spulse_error *why = NULL;
	struct perf_opened opened = { 0 };
	int r = perf_events_open(rec->events, pid, tids, n, false, true, &opened, &why);

	if (r < 0 && spulse_error_kind(why) == SPULSE_ERROR_TARGET_GONE) {
		spulse_error_free(why);
		return 0;
	}
	if (r < 0) {
		r = err_repeat(err, why);
		spulse_error_free(why);
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		struct rec_thread *thread = threads_add(rec, pid, tids[i], opened.inherits);

		if (!thread)
			return err_no_memory(err);
		thread->opened = true;
	}
	return rec->paused ? 0 : perf_events_enable(rec->events, err);
}

static int take_new(struct spulse_recorder *rec, pid_t pid, const struct proc_tids *listed,
		    struct spulse_error **err)
{
	bool inherits = rec->options.system_wide || threads_any_inherits(rec, pid);
	VEC(pid_t) missing = { 0 };
	int r = 0;

	for (size_t i = 0; i < listed->tids.len && r == 0; i++) {
		pid_t tid = listed->tids.data[i];

		if (tid == pid || threads_find(rec, tid))
			continue;
		if (inherits ? !threads_add(rec, pid, tid, true) : !vec_push(&missing, tid))
			r = err_no_memory(err);
	}
	if (r == 0 && missing.len)
		r = threads_open(rec, pid, missing.data, missing.len, err);
	vec_free(&missing);
	return r;
}

int threads_refresh(struct spulse_recorder *rec, struct rec_process *process, bool *gone,
		    struct spulse_error **err)
{
	struct proc_tids listed = { 0 };
	int r = proc_threads(process->pid, &listed), alive;

	*gone = false;
	alive = process_alive(rec, process, err);
	if (alive <= 0 || r == -ENOENT || r == -ESRCH) {
		*gone = alive >= 0;
		r = MIN(alive, 0);
	} else if (r == -EACCES || r == -EPERM) {
		r = 0; /* hidden from us: nothing changes */
	} else if (r < 0) {
		r = r == -ENOMEM ? err_no_memory(err) :
				   err_io(err, -r, NULL, "cannot list the threads of process %d",
					  process->pid);
	} else {
		drop_ended(rec, process->pid, &listed);
		r = take_new(rec, process->pid, &listed, err);
	}
	vec_free(&listed.tids);
	return r;
}

/* The number of links of the folder tells the number of threads, without a listing. */
static bool same_count(const struct rec_process *process)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	return stat(path, &st) == 0 && st.st_nlink == process->threads + 2;
}

int threads_reconcile(struct spulse_recorder *rec, struct spulse_error **err)
{
	int64_t now = rec_monotonic_ns();
	int r = 0;

	if (now - rec->reconcile_ns < reconcile_pause_ns || rec->options.system_wide)
		return 0;
	rec->reconcile_ns = now;
	for (size_t i = 0; i < rec->processes.len && r == 0; i++) {
		struct rec_process *process = rec->processes.data[i];
		bool gone;

		if (!process->exited && !same_count(process))
			r = threads_refresh(rec, process, &gone, err);
	}
	return r;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Attaching one process: all of it or nothing. The events are opened while the target runs; it is
 * stopped only to confirm that no thread was missed and to read its mappings, with the events
 * enabled before it goes on. When a thread turned up meanwhile nobody can tell whether the kernel
 * covers it, so the events are opened again, while the target stands still.
 */
#include "recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUNNING_TRIES = 3 };

struct attaching {
	struct spulse_recorder *rec;
	struct rec_attach *attach;
	struct proc_handle *handle; /* until the process has it */
	struct rec_process *process;
	struct proc_stop *stop;
	bool stopped; /* its thread list is reliable */
	bool opened;
	bool added;
	struct perf_opened result;
	struct proc_tids tids;
	struct proc_maps maps;
	bool has_maps;
};

static int gone(pid_t pid, int errnum, struct spulse_error **err)
{
	/* A missing file in /proc is how a missing process shows, and a hidden one. */
	if (errnum == ENOENT && access("/proc/self/stat", F_OK) < 0)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED,
			       "/proc does not show process %d, nor this one: it is not mounted, "
			       "or not for this PID namespace",
			       pid);
	if (errnum == ENOENT && kill(pid, 0) < 0 && errno == EPERM)
		return err_file(err, SPULSE_ERROR_PERMISSION, EACCES, NULL,
				"process %d belongs to another user and /proc hides it (mounted "
				"with hidepid); it helps to run as that user or as root",
				pid);
	return err_file(err, SPULSE_ERROR_TARGET_GONE, errnum == ENOENT ? ESRCH : errnum, NULL,
			"process %d is gone", pid);
}

/* A target is a process, not one of its other threads. */
static int check_leader(pid_t pid, struct spulse_error **err)
{
	pid_t tgid;
	int r = proc_tgid_read(pid, &tgid);

	if (r == -ENOENT || r == -ESRCH)
		return gone(pid, -r, err);
	if (r < 0 || tgid == pid)
		return 0;
	return err_set(err, SPULSE_ERROR_INVALID_INPUT,
		       "%d is a thread of process %d: attach to %d", pid, tgid, tgid);
}

static int list_threads(struct attaching *a, struct proc_tids *tids, struct spulse_error **err)
{
	pid_t pid = a->attach->pid;
	int r = proc_threads(pid, tids);

	if (r == -ENOENT || r == -ESRCH)
		return gone(pid, -r, err);
	if (r == -ENOMEM)
		return err_no_memory(err);
	if (r < 0)
		return err_io(err, -r, NULL, "cannot list the threads of process %d", pid);
	return 0;
}

static int open_threads(struct attaching *a, const pid_t *tids, size_t n,
			struct spulse_error **err)
{
	const struct rec_attach *attach = a->attach;
	int r = perf_events_open(a->rec->events, attach->pid, tids, n,
				 attach->mode == SPULSE_ATTACH_ON_EXEC, attach->clamp, &a->result,
				 err);

	a->opened = r == 0;
	return r;
}

static void close_threads(struct attaching *a)
{
	if (a->opened)
		perf_events_rollback(a->rec->events, a->attach->pid);
	a->opened = false;
}

static bool same_threads(const struct proc_tids *a, const pid_t *tids, size_t n)
{
	if (a->tids.len != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (a->tids.data[i] != tids[i])
			return false;
	return true;
}

static bool nothing_new(const struct proc_tids *known, const struct proc_tids *now)
{
	size_t k = 0;

	for (size_t i = 0; i < now->tids.len; i++) {
		while (k < known->tids.len && known->tids.data[k] < now->tids.data[i])
			k++;
		if (k == known->tids.len || known->tids.data[k] != now->tids.data[i])
			return false;
	}
	return true;
}

/* Opens what is listed until no thread turned up meanwhile, or the tries are used up. */
static int open_running(struct attaching *a, struct spulse_error **err)
{
	int r = list_threads(a, &a->tids, err);

	for (int i = 0; r == 0; i++) {
		struct proc_tids now = { 0 };
		bool settled;

		r = open_threads(a, a->tids.tids.data, a->tids.tids.len, err);
		if (r < 0 || i == RUNNING_TRIES || a->attach->mode != SPULSE_ATTACH_RUNNING)
			break;
		r = list_threads(a, &now, err);
		settled = r < 0 || nothing_new(&a->tids, &now);
		vec_free(&a->tids.tids);
		a->tids = now;
		if (settled)
			break;
		close_threads(a);
	}
	return r;
}

/* Stops the target; a target that is not ours to stop runs on, or stays as it is. */
static int stop(struct attaching *a, struct spulse_error **err)
{
	enum proc_stop_outcome outcome;
	int r = proc_stop_begin(a->handle, &a->stop, &outcome, err);
	const pid_t *tids;
	size_t n;

	if (r < 0)
		return r;
	if (outcome == PROC_STOP_TRACED || outcome == PROC_STOP_FAILED) {
		log_warning("process %d is not stopped to be attached, a thread that starts "
			    "meanwhile may be missed: %s",
			    a->attach->pid, proc_stop_reason(a->stop));
		return 0;
	}
	a->stopped = true;
	tids = proc_stop_tids(a->stop, &n);
	if (same_threads(&a->tids, tids, n))
		return 0;
	close_threads(a);
	a->tids.tids.len = 0;
	if (!vec_reserve(&a->tids.tids, n))
		return err_no_memory(err);
	for (size_t i = 0; i < n; i++)
		a->tids.tids.data[a->tids.tids.len++] = tids[i];
	return open_threads(a, tids, n, err);
}

/* From here on the recorder knows the process; the handle is its own. */
static int track(struct attaching *a, struct spulse_error **err)
{
	struct spulse_recorder *rec = a->rec;
	struct rec_process *process = process_add(rec, a->attach->pid, take_ptr(a->handle));

	if (!process)
		return err_no_memory(err);
	a->process = process;
	process->attached = process->opened = true;
	process->counted_by = process->pid;
	rec->inherits = a->result.inherits;
	for (size_t i = 0; i < a->tids.tids.len; i++) {
		struct rec_thread *thread = threads_add(rec, process->pid, a->tids.tids.data[i],
							a->result.inherits);

		if (!thread)
			return err_no_memory(err);
		thread->opened = true;
	}
	return 0;
}

static int read_maps(struct attaching *a, struct spulse_error **err)
{
	bool ended;
	int r;

	if (a->attach->mode == SPULSE_ATTACH_ON_EXEC)
		return 0;
	r = maps_read(a->rec, a->process, &a->maps, &ended, err);
	if (r == 0 && ended)
		return gone(a->attach->pid, ESRCH, err);
	a->has_maps = r > 0;
	return MIN(r, 0);
}

/* Stopped: mappings first, then sampling. Running: the other way round, as records of mappings
 * that come between are then not missed. */
static int start(struct attaching *a, struct spulse_error **err)
{
	bool enable = !a->rec->paused && a->attach->mode != SPULSE_ATTACH_ON_EXEC;
	int r = a->stopped ? read_maps(a, err) : 0;

	if (r == 0 && enable)
		r = perf_events_enable(a->rec->events, err);
	if (a->stop) {
		struct spulse_error *second = NULL;

		if (proc_stop_end(a->stop, &second) < 0) {
			if (r < 0)
				err_attach_cleanup(err, second);
			else
				r = err_repeat(err, second);
			if (r == 0 || err == NULL || *err == second)
				spulse_error_free(second);
		}
	}
	return r < 0 || a->stopped ? r : read_maps(a, err);
}

/* What a suspended launch is called now is no name of its program. */
static int describe(struct attaching *a, struct spulse_error **err)
{
	process_read_exe(a->process);
	if (a->attach->mode == SPULSE_ATTACH_ON_EXEC)
		return 0;
	return annotate_program(a->rec, a->process, NULL, 0, err);
}

static int attach_steps(struct attaching *a,
			int (*opened)(struct spulse_recorder *rec, void *data,
				      struct spulse_error **err),
			void *data, struct spulse_error **err)
{
	int r = open_running(a, err);

	if (r == 0 && opened)
		r = opened(a->rec, data, err);
	if (r == 0 && a->attach->mode == SPULSE_ATTACH_STOP)
		r = stop(a, err);
	if (r == 0)
		r = track(a, err);
	if (r == 0)
		r = start(a, err);
	if (r == 0 && a->has_maps)
		r = maps_register(a->rec, a->process, &a->maps, err);
	return r < 0 ? r : describe(a, err);
}

static void roll_back(struct attaching *a)
{
	close_threads(a);
	if (!a->process)
		return;
	a->process->opened = false;
	process_retire(a->rec, a->process, a->rec->newest, NULL);
}

/* Whether the process is recorded already; one that only was is forgotten first. 1, 0, error. */
static int is_known(struct spulse_recorder *rec, pid_t pid, struct spulse_error **err)
{
	struct rec_process *process = process_find(rec, pid);
	int r;

	if (!process)
		return 0;
	r = drain(rec, REC_FLUSH, err);
	process = process_find(rec, pid);
	if (r < 0 || !process)
		return r;
	r = process_alive(rec, process, err);
	return r ? r : process_retire(rec, process, rec->newest, err);
}

static int open_handle(struct attaching *a, struct spulse_error **err)
{
	pid_t pid = a->attach->pid;
	int r;

	if (a->attach->mode == SPULSE_ATTACH_STOP && pid == getpid())
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a process cannot stop itself to attach: use the running mode");
	r = check_leader(pid, err);
	return r < 0 ? r : proc_handle_open(pid, &a->handle, err);
}

int attach_process(struct spulse_recorder *rec, struct rec_attach *attach,
		   int (*opened)(struct spulse_recorder *rec, void *data,
				 struct spulse_error **err),
		   void *data, struct spulse_error **err)
{
	struct attaching a = { .rec = rec, .attach = attach };
	struct spulse_error *why = NULL;
	int r = open_handle(&a, &why);

	attach->outcome = SPULSE_ATTACHED;
	if (r == 0)
		r = is_known(rec, attach->pid, &why);
	if (r > 0)
		attach->outcome = SPULSE_ALREADY_ATTACHED;
	else if (r == 0)
		r = attach_steps(&a, opened, data, &why);
	proc_stop_free(a.stop);
	if (r < 0)
		roll_back(&a);
	proc_handle_free(a.handle);
	proc_maps_release(&a.maps);
	vec_free(&a.tids.tids);
	if (r < 0 && !attach->first && spulse_error_kind(why) == SPULSE_ERROR_TARGET_GONE) {
		attach->outcome = SPULSE_ATTACH_EXITED;
		r = 0;
	}
	if (r < 0)
		r = err_repeat(err, why);
	spulse_error_free(why);
	return MIN(r, 0);
}

int attach_descendants(struct spulse_recorder *rec, pid_t pid, enum spulse_attach_mode mode,
		       struct spulse_error **err)
{
	pid_t *pids;
	size_t n;
	int r = 0;

	/* Best effort: what cannot be listed or attached is left out. */
	if (spulse_children_discover(pid, &pids, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		struct rec_attach attach = { .pid = pids[i], .mode = mode, .clamp = true };
		struct spulse_error *why = NULL;

		if (process_find(rec, pids[i]))
			continue;
		if (attach_process(rec, &attach, NULL, NULL, &why) < 0)
			log_debug("descendant %d is not recorded: %s", pids[i],
				  spulse_error_message(why));
		spulse_error_free(why);
		/* The rings fill up meanwhile. */
		r = drain(rec, REC_CONSUME, err);
	}
	spulse_array_free(pids);
	return r;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Our side of a stop: looks first whether the target may be touched, then starts the stopper. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procfs.h"
#include "stopper.h"

/*
 * A thread that sleeps uninterruptibly (a disk that hangs, a parent in vfork) does not stop before
 * it wakes. The others are not held for its sake: the target then runs on.
 */
#define STOP_LIMIT_NS (100 * 1000000ll)
/* No target is held longer, even when we hang or are stopped ourselves. */
#define HOLD_LIMIT_NS (5 * 1000000000ll)

struct proc_stop {
	struct proc_handle *handle; /* the caller's */
	struct stopper *stopper;
	pid_t helper; /* 0: none */
	int sock;
	bool by_signal;
	int policy; /* our thread's own, while it is urgent; else -1 */
	struct proc_tids tids;
	char reason[256];
};

static void free_stopper(struct proc_stop *stop)
{
	if (stop->stopper)
		munmap(stop->stopper, sizeof(*stop->stopper));
	stop->stopper = NULL;
}

/* ---- our own turns ---- */

/*
 * From the first thread that stands still on, the target waits for us: on a loaded machine ours
 * would come tens of milliseconds late, once for each step. Needs a right; without it, or where
 * the thread has an unusual policy already, things stay as they are. Going back keeps the nice
 * value and needs no right.
 */
static void make_urgent(struct proc_stop *stop)
{
	const struct sched_param param = { .sched_priority = 1 };
	int policy = sched_getscheduler(0);

	if ((policy == SCHED_OTHER || policy == SCHED_BATCH) &&
	    sched_setscheduler(0, SCHED_FIFO, &param) == 0)
		stop->policy = policy;
}

static void make_usual(struct proc_stop *stop)
{
	const struct sched_param param = { 0 };

	if (stop->policy >= 0)
		sched_setscheduler(0, stop->policy, &param);
	stop->policy = -1;
}

/* ---- may it be touched? ---- */

static bool state_is_stopped(const char *status)
{
	const char *state = strstr(status, "\nState:\t");

	return state && (state[8] == 'T' || state[8] == 't');
}

static long status_tracer(const char *status)
{
	const char *tracer = strstr(status, "\nTracerPid:\t");

	return tracer ? strtol(tracer + 12, NULL, 10) : 0;
}

/* Looks at every thread: DONE when none is stopped or traced. */
static enum proc_stop_outcome look(struct proc_stop *stop, pid_t pid)
{
	enum proc_stop_outcome outcome = PROC_STOP_DONE;
	struct strbuf status = { 0 };

	for (size_t i = 0; i < stop->tids.tids.len; i++) {
		pid_t tid = stop->tids.tids.data[i];
		long tracer;

		if (proc_file_read(pid, tid, "status", 65536, &status) < 0)
			continue;
		tracer = status_tracer(status.data);
		if (tracer) {
			snprintf(stop->reason, sizeof(stop->reason),
				 "thread %d is traced by process %ld", tid, tracer);
			outcome = PROC_STOP_TRACED;
			break;
		}
		if (state_is_stopped(status.data) && outcome == PROC_STOP_DONE) {
			snprintf(stop->reason, sizeof(stop->reason),
				 "thread %d was stopped by someone else", tid);
			outcome = PROC_STOP_FOREIGN;
		}
	}
	strbuf_release(&status);
	return outcome;
}

/* ---- the stopper ---- */

static int start_stopper(struct proc_stop *stop, bool by_signal)
{
	sigset_t all, old;
	int socks[2], r = 0;
	struct stopper *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (s == MAP_FAILED)
		return -errno;
	stop->stopper = s;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0) {
		r = -errno;
		free_stopper(stop);
		return r;
	}
	s->target = proc_handle_pid(stop->handle);
	s->parent = getpid();
	s->pidfd = proc_handle_fd(stop->handle);
	s->sock = socks[1];
	s->by_signal = by_signal;
	s->limit_ns = STOP_LIMIT_NS;
	s->hold_ns = HOLD_LIMIT_NS;
	stop->by_signal = by_signal;
	/* The new process starts with every signal blocked: it would run our handlers. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* Exit signal 0: neither a SIGCHLD handler nor a wait() of the host program sees it. */
	stop->helper = clone(stopper_main, s->stack + sizeof(s->stack), CLONE_VM | CLONE_UNTRACED,
			     s);
	if (stop->helper < 0)
		r = -errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(socks[1]);
	stop->sock = socks[0];
	if (r < 0) {
		stop->helper = 0;
		close(take_fd(&stop->sock));
		free_stopper(stop);
	}
	return r;
}

/* Lets the target go and waits for the stopper's end; returns its exit status, -1 if unknown. */
static int join_stopper(struct proc_stop *stop)
{
	int status = -1;
	pid_t r;

	if (!stop->helper)
		return STOPPER_EXIT_RELEASED;
	close(take_fd(&stop->sock));
	do
		r = waitpid(stop->helper, &status, __WALL);
	while (r < 0 && errno == EINTR);
	/* ECHILD: somebody else took the status, so it has ended as well. */
	stop->helper = 0;
	free_stopper(stop);
	return r > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int read_message(int sock, struct stopper_message *message)
{
	struct pollfd fd = { .fd = sock, .events = POLLIN };
	int timeout = HOLD_LIMIT_NS / 1000000, r;
	ssize_t n;

	do
		r = poll(&fd, 1, timeout);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return -ETIMEDOUT;
	n = read_full(sock, message, sizeof(*message));
	return n == sizeof(*message) ? 0 : -ECHILD;
}

/* Collects the thread list; returns the last message, or a made-up one. */
static struct stopper_message listen_to_stopper(struct proc_stop *stop)
{
	struct stopper_message message;
	int r;

	stop->tids.tids.len = 0;
	while ((r = read_message(stop->sock, &message)) == 0) {
		if (message.kind == STOPPER_LIST) {
			stop->tids.tids.len = 0;
		} else if (message.kind != STOPPER_TID) {
			break;
		} else if (!vec_push(&stop->tids.tids, (pid_t)message.value)) {
			r = -ENOMEM;
			break;
		}
	}
	if (r < 0)
		message = (struct stopper_message){ .kind = STOPPER_DENIED, .value = -r };
	return message;
}

static int compare_tids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

static enum proc_stop_outcome give_up(struct proc_stop *stop, const char *format, int a,
				      const char *b)
{
	snprintf(stop->reason, sizeof(stop->reason), format, a, b);
	stop->tids.tids.len = 0;
	return PROC_STOP_FAILED;
}

static int resume_after_signal(struct proc_stop *stop, struct spulse_error **err);

/* One try; *denied is set when ptrace was refused for a reason other than another tracer. */
static enum proc_stop_outcome try_stop(struct proc_stop *stop, bool by_signal, bool *denied)
{
	pid_t pid = proc_handle_pid(stop->handle), tracer = 0;
	struct stopper_message message;
	int r = start_stopper(stop, by_signal);

	*denied = false;
	if (r < 0)
		return give_up(stop, "cannot start a helper process (%d: %s)", -r,
			       strerrordesc_np(-r));
	message = listen_to_stopper(stop);
	if (message.kind == STOPPER_READY) {
		if (stop->tids.tids.len)
			qsort(stop->tids.tids.data, stop->tids.tids.len, sizeof(pid_t),
			      compare_tids);
		return PROC_STOP_DONE;
	}
	r = join_stopper(stop);
	if (by_signal && r != STOPPER_EXIT_RELEASED)
		resume_after_signal(stop, NULL);
	if (message.kind == STOPPER_TIMEOUT)
		return give_up(stop, "thread %d did not stop within %s", message.value, "100 ms");
	if (message.kind == STOPPER_GONE)
		return give_up(stop, "process %d is gone%s", pid, "");
	if (message.tid && proc_tracer_read(pid, message.tid, &tracer) == 0 && tracer > 0) {
		give_up(stop, "a thread is traced by process %d%s", tracer, "");
		return PROC_STOP_TRACED;
	}
	if (message.value == ECHILD)
		return give_up(stop, "the helper that stops process %d was killed%s", pid, "");
	*denied = !by_signal && message.tid != 0;
	return give_up(stop, by_signal ? "cannot send SIGSTOP (%d: %s)" :
			"cannot trace it (%d: %s)", message.value,
			strerrordesc_np(message.value));
}

static enum proc_stop_outcome stop_target(struct proc_stop *stop)
{
	enum proc_stop_outcome outcome;
	bool denied;

	make_urgent(stop);
	outcome = try_stop(stop, false, &denied);
	if (outcome == PROC_STOP_FAILED && denied)
		outcome = try_stop(stop, true, &denied);
	if (outcome != PROC_STOP_DONE)
		make_usual(stop);
	return outcome;
}

int proc_stop_begin(struct proc_handle *handle, struct proc_stop **stop_out,
		    enum proc_stop_outcome *outcome_out, struct spulse_error **err)
{
	pid_t pid = proc_handle_pid(handle);
	struct proc_stop *stop;
	enum proc_stop_outcome outcome = PROC_STOP_FAILED;
	int r;

	if (pid == getpid())
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "a process cannot stop itself");
	stop = calloc(1, sizeof(*stop));
	if (!stop)
		return err_no_memory(err);
	stop->handle = handle;
	stop->sock = -1;
	stop->policy = -1;
	r = proc_threads(pid, &stop->tids);
	if (r < 0) {
		char path[PROC_PATH_MAX];

		proc_path(path, pid, 0, "task");
		r = proc_read_error(err, -r, pid, path);
	} else {
		outcome = look(stop, pid);
		if (outcome == PROC_STOP_DONE)
			outcome = stop_target(stop);
		r = proc_handle_exited(handle, err);
		if (r > 0)
			r = err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, NULL,
				     "process %d ended", pid);
	}
	if (r < 0) {
		proc_stop_free(stop);
		return r;
	}
	*outcome_out = outcome;
	*stop_out = stop;
	return 0;
}

const pid_t *proc_stop_tids(const struct proc_stop *stop, size_t *count)
{
	*count = stop->tids.tids.len;
	return stop->tids.tids.data;
}

const char *proc_stop_reason(const struct proc_stop *stop)
{
	return stop->reason;
}

/* The stopper did not do it: for a SIGSTOP that would be left behind. */
static int resume_after_signal(struct proc_stop *stop, struct spulse_error **err)
{
	int r = proc_handle_signal(stop->handle, SIGCONT);

	if (r < 0 && r != -ESRCH)
		return err_io(err, -r, NULL, "cannot resume process %d with SIGCONT",
			      proc_handle_pid(stop->handle));
	return 0;
}

static int confirm_running(struct proc_stop *stop, struct spulse_error **err)
{
	pid_t pid = proc_handle_pid(stop->handle);
	struct proc_stat stat;

	/* 2 s in steps of 1 ms; a target that is gone needs no resume. */
	for (int i = 0; i < 2000; i++) {
		if (proc_stat_read(pid, 0, &stat) < 0 || stat.state != 'T')
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return err_file(err, SPULSE_ERROR_IO, ETIMEDOUT, NULL,
			"process %d did not run on after SIGCONT", pid);
}

int proc_stop_end(struct proc_stop *stop, struct spulse_error **err)
{
	int status, r;

	if (!stop->helper)
		return 0;
	status = join_stopper(stop);
	make_usual(stop);
	if (status == STOPPER_EXIT_HELD_TOO_LONG)
		log_debug("process %d ran on before its attach was complete: it was stopped for "
			  "too long", proc_handle_pid(stop->handle));
	/* A tracer's end always lets its threads go. */
	if (!stop->by_signal)
		return 0;
	if (status == -1 || status == STOPPER_EXIT_NOT_RESUMED) {
		r = resume_after_signal(stop, err);
		if (r < 0)
			return r;
	}
	return confirm_running(stop, err);
}

void proc_stop_free(struct proc_stop *stop)
{
	if (!stop)
		return;
	proc_stop_end(stop, NULL);
	vec_free(&stop->tids.tids);
	free(stop);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Stops every thread of a process from a short-lived process of its own.
 *
 * By ptrace: seize each thread, which disturbs none, then interrupt all, wait until all of them
 * trapped, and list again until a listing shows nothing new. Nothing has to be undone: whenever
 * this process ends, for whatever reason, the kernel lets the threads go. A thread that is about
 * to take a signal is sent on with it before it traps. Its wait status is only looked at, never
 * taken: a signal whose status was taken is lost when the tracer dies.
 *
 * By SIGSTOP, where ptrace is denied: the same listing until all are stopped; SIGCONT when the
 * parent says so, is gone or takes too long. This process leaves the parent's session, so that
 * a signal to the parent's group does not reach it.
 *
 * Rules of this file: no libc function that may allocate, lock or set errno.
 */
#include "stopper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ptrace.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "rawcall.h"

#define NO_SANITIZE __attribute__((no_sanitize("address", "undefined", "thread")))
#define NS_PER_MS 1000000ll

/* As the kernel writes a directory entry. */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

NO_SANITIZE static int64_t now_ns(void)
{
	struct timespec ts = { 0 };

	raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0, 0);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

NO_SANITIZE static _Noreturn void leave(int status)
{
	for (;;)
		raw_call(SYS_exit_group, status, 0, 0, 0, 0);
}

/* ---- messages ---- */

NO_SANITIZE static void send_queued(struct stopper *s)
{
	const char *at = (const char *)s->queue;
	size_t left = s->queued * sizeof(s->queue[0]);

	while (left) {
		long n = raw_call(SYS_sendto, s->sock, (long)at, left, 0x4000 /* MSG_NOSIGNAL */,
				  0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break; /* the parent is gone; the wait that follows sees it too */
		at += n;
		left -= n;
	}
	s->queued = 0;
}

NO_SANITIZE static void tell(struct stopper *s, int kind, int value, int tid)
{
	if (s->queued == STOPPER_BATCH)
		send_queued(s);
	s->queue[s->queued].kind = kind;
	s->queue[s->queued].value = value;
	s->queue[s->queued].tid = tid;
	s->queued++;
	if (kind != STOPPER_TID && kind != STOPPER_LIST)
		send_queued(s);
}

/* ---- thread lists ---- */

NO_SANITIZE static bool get_bit(const uint64_t *set, uint32_t i)
{
	return set[i / 64] >> (i % 64) & 1;
}

NO_SANITIZE static void set_bit(uint64_t *set, uint32_t i)
{
	set[i / 64] |= 1ull << (i % 64);
}

NO_SANITIZE static void clear_bit(uint64_t *set, uint32_t i)
{
	set[i / 64] &= ~(1ull << (i % 64));
}

NO_SANITIZE static char *put_number(char *at, uint32_t n)
{
	char digits[10];
	int len = 0;

	do
		digits[len++] = '0' + n % 10;
	while (n /= 10);
	while (len)
		*at++ = digits[--len];
	return at;
}

NO_SANITIZE static char *put_text(char *at, const char *s)
{
	while (*s)
		*at++ = *s++;
	return at;
}

/* Thread id of a directory name; 0 for "." and "..". */
NO_SANITIZE static uint32_t name_number(const char *name)
{
	uint32_t n = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9' || n >= STOPPER_TIDS)
			return 0;
		n = n * 10 + (*name - '0');
	}
	return n < STOPPER_TIDS ? n : 0;
}

/* State letter of a thread; 0 when it is gone. */
NO_SANITIZE static char thread_state(struct stopper *s, uint32_t tid)
{
	char path[32], state = 0;
	long fd, n;

	*put_text(put_number(path, tid), "/stat") = '\0';
	fd = raw_call(SYS_openat, s->dir, (long)path, O_RDONLY | O_CLOEXEC, 0, 0);
	if (fd < 0)
		return 0;
	n = raw_call(SYS_read, fd, (long)s->text, sizeof(s->text), 0, 0);
	raw_call(SYS_close, fd, 0, 0, 0, 0);
	for (long i = n - 3; i > 0 && !state; i--)
		if (s->text[i] == ')')
			state = s->text[i + 2];
	return state;
}

/* Calls visit for each thread until it returns non-zero, which is passed on. */
NO_SANITIZE static long each_thread(struct stopper *s, long (*visit)(struct stopper *, uint32_t))
{
	long r = raw_call(SYS_lseek, s->dir, 0, 0, 0, 0), n;

	if (r < 0)
		return r;
	while ((n = raw_call(SYS_getdents64, s->dir, (long)s->entries, sizeof(s->entries), 0,
			     0)) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(s->entries + at);
			uint32_t tid = name_number(entry->name);

			at += entry->len;
			if (tid && (r = visit(s, tid)))
				return r;
		}
	}
	return n;
}

NO_SANITIZE static long open_task_dir(struct stopper *s)
{
	char path[64];

	*put_text(put_number(put_text(path, "/proc/"), s->target), "/task") = '\0';
	s->dir = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
			  0);
	return s->dir;
}

/* ---- by ptrace ---- */

NO_SANITIZE static void interrupt_listed(struct stopper *s)
{
	for (uint32_t i = 0; i < s->listed; i++)
		raw_call(SYS_ptrace, PTRACE_INTERRUPT, s->list[i], 0, 0, 0);
	s->listed = 0;
}

NO_SANITIZE static bool has_ended(struct stopper *s, uint32_t tid)
{
	char state = thread_state(s, tid);

	return state == 0 || state == 'Z' || state == 'X';
}

/* Seizes a thread that is new, and reports one that is stopped already. */
NO_SANITIZE static long seize(struct stopper *s, uint32_t tid)
{
	long r;

	if (get_bit(s->seized, tid)) {
		if (get_bit(s->stopped, tid))
			tell(s, STOPPER_TID, tid, 0);
		return 0;
	}
	r = raw_call(SYS_ptrace, PTRACE_SEIZE, tid, 0, 0, 0);
	if (r == -ESRCH)
		return 0;
	if (r < 0) {
		/* A zombie leader is refused with EPERM as well. */
		if (has_ended(s, tid))
			return 0;
		tell(s, STOPPER_DENIED, -r, tid);
		return r;
	}
	set_bit(s->seized, tid);
	/* The number may have belonged to another thread before. */
	clear_bit(s->stopped, tid);
	s->fresh++;
	s->pending++;
	if (s->listed == STOPPER_SEIZED_FIRST)
		interrupt_listed(s);
	s->list[s->listed++] = tid;
	return 0;
}

/* One listing; the last one is what the parent gets. */
NO_SANITIZE static bool seize_all(struct stopper *s)
{
	s->fresh = 0;
	tell(s, STOPPER_LIST, 0, 0);
	return each_thread(s, seize) >= 0;
}

NO_SANITIZE static void mark_stopped(struct stopper *s, uint32_t tid)
{
	if (tid < STOPPER_TIDS && get_bit(s->seized, tid) && !get_bit(s->stopped, tid)) {
		set_bit(s->stopped, tid);
		s->pending--;
	}
}

/* Handles one thing that a thread did; false when there is nothing. */
NO_SANITIZE static bool collect_one(struct stopper *s)
{
	siginfo_t info;
	int status, signal;
	long r;

	info.si_pid = 0;
	r = raw_call(SYS_waitid, P_ALL, 0, (long)&info,
		     WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL, 0);
	if (r == -ECHILD)
		s->pending = 0;
	if (r < 0 || info.si_pid == 0)
		return false;
	signal = info.si_status & 0xff;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		raw_call(SYS_wait4, info.si_pid, (long)&status, WNOHANG | __WALL, 0, 0);
		mark_stopped(s, info.si_pid);
	} else if (info.si_status >> 8 == PTRACE_EVENT_STOP) {
		raw_call(SYS_wait4, info.si_pid, (long)&status, WNOHANG | __WALL, 0, 0);
		mark_stopped(s, info.si_pid);
	} else {
		/* About to take a signal: on with it; the interrupt still stands. */
		raw_call(SYS_ptrace, PTRACE_CONT, info.si_pid, 0, signal, 0);
	}
	return true;
}

NO_SANITIZE static void wait_for_news(int64_t ns)
{
	struct timespec ts = { .tv_nsec = ns };
	uint64_t set = 1ull << (SIGCHLD - 1);

	raw_call(SYS_rt_sigtimedwait, (long)&set, 0, (long)&ts, sizeof(set), 0);
}

/*
 * Counts what still runs. A thread that changed its id by execve has left the list; a leader that
 * ended before its threads stays in it, but no news comes of it.
 */
NO_SANITIZE static long count_running(struct stopper *s, uint32_t tid)
{
	if (!get_bit(s->seized, tid) || get_bit(s->stopped, tid))
		return 0;
	if (has_ended(s, tid)) {
		clear_bit(s->seized, tid);
		return 0;
	}
	s->pending++;
	s->last_pending = tid;
	return 0;
}

/* Waits until no seized thread runs; false when the time is over. */
NO_SANITIZE static bool collect_all(struct stopper *s)
{
	while (s->pending) {
		if (collect_one(s))
			continue;
		wait_for_news(5 * NS_PER_MS);
		if (collect_one(s))
			continue;
		s->pending = 0;
		if (each_thread(s, count_running) < 0)
			return false;
		if (s->pending && now_ns() >= s->deadline) {
			tell(s, STOPPER_TIMEOUT, s->last_pending, 0);
			return false;
		}
	}
	return true;
}

NO_SANITIZE static bool stop_by_ptrace(struct stopper *s)
{
	/* Whatever can be done while everything runs is done before the first interrupt. */
	for (int i = 0; i < 3; i++)
		if (!seize_all(s))
			return false;
		else if (s->fresh == 0)
			break;
	s->deadline = now_ns() + s->limit_ns;
	do {
		interrupt_listed(s);
		if (!collect_all(s) || !seize_all(s))
			return false;
		/* Threads that start others faster than we list them are let go as well. */
		if (s->fresh && now_ns() >= s->deadline) {
			tell(s, STOPPER_TIMEOUT, s->list[0], 0);
			return false;
		}
	} while (s->fresh);
	return true;
}

NO_SANITIZE static void hold_by_ptrace(struct stopper *s)
{
	struct pollfd fd = { .fd = s->sock, .events = POLLIN };
	struct timespec ts = {.tv_sec = s->hold_ns / 1000000000,
			      .tv_nsec = s->hold_ns % 1000000000};
	long r;

	if (!stop_by_ptrace(s))
		leave(STOPPER_EXIT_RELEASED);
	tell(s, STOPPER_READY, 0, 0);
	r = raw_call(SYS_ppoll, (long)&fd, 1, (long)&ts, 0, 0);
	leave(r == 0 ? STOPPER_EXIT_HELD_TOO_LONG : STOPPER_EXIT_RELEASED);
}

/* ---- by SIGSTOP ---- */

NO_SANITIZE static long report_stopped(struct stopper *s, uint32_t tid)
{
	if (get_bit(s->stopped, tid))
		tell(s, STOPPER_TID, tid, 0);
	return 0;
}

NO_SANITIZE static long send_signal(struct stopper *s, int signal)
{
	if (s->pidfd >= 0)
		return raw_call(SYS_pidfd_send_signal, s->pidfd, signal, 0, 0, 0);
	return raw_call(SYS_kill, s->target, signal, 0, 0, 0);
}

NO_SANITIZE static long count_unstopped(struct stopper *s, uint32_t tid)
{
	char state = thread_state(s, tid);

	if (state == 'T' || state == 't') {
		s->fresh += !get_bit(s->stopped, tid);
		set_bit(s->stopped, tid);
	} else if (state != 0 && state != 'Z' && state != 'X') {
		s->pending++;
		s->last_pending = tid;
	}
	return 0;
}

NO_SANITIZE static bool parent_is_here(struct stopper *s)
{
	return raw_call(SYS_getppid, 0, 0, 0, 0, 0) == s->parent;
}

/* All are stopped when two listings in a row agree on it. */
NO_SANITIZE static bool wait_all_stopped(struct stopper *s)
{
	struct timespec pause = { .tv_nsec = NS_PER_MS / 2 };
	bool settled = false;

	for (;;) {
		s->pending = s->fresh = 0;
		if (each_thread(s, count_unstopped) < 0)
			return false;
		if (settled && s->pending == 0 && s->fresh == 0)
			return true;
		settled = s->pending == 0;
		if (now_ns() >= s->deadline || !parent_is_here(s)) {
			tell(s, STOPPER_TIMEOUT, s->last_pending, 0);
			return false;
		}
		raw_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0);
	}
}

NO_SANITIZE static void hold_by_signal(struct stopper *s)
{
	struct pollfd fd = { .fd = s->sock, .events = POLLIN };
	struct timespec step = { .tv_nsec = 50 * NS_PER_MS };
	int status = STOPPER_EXIT_RELEASED;
	int64_t end;
	long r;

	raw_call(SYS_setsid, 0, 0, 0, 0, 0);
	if (!parent_is_here(s))
		leave(status);
	s->deadline = now_ns() + s->limit_ns;
	r = send_signal(s, SIGSTOP);
	if (r < 0) {
		tell(s, r == -ESRCH ? STOPPER_GONE : STOPPER_DENIED, -r, s->target);
		leave(status);
	}
	if (wait_all_stopped(s)) {
		each_thread(s, report_stopped);
		tell(s, STOPPER_READY, 0, 0);
		end = now_ns() + s->hold_ns;
		/* A descriptor of ours that the parent leaked to another child keeps the socket
		 * open: the parent itself is looked at as well. */
		while (raw_call(SYS_ppoll, (long)&fd, 1, (long)&step, 0, 0) == 0 &&
		       parent_is_here(s))
			if (now_ns() >= end) {
				status = STOPPER_EXIT_HELD_TOO_LONG;
				break;
			}
	}
	r = send_signal(s, SIGCONT);
	leave(r < 0 && r != -ESRCH ? STOPPER_EXIT_NOT_RESUMED : status);
}

/* ---- start ---- */

/* Keeps only what it needs, so that nobody waits for an end of file because of us. */
NO_SANITIZE static void close_others(struct stopper *s)
{
	uint32_t keep[2] = { s->sock, s->sock }, from = 0;

	if (s->pidfd >= 0) {
		keep[0] = s->pidfd < s->sock ? s->pidfd : s->sock;
		keep[1] = s->pidfd < s->sock ? s->sock : s->pidfd;
	}
	for (int i = 0; i < 2; i++) {
		if (keep[i] > from)
			raw_call(SYS_close_range, from, keep[i] - 1, 0, 0, 0);
		from = keep[i] + 1;
	}
	raw_call(SYS_close_range, from, ~0u, 0, 0, 0);
}

/*
 * While the target stands still, nothing else is worth a turn on the CPU: on a loaded machine it
 * would stand for tens of milliseconds. This process sleeps whenever it waits, and ends with the
 * stop. Without the right to it things stay as they are.
 */
NO_SANITIZE static void hurry(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	raw_call(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, (long)&param, 0, 0);
}

NO_SANITIZE int stopper_main(void *arg)
{
	struct stopper *s = arg;
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} plain = { 0 };

	/* The parent's handler table was copied: a plain SIGCHLD wakes the timed wait. */
	raw_call(SYS_rt_sigaction, SIGCHLD, (long)&plain, 0, sizeof(uint64_t), 0);
	close_others(s);
	hurry();
	if (!s->by_signal) {
		raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (!parent_is_here(s))
			leave(STOPPER_EXIT_RELEASED);
	}
	if (open_task_dir(s) < 0) {
		tell(s, STOPPER_GONE, ESRCH, 0);
		leave(STOPPER_EXIT_RELEASED);
	}
	if (s->by_signal)
		hold_by_signal(s);
	else
		hold_by_ptrace(s);
	return 0;
}

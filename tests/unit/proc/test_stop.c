/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The stop against the real kernel: what the target and the host program notice of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc/proc.h"
#include "random.h"
#include "stop_target.h"

enum { THREADS = 64 };

static int kills = 40; /* 500 with --long */

static struct stop_target target;

static int start_target(void **state)
{
	(void)state;
	return stop_target_start(&target, THREADS, 0) ? 0 : -1;
}

static int end_target(void **state)
{
	(void)state;
	stop_target_end(&target);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* One stop, held for a while. */
static enum proc_stop_outcome stop_once(long hold_us, size_t *threads)
{
	struct proc_handle *handle = NULL;
	struct proc_stop *stop = NULL;
	enum proc_stop_outcome outcome = PROC_STOP_FAILED;
	size_t n = 0;

	if (proc_handle_open(target.pid, &handle, NULL) < 0)
		return outcome;
	if (proc_stop_begin(handle, &stop, &outcome, NULL) == 0) {
		proc_stop_tids(stop, &n);
		if (outcome == PROC_STOP_FAILED)
			print_message("not stopped: %s\n", proc_stop_reason(stop));
	}
	if (hold_us)
		sleep_us(hold_us);
	proc_stop_free(stop);
	proc_handle_free(handle);
	if (threads)
		*threads = n;
	return outcome;
}

/* ---- killed at any moment ---- */

static void stop_and_be_killed(bool by_signal, uint64_t delay_us)
{
	int ready[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (by_signal)
			forbid_ptrace();
		(void)!write(ready[1], "", 1);
		for (;;)
			stop_once(100, NULL);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	sleep_us(delay_us);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void check_kills(bool by_signal)
{
	struct random rng = { .state = 42 };
	int left_stopped = 0;

	for (int i = 0; i < kills; i++) {
		stop_and_be_killed(by_signal, random_below(&rng, by_signal ? 8000 : 4000));
		left_stopped += !stop_target_runs(&target);
	}
	assert_int_equal(left_stopped, 0);
}

static void test_kills_leave_no_target_stopped(void **state)
{
	(void)state;
	check_kills(false);
}

static void test_kills_by_signal_leave_no_target_stopped(void **state)
{
	(void)state;
	check_kills(true);
}

/* ---- what the target is found as ---- */

static void test_all_threads_stop_and_run_on(void **state)
{
	struct proc_handle *handle = NULL;
	enum proc_stop_outcome outcome;
	struct proc_stop *stop = NULL;
	const pid_t *tids;
	uint64_t beats;
	size_t n;

	(void)state;
	assert_int_equal(proc_handle_open(target.pid, &handle, NULL), 0);
	assert_int_equal(proc_stop_begin(handle, &stop, &outcome, NULL), 0);
	assert_int_equal(outcome, PROC_STOP_DONE);
	assert_string_equal(proc_stop_reason(stop), "");
	tids = proc_stop_tids(stop, &n);
	assert_int_equal(n, THREADS);
	for (size_t i = 1; i < n; i++)
		assert_true(tids[i - 1] < tids[i]);
	beats = target.page->beats;
	sleep_us(20000);
	assert_int_equal(__atomic_load_n(&target.page->beats, __ATOMIC_SEQ_CST), beats);
	assert_int_equal(proc_stop_end(stop, NULL), 0);
	assert_int_equal(proc_stop_end(stop, NULL), 0);
	assert_true(stop_target_runs(&target));
	proc_stop_free(stop);
	proc_handle_free(handle);
}

static int become_urgent(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	return sched_setscheduler(0, SCHED_FIFO, &param) < 0;
}

/* Runs fn in a child, whose exit status tells how it went. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_a_stop_waits_for_no_other_work(void **state)
{
	int policy = sched_getscheduler(0), nice_before = getpriority(PRIO_PROCESS, 0);
	pid_t tracer = 0;
	struct proc_handle *handle = NULL;
	enum proc_stop_outcome outcome;
	struct proc_stop *stop = NULL;

	(void)state;
	if (in_child(become_urgent) || policy != SCHED_OTHER)
		skip();
	assert_int_equal(proc_handle_open(target.pid, &handle, NULL), 0);
	assert_int_equal(proc_stop_begin(handle, &stop, &outcome, NULL), 0);
	assert_int_equal(outcome, PROC_STOP_DONE);
	assert_int_equal(proc_tracer_read(target.pid, target.pid, &tracer), 0);
	assert_int_equal(sched_getscheduler(tracer), SCHED_FIFO | SCHED_RESET_ON_FORK);
	assert_int_equal(sched_getscheduler(0), SCHED_FIFO);
	assert_int_equal(proc_stop_end(stop, NULL), 0);
	assert_int_equal(sched_getscheduler(0), policy);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_before);
	proc_stop_free(stop);
	proc_handle_free(handle);
}

static int stop_by_signal(void)
{
	size_t n = 0;

	forbid_ptrace();
	if (stop_once(1000, &n) != PROC_STOP_DONE)
		return 1;
	return n == THREADS ? 0 : 2;
}

static void test_all_threads_stop_by_signal_where_ptrace_is_denied(void **state)
{
	(void)state;
	assert_int_equal(in_child(stop_by_signal), 0);
	assert_true(stop_target_runs(&target));
}

static void test_stopped_target_stays_stopped(void **state)
{
	size_t n;

	(void)state;
	kill(target.pid, SIGSTOP);
	while (!stop_target_is_stopped(&target))
		sleep_us(1000);
	assert_int_equal(stop_once(0, &n), PROC_STOP_FOREIGN);
	assert_int_equal(n, THREADS);
	sleep_us(10000);
	assert_true(stop_target_is_stopped(&target));
	kill(target.pid, SIGCONT);
	assert_true(stop_target_runs(&target));
}

static int tracer_of(pid_t pid)
{
	pid_t tracer = -1;

	proc_tracer_read(pid, pid, &tracer);
	return tracer;
}

static void test_traced_target_is_left_to_its_tracer(void **state)
{
	pid_t debugger = fork();

	(void)state;
	if (debugger == 0) {
		if (ptrace(PTRACE_SEIZE, target.pid, NULL, NULL))
			_exit(1);
		pause();
		_exit(0);
	}
	while (tracer_of(target.pid) == 0)
		sleep_us(1000);
	assert_int_equal(stop_once(0, NULL), PROC_STOP_TRACED);
	assert_int_equal(tracer_of(target.pid), debugger);
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
	assert_true(stop_target_runs(&target));
}

/* ---- what the host program notices ---- */

static int children_signals;
static int foreign_waits;

static void count_signal(int signal)
{
	(void)signal;
	__atomic_add_fetch(&children_signals, 1, __ATOMIC_SEQ_CST);
}

static void *wait_for_anything(void *arg)
{
	(void)arg;
	while (waitpid(-1, NULL, 0) > 0)
		__atomic_add_fetch(&foreign_waits, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int be_a_host(void)
{
	struct sigaction action = { .sa_handler = count_signal };
	int bad_stops = 0;
	pthread_t thread;
	pid_t child;

	sigaction(SIGCHLD, &action, NULL);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	if (pthread_create(&thread, NULL, wait_for_anything, NULL))
		return 1;
	for (int i = 0; i < 100; i++)
		bad_stops += stop_once(0, NULL) != PROC_STOP_DONE;
	if (bad_stops)
		return 2;
	if (children_signals || foreign_waits)
		return 3;
	/* The counters do count. */
	kill(child, SIGKILL);
	pthread_join(thread, NULL);
	return foreign_waits == 1 && children_signals == 1 ? 0 : 4;
}

static void test_host_that_waits_for_children_notices_nothing(void **state)
{
	(void)state;
	assert_int_equal(in_child(be_a_host), 0);
	assert_true(stop_target_runs(&target));
}

/* ---- time ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The longest gap that a busy thread of the target saw while fn ran. */
static uint64_t gap_during(void (*fn)(void))
{
	target.page->longest_gap_ns = 0;
	__atomic_store_n(&target.page->watch, true, __ATOMIC_SEQ_CST);
	sleep_us(5000);
	__atomic_store_n(&target.page->longest_gap_ns, 0, __ATOMIC_SEQ_CST);
	fn();
	sleep_us(2000);
	__atomic_store_n(&target.page->watch, false, __ATOMIC_SEQ_CST);
	sleep_us(3000);
	return target.page->longest_gap_ns;
}

static void do_nothing(void)
{
	sleep_us(3000);
}

static void do_stop(void)
{
	stop_once(0, NULL);
}

/* The limit is wide, as the machine may be busy; the figures are printed. */
static void test_stop_is_short(void **state)
{
	enum { ROUNDS = 31 };
	uint64_t idle[ROUNDS], stopped[ROUNDS];

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		idle[i] = gap_during(do_nothing);
		stopped[i] = gap_during(do_stop);
	}
	qsort(idle, ROUNDS, sizeof(idle[0]), compare_u64);
	qsort(stopped, ROUNDS, sizeof(stopped[0]), compare_u64);
	print_message("longest gap, median of %d: %.3f ms with a stop of %d threads, %.3f ms "
		      "without\n", ROUNDS, stopped[ROUNDS / 2] / 1e6, THREADS,
		      idle[ROUNDS / 2] / 1e6);
	assert_true(stopped[ROUNDS / 2] < 50000000);
}

static int start_target_with_vfork(void **state)
{
	(void)state;
	return stop_target_start(&target, 8, 1500) ? 0 : -1;
}

/* A parent in vfork cannot be stopped: the other threads are not held until it returns. */
static void test_uninterruptible_thread_does_not_hold_the_others(void **state)
{
	struct proc_handle *handle = NULL;
	enum proc_stop_outcome outcome;
	struct proc_stop *stop = NULL;
	uint64_t start;

	(void)state;
	assert_int_equal(proc_handle_open(target.pid, &handle, NULL), 0);
	__atomic_store_n(&target.page->watch, true, __ATOMIC_SEQ_CST);
	sleep_us(50000);
	start = now_ns();
	assert_int_equal(proc_stop_begin(handle, &stop, &outcome, NULL), 0);
	assert_int_equal(outcome, PROC_STOP_FAILED);
	assert_non_null(strstr(proc_stop_reason(stop), "did not stop within 100 ms"));
	assert_true(now_ns() - start < 1000000000);
	assert_true(stop_target_runs(&target));
	assert_true(target.page->longest_gap_ns < 1000000000);
	__atomic_store_n(&target.page->watch, false, __ATOMIC_SEQ_CST);
	proc_stop_free(stop);
	proc_handle_free(handle);
}

static void test_a_process_does_not_stop_itself(void **state)
{
	struct proc_handle *handle = NULL;
	enum proc_stop_outcome outcome;
	struct proc_stop *stop = NULL;

	(void)state;
	assert_int_equal(proc_handle_open(getpid(), &handle, NULL), 0);
	assert_int_equal(proc_stop_begin(handle, &stop, &outcome, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	proc_handle_free(handle);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start_target, end_target)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(test_all_threads_stop_and_run_on),
		CASE(test_all_threads_stop_by_signal_where_ptrace_is_denied),
		CASE(test_stopped_target_stays_stopped),
		CASE(test_a_stop_waits_for_no_other_work),
		CASE(test_traced_target_is_left_to_its_tracer),
		CASE(test_host_that_waits_for_children_notices_nothing),
		CASE(test_stop_is_short),
		cmocka_unit_test_setup_teardown(
			test_uninterruptible_thread_does_not_hold_the_others,
			start_target_with_vfork, end_target),
		cmocka_unit_test(test_a_process_does_not_stop_itself),
		CASE(test_kills_leave_no_target_stopped),
		CASE(test_kills_by_signal_leave_no_target_stopped),
	};

	if (argc == 2 && !strcmp(argv[1], "--long"))
		kills = 500;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

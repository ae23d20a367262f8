/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A recorder that is killed while it attaches leaves its target running; a host notices nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "random.h"
#include "stop_target.h"

enum { THREADS = 64 };

static int kills = 25; /* 500 with --long */
static struct stop_target target;

static int setup(void **state)
{
	int r = live_setup(state);

	return stop_target_start(&target, THREADS, 0) ? r : -1;
}

static int teardown(void **state)
{
	stop_target_end(&target);
	return live_teardown(state);
}

/* One attach and its end. */
static int attach_once(void)
{
	int r = spulse_recorder_attach(target.pid, live.path, SPULSE_ATTACH_STOP, LIVE_OPTIONS(),
				       &live.recorder, NULL);

	spulse_recorder_free(live.recorder);
	live.recorder = NULL;
	unlink(live.path);
	return r;
}

/* ---- killed at any moment ---- */

static void attach_and_be_killed(bool by_signal, useconds_t delay)
{
	int ready[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (by_signal)
			forbid_ptrace();
		(void)!write(ready[1], "", 1);
		while (attach_once() == 0)
			;
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	usleep(delay);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void check_kills(bool by_signal)
{
	struct random rng = {.state = 7};
	int left_stopped = 0;

	for (int i = 0; i < kills; i++) {
		attach_and_be_killed(by_signal, random_below(&rng, 40000));
		left_stopped += !stop_target_runs(&target);
	}
	assert_int_equal(left_stopped, 0);
}

static void a_recorder_killed_while_it_attaches_leaves_the_target_running(void **state)
{
	(void)state;
	check_kills(false);
}

static void without_ptrace_the_target_runs_on_too(void **state)
{
	(void)state;
	check_kills(true);
}

/* ---- a host with children of its own ---- */

static int child_signals, foreign_waits;

static void count_signal(int signal)
{
	(void)signal;
	__atomic_add_fetch(&child_signals, 1, __ATOMIC_SEQ_CST);
}

static void *wait_for_anything(void *arg)
{
	(void)arg;
	while (waitpid(-1, NULL, 0) > 0)
		__atomic_add_fetch(&foreign_waits, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The report's result says what the host noticed. */
static void be_a_host(struct live_report *report)
{
	struct sigaction action = {.sa_handler = count_signal};
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
		_exit(1);
	for (int i = 0; i < 20; i++)
		if (attach_once() < 0)
			_exit(2);
	report->result = child_signals + foreign_waits;
	/* The counters do count. */
	kill(child, SIGKILL);
	pthread_join(thread, NULL);
	report->samples = foreign_waits + child_signals;
}

static void a_host_that_waits_for_children_notices_nothing(void **state)
{
	struct live_report report = live_in_child(be_a_host);

	(void)state;
	assert_int_equal(report.result, 0);
	assert_int_equal(report.samples, 2);
	assert_true(stop_target_runs(&target));
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_recorder_killed_while_it_attaches_leaves_the_target_running),
		TEST(without_ptrace_the_target_runs_on_too),
		TEST(a_host_that_waits_for_children_notices_nothing),
	};

	if (argc == 2 && !strcmp(argv[1], "--long"))
		kills = 500;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

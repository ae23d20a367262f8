/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/procfs.h"

static pid_t child;

static int setup(void **state)
{
	(void)state;
	child = fork();
	if (child == 0) {
		for (;;)
			pause();
	}
	return child < 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

/* Dead, but not reaped. */
static void make_zombie(void)
{
	siginfo_t info;

	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
}

static void test_ids(void **state)
{
	static const int64_t bad[] = { 0, -1, INT64_MIN, 2147483648, INT64_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(spulse_pid_valid(bad[i]));
		assert_false(spulse_tid_valid(bad[i]));
	}
	assert_true(spulse_pid_valid(1) && spulse_tid_valid(1));
	assert_true(spulse_pid_valid(2147483647) && spulse_tid_valid(2147483647));
}

static void test_calls_refuse_bad_ids(void **state)
{
	struct spulse_exit_watcher *watcher;

	(void)state;
	assert_int_equal(spulse_process_exists(0, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_process_is_alive(NULL, -1, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_process_interrupt(0, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_process_kill(-1, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_exit_watcher_new(0, &watcher, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void test_watcher_sees_the_end_once_and_for_all(void **state)
{
	SPULSE_CLEANUP(exit_watcher) watcher = NULL;
	enum spulse_exit_state exited;

	(void)state;
	assert_int_equal(spulse_exit_watcher_new(child, &watcher, NULL), 0);
	assert_true(spulse_exit_watcher_fd(watcher) >= 0);
	assert_int_equal(spulse_exit_watcher_poll(watcher, &exited, NULL), 0);
	assert_int_equal(exited, SPULSE_EXIT_STATE_RUNNING);
	assert_int_equal(spulse_process_is_alive(watcher, child, NULL), 1);
	assert_int_equal(spulse_process_is_alive(watcher, getpid(), NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	make_zombie();
	assert_int_equal(spulse_exit_watcher_poll(watcher, &exited, NULL), 0);
	assert_int_equal(exited, SPULSE_EXIT_STATE_EXITED);
	assert_int_equal(spulse_process_is_alive(watcher, child, NULL), 0);
	waitpid(child, NULL, 0);
	assert_int_equal(spulse_exit_watcher_poll(watcher, &exited, NULL), 0);
	assert_int_equal(exited, SPULSE_EXIT_STATE_EXITED);
}

static void test_broken_watcher_is_an_error_and_no_answer(void **state)
{
	struct spulse_exit_watcher *watcher = NULL;
	struct spulse_error *err = NULL;
	enum spulse_exit_state exited = 77;
	int null;

	(void)state;
	assert_int_equal(spulse_exit_watcher_new(child, &watcher, NULL), 0);
	close(spulse_exit_watcher_fd(watcher));
	assert_int_equal(spulse_exit_watcher_poll(watcher, &exited, &err), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), EBADF);
	assert_int_equal(exited, 77);
	spulse_error_free(err);
	/* Give the watcher something to close. */
	null = dup(0);
	assert_int_equal(null, spulse_exit_watcher_fd(watcher));
	spulse_exit_watcher_free(watcher);
}

static void test_zombie_exists_but_is_not_alive(void **state)
{
	(void)state;
	assert_int_equal(spulse_process_exists(child, NULL), 1);
	assert_int_equal(spulse_process_is_alive(NULL, child, NULL), 1);
	make_zombie();
	assert_int_equal(spulse_process_exists(child, NULL), 1);
	assert_int_equal(spulse_process_is_alive(NULL, child, NULL), 0);
	waitpid(child, NULL, 0);
	assert_int_equal(spulse_process_exists(child, NULL), 0);
	assert_int_equal(spulse_process_is_alive(NULL, child, NULL), 0);
}

static void test_signals(void **state)
{
	int status;

	(void)state;
	assert_int_equal(spulse_process_interrupt(child, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
}

static void test_signals_to_nobody(void **state)
{
	struct spulse_error *err = NULL;

	(void)state;
	assert_int_equal(spulse_process_kill(2147483647, &err), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(spulse_error_errno(err), ESRCH);
	spulse_error_free(err);
	err = NULL;
	assert_int_equal(spulse_process_interrupt(2147483647, &err), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(spulse_error_errno(err), ESRCH);
	spulse_error_free(err);
}

static void test_many_handles_are_asked_at_once(void **state)
{
	struct proc_handle *handles[3];
	bool exited[3];

	(void)state;
	assert_int_equal(proc_handle_open(getpid(), &handles[0], NULL), 0);
	assert_int_equal(proc_handle_open(child, &handles[1], NULL), 0);
	assert_int_equal(proc_handle_open(getppid(), &handles[2], NULL), 0);
	assert_int_equal(proc_handles_exited(handles, 3, exited, NULL), 0);
	assert_false(exited[0] || exited[1] || exited[2]);
	make_zombie();
	assert_int_equal(proc_handles_exited(handles, 3, exited, NULL), 0);
	assert_true(!exited[0] && exited[1] && !exited[2]);
	assert_int_equal(proc_handles_exited(handles, 3, exited, NULL), 0);
	assert_true(exited[1]);
	assert_int_equal(proc_handles_exited(NULL, 0, NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		proc_handle_free(handles[i]);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_calls_refuse_bad_ids),
		CASE(test_watcher_sees_the_end_once_and_for_all),
		CASE(test_broken_watcher_is_an_error_and_no_answer),
		CASE(test_zombie_exists_but_is_not_alive),
		CASE(test_signals),
		cmocka_unit_test(test_signals_to_nobody),
		CASE(test_many_handles_are_asked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

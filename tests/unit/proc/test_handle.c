/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A process and no later one of its number, with a pidfd and where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/procfs.h"

static int refusal; /* of pidfd_open: errno, or 0 */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_pidfd_open && refusal) {
		errno = refusal;
		return -1;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Everything must hold for each of them; 0: with a pidfd. */
static const int refusals[] = {0, ENOSYS, EMFILE, EPERM, EINVAL};
enum { REFUSALS = sizeof(refusals) / sizeof(*refusals) };

static pid_t child;
static struct proc_handle *handle;

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void *thread_body(void *data)
{
	wait_for_ever();
	return data;
}

static void leave_the_leader(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_body, NULL);
	__real_syscall(SYS_exit, 0);
}

static void start(void (*body)(void))
{
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	assert_int_equal(proc_handle_open(child, &handle, NULL), 0);
	assert_int_equal(proc_handle_fd(handle) >= 0, refusal == 0);
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	proc_handle_free(handle);
}

static void make_zombie(void)
{
	siginfo_t info;

	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
}

static void a_process_runs_until_it_is_a_zombie(void **state)
{
	(void)state;
	for (int i = 0; i < REFUSALS; i++) {
		bool exited = true;

		refusal = refusals[i];
		start(wait_for_ever);
		assert_int_equal(proc_handle_exited(handle, NULL), 0);
		assert_int_equal(proc_handles_exited(&handle, 1, &exited, NULL), 0);
		assert_false(exited);
		make_zombie();
		assert_int_equal(proc_handle_exited(handle, NULL), 1);
		waitpid(child, NULL, 0);
		/* For good. */
		assert_int_equal(proc_handle_exited(handle, NULL), 1);
		assert_int_equal(proc_handles_exited(&handle, 1, &exited, NULL), 0);
		assert_true(exited);
		end();
	}
}

static char state_of_leader(void)
{
	struct proc_stat stat = {0};

	return proc_stat_read(child, 0, &stat) == 0 ? stat.state : 0;
}

static void a_process_outlives_its_leader(void **state)
{
	(void)state;
	for (int i = 0; i < REFUSALS; i++) {
		refusal = refusals[i];
		start(leave_the_leader);
		while (state_of_leader() != 'Z')
			usleep(1000);
		assert_int_equal(proc_handle_exited(handle, NULL), 0);
		make_zombie();
		assert_int_equal(proc_handle_exited(handle, NULL), 1);
		end();
	}
}

static void signals_reach_the_process_and_no_zombie(void **state)
{
	int status;

	(void)state;
	for (int i = 0; i < REFUSALS; i++) {
		siginfo_t info;

		refusal = refusals[i];
		start(wait_for_ever);
		assert_int_equal(proc_handle_signal(handle, SIGTERM), 0);
		assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
		if (refusal)
			assert_int_equal(proc_handle_signal(handle, SIGTERM), -ESRCH);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WTERMSIG(status), SIGTERM);
		assert_int_equal(proc_handle_signal(handle, SIGTERM), -ESRCH);
		end();
	}
}

/* A /proc in which another process has the number. */
static void write_stat(const char *root, unsigned long long start_time)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", root, child);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/stat", root, child);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%d (other) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0\n", child,
		start_time);
	fclose(f);
}

static void the_next_process_of_a_number_is_another_one(void **state)
{
	char root[] = "/tmp/test-handle-XXXXXX", command[64];
	struct proc_stat stat;

	(void)state;
	assert_non_null(mkdtemp(root));
	refusal = ENOSYS;
	start(wait_for_ever);
	assert_int_equal(proc_stat_read(child, 0, &stat), 0);
	proc_root = root;
	write_stat(root, stat.start_time);
	assert_int_equal(proc_handle_exited(handle, NULL), 0);
	write_stat(root, stat.start_time + 1);
	assert_int_equal(proc_handle_signal(handle, SIGKILL), -ESRCH);
	assert_int_equal(proc_handle_exited(handle, NULL), 1);
	proc_root = "/proc";
	/* The signal was not sent. */
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	end();
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void a_process_that_never_was_is_gone(void **state)
{
	struct spulse_error *err = NULL;

	(void)state;
	refusal = ENOSYS;
	assert_int_equal(proc_handle_open(INT32_MAX, &handle, &err), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(spulse_error_errno(err), ESRCH);
	spulse_error_free(err);
}

static void a_watcher_signals_what_it_watches(void **state)
{
	struct spulse_exit_watcher *watcher = NULL;
	struct spulse_error *err = NULL;
	int status;

	(void)state;
	for (int i = 0; i < REFUSALS; i++) {
		refusal = refusals[i];
		start(wait_for_ever);
		assert_int_equal(spulse_exit_watcher_new(child, &watcher, NULL), 0);
		assert_int_equal(spulse_exit_watcher_signal(watcher, 0, NULL), 0);
		assert_int_equal(spulse_exit_watcher_signal(watcher, 1000, NULL),
				 -SPULSE_ERROR_INVALID_INPUT);
		assert_int_equal(spulse_exit_watcher_signal(watcher, SIGUSR1, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WTERMSIG(status), SIGUSR1);
		assert_int_equal(spulse_exit_watcher_signal(watcher, SIGUSR1, &err),
				 -SPULSE_ERROR_TARGET_GONE);
		assert_non_null(strstr(spulse_error_message(err), "SIGUSR1"));
		spulse_error_free(err);
		err = NULL;
		spulse_exit_watcher_free(watcher);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_runs_until_it_is_a_zombie),
		cmocka_unit_test(a_process_outlives_its_leader),
		cmocka_unit_test(signals_reach_the_process_and_no_zombie),
		cmocka_unit_test(the_next_process_of_a_number_is_another_one),
		cmocka_unit_test(a_process_that_never_was_is_gone),
		cmocka_unit_test(a_watcher_signals_what_it_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

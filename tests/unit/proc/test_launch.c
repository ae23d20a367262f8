/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc/procfs.h"

static int read_end, write_end;

/* The launched program writes into a pipe of ours. */
static int setup(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	read_end = fds[0];
	fcntl(read_end, F_SETFD, FD_CLOEXEC);
	write_end = dup2(fds[1], 200);
	close(fds[1]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(read_end);
	if (write_end >= 0)
		close(write_end);
	return 0;
}

static struct spulse_launch *launch(const char *const *argv, const char *const *overrides)
{
	struct spulse_launch *l = NULL;

	assert_int_equal(spulse_launch_new(argv, SPULSE_OPTS(launch_options, .overrides = overrides),
					   &l, NULL), 0);
	return l;
}

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Runs a program to its end; returns what it wrote to its standard output. */
static const char *run_program(const char *const *argv, const char *const *overrides)
{
	static char output[4096];
	int status, out = fcntl(1, F_DUPFD_CLOEXEC, 0);
	struct spulse_launch *l;
	ssize_t n;

	dup2(write_end, 1);
	l = launch(argv, overrides);
	dup2(out, 1);
	close(out);
	close(write_end);
	write_end = -1;
	assert_int_equal(spulse_launch_run(l, NULL, NULL), 0);
	n = read_full(read_end, output, sizeof(output) - 1);
	output[n > 0 ? n : 0] = '\0';
	assert_int_equal(spulse_launch_wait(l, &status, NULL), 0);
	assert_int_equal(status, 0);
	spulse_launch_free(l);
	return output;
}

static void test_child_waits_until_it_is_run(void **state)
{
	struct spulse_launch *l = launch(ARGV("/bin/sh", "-c", "exit 7"), NULL);
	pid_t pid = spulse_launch_pid(l);
	int status = 99;

	(void)state;
	usleep(50000);
	assert_int_equal(spulse_launch_try_wait(l, &status, NULL), 0);
	assert_int_equal(status, 99);
	assert_int_equal(spulse_launch_run(l, NULL, NULL), 0);
	assert_int_equal(spulse_launch_wait(l, &status, NULL), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	/* The status stays, and so does the number. */
	status = 0;
	assert_int_equal(spulse_launch_wait(l, &status, NULL), 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	status = 0;
	assert_int_equal(spulse_launch_try_wait(l, &status, NULL), 1);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(spulse_launch_pid(l), pid);
	assert_int_equal(spulse_launch_kill(l, NULL), 0);
	spulse_launch_free(l);
}

static struct spulse_recorder *told;
static char told_message[256];

static void hook(struct spulse_recorder *recorder, struct spulse_error *error)
{
	told = recorder;
	snprintf(told_message, sizeof(told_message), "%s", spulse_error_message(error));
}

static void expect_launch_failure(const char *program, int errnum)
{
	struct spulse_launch *l = launch(ARGV(program), NULL);
	struct spulse_error *err = NULL;
	struct spulse_recorder *recorder = (struct spulse_recorder *)&err;

	proc_launch_set_failed_hook(hook);
	assert_int_equal(spulse_launch_run(l, recorder, &err), -SPULSE_ERROR_PROCESS_LAUNCH);
	assert_int_equal(spulse_error_errno(err), errnum);
	assert_non_null(strstr(spulse_error_message(err), program));
	assert_ptr_equal(told, recorder);
	assert_string_equal(told_message, spulse_error_message(err));
	proc_launch_set_failed_hook(NULL);
	/* It was reaped. */
	assert_int_equal(waitpid(spulse_launch_pid(l), NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	spulse_error_free(err);
	err = NULL;
	assert_int_equal(spulse_launch_run(l, NULL, &err), -SPULSE_ERROR_INVALID_INPUT);
	spulse_error_free(err);
	spulse_launch_free(l);
}

static void test_missing_program(void **state)
{
	(void)state;
	expect_launch_failure("/nonexistent/program", ENOENT);
	expect_launch_failure("no-such-program-in-path", ENOENT);
}

static void test_file_that_is_not_executable(void **state)
{
	(void)state;
	expect_launch_failure("/etc/passwd", EACCES);
}

static void test_arguments_are_checked(void **state)
{
	struct spulse_launch *l = NULL;
	struct spulse_launch_options bad = { .size = sizeof(bad) };
	const char *const overrides[] = { "GOOD=1", "BAD", NULL };

	(void)state;
	assert_int_equal(spulse_launch_new(NULL, NULL, &l, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_launch_new((const char *const[]){ NULL }, NULL, &l, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	bad.overrides = overrides;
	assert_int_equal(spulse_launch_new(ARGV("/bin/true"), &bad, &l, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_freed_before_it_ran(void **state)
{
	struct spulse_launch *first = launch(ARGV("/bin/true"), NULL);
	/* The second child has a copy of the first one's pipe. */
	struct spulse_launch *second = launch(ARGV("/bin/true"), NULL);
	struct timespec before, after;
	pid_t pid = spulse_launch_pid(first);

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &before);
	spulse_launch_free(first);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec - before.tv_sec < 3);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(spulse_launch_run(second, NULL, NULL), 0);
	spulse_launch_free(second);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void test_freed_while_it_runs(void **state)
{
	struct spulse_launch *l = launch(ARGV("/bin/sh", "-c", "exit 3"), NULL);
	pid_t pid = spulse_launch_pid(l);
	int status;

	(void)state;
	assert_int_equal(spulse_launch_run(l, NULL, NULL), 0);
	spulse_launch_free(l);
	/* Either reaped by the free or left to us, never killed. */
	if (waitpid(pid, &status, 0) == pid)
		assert_int_equal(WEXITSTATUS(status), 3);
}

static void test_environment(void **state)
{
	(void)state;
	setenv("SPULSE_TEST_KEPT", "kept", 1);
	setenv("SPULSE_TEST_OLD", "old", 1);
	assert_string_equal(run_program(ARGV("/bin/sh", "-c", "echo $SPULSE_TEST_KEPT "
					     "$SPULSE_TEST_OLD $SPULSE_TEST_NEW"),
					ARGV("SPULSE_TEST_NEW=1", "SPULSE_TEST_OLD=new",
					     "SPULSE_TEST_NEW=2")),
			    "kept new 2\n");
}

static void test_program_is_found_by_its_own_path(void **state)
{
	char dir[] = "/tmp/spulse-launch-XXXXXX", file[64], path[64];
	struct spulse_launch *l;
	int status;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/spulse-odd-program", dir);
	f = fopen(file, "w");
	fputs("#!/bin/sh\nexit 42\n", f);
	fclose(f);
	chmod(file, 0755);
	snprintf(path, sizeof(path), "PATH=%s", dir);
	l = launch(ARGV("spulse-odd-program"), ARGV(path));
	assert_int_equal(spulse_launch_run(l, NULL, NULL), 0);
	assert_int_equal(spulse_launch_wait(l, &status, NULL), 0);
	assert_int_equal(WEXITSTATUS(status), 42);
	spulse_launch_free(l);
	unlink(file);
	rmdir(dir);
}

static void test_signals_of_the_child(void **state)
{
	sigset_t set, old;
	const char *output;
	unsigned long ignored, blocked;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &old);
	output = run_program(ARGV("/bin/grep", "-E", "SigIgn|SigBlk", "/proc/self/status"),
			     NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(sscanf(output, "SigBlk: %lx SigIgn: %lx", &blocked, &ignored), 2);
	assert_false(ignored & 1ul << (SIGPIPE - 1));
	assert_true(blocked & 1ul << (SIGUSR2 - 1));
}

/* Pipes that a program gets from us, its output always being one. */
static int count_inherited_pipes(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);
		struct stat st;

		if (flags >= 0 && !(flags & FD_CLOEXEC) && fstat(fd, &st) == 0)
			count += fd == 1 || S_ISFIFO(st.st_mode);
	}
	return count;
}

static void test_no_descriptor_of_ours_reaches_the_program(void **state)
{
	struct spulse_launch *other;
	const char *output;
	int pipes = 0, expected;

	/* A child that waits would keep our pipe open. */
	teardown(state);
	other = launch(ARGV("/bin/true"), NULL);
	setup(state);
	expected = count_inherited_pipes();
	output = run_program(ARGV("/bin/ls", "-l", "/proc/self/fd"), NULL);
	assert_null(strstr(output, "pidfd"));
	for (const char *at = strstr(output, "pipe:"); at; at = strstr(at + 1, "pipe:"))
		pipes++;
	assert_int_equal(pipes, expected);
	spulse_launch_free(other);
}

static void test_death_by_signal(void **state)
{
	struct spulse_launch *l = launch(ARGV("/bin/sleep", "100"), NULL);
	int status;

	(void)state;
	assert_int_equal(spulse_launch_run(l, NULL, NULL), 0);
	assert_int_equal(spulse_launch_try_wait(l, &status, NULL), 0);
	assert_int_equal(spulse_launch_kill(l, NULL), 0);
	assert_int_equal(spulse_launch_wait(l, &status, NULL), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	spulse_launch_free(l);
}

static void test_child_that_died_before_it_was_run(void **state)
{
	struct spulse_launch *l = launch(ARGV("/bin/true"), NULL);
	struct spulse_error *err = NULL;

	(void)state;
	kill(spulse_launch_pid(l), SIGKILL);
	usleep(50000);
	/* Without a SIGPIPE for us. */
	assert_int_equal(spulse_launch_run(l, NULL, &err), -SPULSE_ERROR_PROCESS_LAUNCH);
	assert_int_equal(spulse_error_errno(err), EPIPE);
	spulse_error_free(err);
	spulse_launch_free(l);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_child_waits_until_it_is_run),
		CASE(test_missing_program),
		CASE(test_file_that_is_not_executable),
		CASE(test_arguments_are_checked),
		CASE(test_freed_before_it_ran),
		CASE(test_freed_while_it_runs),
		CASE(test_environment),
		CASE(test_program_is_found_by_its_own_path),
		CASE(test_signals_of_the_child),
		CASE(test_no_descriptor_of_ours_reaches_the_program),
		CASE(test_death_by_signal),
		CASE(test_child_that_died_before_it_was_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Attaching where something is in the way: rights, limits, names, namespaces, races. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "stop_target.h"

/* ---- what targets do ---- */

static void burn_on(struct target *self)
{
	target_ready(self);
	for (;;)
		burn(100);
}

static void *burn_thread(void *data)
{
	(void)data;
	for (;;)
		burn(100);
	return NULL;
}

/* Six calls deep, found by frame pointers alone. */
static __attribute__((noinline)) unsigned long descend(int depth)
{
	volatile unsigned long sink = 0;

	if (depth)
		return descend(depth - 1) + 1;
	while (getppid())
		for (int i = 0; i < 2000000; i++)
			sink = sink * 31 + i;
	return sink;
}

static void descend_as_user(struct target *self)
{
	if (!live_become(LIVE_USER, 0))
		_exit(1);
	target_ready(self);
	descend(6);
}

/* ---- a failed attach ---- */

static void a_failed_attach_lets_the_target_run(void **state)
{
	const struct {
		const char *path;
		struct spulse_recorder_options options;
	} cases[] = {
		{live.path, {.ring_buffer_stacks = 1 << 20}},
		{live.path, {.stack_size = SPULSE_MAX_SAMPLE_USER_STACK + 1}},
		{live.path, {.frequency = INT32_MAX}},
		{"/nonexistent/x.spool", {.frequency = 99}},
		{"/dev/full/x.spool", {.frequency = 99}},
	};

	(void)state;
	live.target = target_start(burn_on);
	for (size_t i = 0; i < 2 * (sizeof(cases) / sizeof(*cases)); i++) {
		struct spulse_recorder_options options = cases[i / 2].options;
		size_t before = open_descriptors();

		options.size = sizeof(options);
		assert_true(
			spulse_recorder_attach(live.target.pid, cases[i / 2].path,
					       i % 2 ? SPULSE_ATTACH_STOP : SPULSE_ATTACH_RUNNING,
					       &options, &live.recorder, NULL) < 0);
		assert_null(live.recorder);
		assert_non_null(strchr("RS", target_state(live.target.pid)));
		assert_int_equal(open_descriptors(), before);
		assert_int_equal(access(live.path, F_OK), -1);
	}
}

/* ---- rights ---- */

static void try_as_user(struct live_report *report, enum spulse_attach_mode mode)
{
	if (live_become(LIVE_USER, 0))
		live_try(report, mode, LIVE_OPTIONS());
	else
		report->error = EPERM;
}

static void try_stop(struct live_report *report)
{
	try_as_user(report, SPULSE_ATTACH_STOP);
}

static void try_running(struct live_report *report)
{
	try_as_user(report, SPULSE_ATTACH_RUNNING);
}

static void expect_denied(const struct live_report *report)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", live.target.pid);
	assert_int_equal(report->result, -SPULSE_ERROR_PERMISSION);
	assert_int_equal(report->errnum, EACCES);
	assert_non_null(strstr(report->message, "perf_event_open"));
	assert_non_null(strstr(report->message, "CPU "));
	assert_non_null(strstr(report->message, number));
	assert_non_null(strchr("RS", target_state(live.target.pid)));
}

static void the_process_of_another_user_is_refused_and_left_alone(void **state)
{
	struct live_report report;

	(void)state;
	live.target = target_start(burn_on);
	report = live_in_child(try_stop);
	expect_denied(&report);
	report = live_in_child(try_running);
	expect_denied(&report);
}

static void try_hidden(struct live_report *report)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, "hidepid=2") < 0)
		report->error = EPERM;
	else
		try_as_user(report, SPULSE_ATTACH_STOP);
}

static void a_hidden_process_is_not_said_to_be_gone(void **state)
{
	struct live_report report;

	(void)state;
	live.target = target_start(burn_on);
	report = live_in_child(try_hidden);
	assert_int_equal(report.result, -SPULSE_ERROR_PERMISSION);
	assert_non_null(strstr(report.message, "hidepid"));
}

static void burn_undumpable(struct target *self)
{
	if (!live_become(LIVE_USER, 0))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 0);
	burn_on(self);
}

static void a_process_that_is_not_dumpable_is_refused(void **state)
{
	struct live_report report;

	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(burn_undumpable);
	report = live_in_child(try_running);
	expect_denied(&report);
	assert_non_null(strstr(report.message, "dumpable"));
	report = live_in_child(try_stop);
	expect_denied(&report);
}

/* As a security module does: the events are permitted, the mappings are not. */
static void try_without_maps(struct live_report *report)
{
	char maps[64], closed[80];

	snprintf(maps, sizeof(maps), "/proc/%d/maps", live.target.pid);
	snprintf(closed, sizeof(closed), "%s.closed", live.path);
	close(open(closed, O_CREAT, 0));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(closed, maps, NULL, MS_BIND, NULL) < 0)
		report->error = EPERM;
	unlink(closed);
	try_as_user(report, SPULSE_ATTACH_STOP);
}

static void maps_that_cannot_be_read_do_not_end_an_attach(void **state)
{
	struct live_report report;

	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(descend_as_user);
	report = live_in_child(try_without_maps);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_true(report.samples > 5);
	assert_non_null(strstr(report.warning, "maps"));
	assert_non_null(strstr(report.warning, "ermission"));
	/* Frame pointers lead on where no mapping is known. */
	assert_true(report.frames >= 7);
	assert_non_null(strchr("RS", target_state(live.target.pid)));
}

static void burn_as_user(struct target *self)
{
	if (!live_become(LIVE_USER, 0))
		_exit(1);
	burn_on(self);
}

static void try_with_kernel(struct live_report *report)
{
	if (live_become(LIVE_USER, 0))
		live_try(report, SPULSE_ATTACH_STOP, LIVE_OPTIONS(.include_kernel = true));
	else
		report->error = EPERM;
}

static void kernel_frames_that_are_refused_are_left_out(void **state)
{
	struct live_report report;
	int paranoid = 0;
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");

	(void)state;
	if (f && fscanf(f, "%d", &paranoid) != 1)
		paranoid = 0;
	if (f)
		fclose(f);
	if (geteuid() != 0 || paranoid != 2)
		skip();
	live.target = target_start(burn_as_user);
	report = live_in_child(try_with_kernel);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_true(report.samples > 5);
	assert_false(report.kernel_enabled);
	assert_int_equal(report.kernel_frames, 0);
}

/* ---- limits ---- */

enum { MANY_THREADS = 60 };

static void burn_in_threads(struct target *self)
{
	pthread_t thread;

	for (int i = 0; i < MANY_THREADS; i++)
		pthread_create(&thread, NULL, burn_thread, NULL);
	burn_on(self);
}

static void try_with_64_descriptors(struct live_report *report)
{
	struct rlimit limit = {64, 4096};

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		report->error = errno;
	live_try(report, SPULSE_ATTACH_STOP, LIVE_OPTIONS());
}

static void the_soft_limit_of_descriptors_is_raised(void **state)
{
	struct live_report report;

	(void)state;
	live.target = target_start(burn_in_threads);
	report = live_in_child(try_with_64_descriptors);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_int_equal(report.soft_descriptors, 4096);
	assert_true(report.samples > 0);
}

static rlim_t locked_memory;

/* Rings far above what an ordinary user may lock. */
static void try_with_locked_memory(struct live_report *report)
{
	struct rlimit limit = {locked_memory, locked_memory};

	/* The kernel counts locked memory per user. */
	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || !live_become(LIVE_USER + 1, 0))
		report->error = EPERM;
	else
		live_try(report, SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(.ring_buffer_stacks = 512));
}

static void burn_as_other_user(struct target *self)
{
	if (!live_become(LIVE_USER + 1, 0))
		_exit(1);
	burn_on(self);
}

static void rings_shrink_to_the_memory_that_may_be_locked(void **state)
{
	static const rlim_t limits[] = {64 << 10, 0};

	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(burn_as_other_user);
	for (size_t i = 0; i < 2; i++) {
		struct live_report report;

		locked_memory = limits[i];
		report = live_in_child(try_with_locked_memory);
		if (report.result < 0)
			fail_msg("%s", report.message);
		assert_true(report.samples > 0);
		assert_true(report.smallest_ring >= 64 << 10);
		assert_true(report.largest_ring < 16 << 20);
	}
}

static uint64_t address_space(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	uint64_t kib = 0;

	while (f && !kib && fgets(line, sizeof(line), f))
		sscanf(line, "VmSize: %llu", (unsigned long long *)&kib);
	if (f)
		fclose(f);
	return kib << 10;
}

/* 32 MiB for each ring are asked for; there is room for half of them, and for the rest. */
static void try_with_little_address_space(struct live_report *report)
{
	uint64_t cpus = sysconf(_SC_NPROCESSORS_ONLN), room = (cpus * 16 + 24) << 20;
	struct rlimit limit = {address_space() + room, RLIM_INFINITY};

	if (setrlimit(RLIMIT_AS, &limit) < 0)
		report->error = errno;
	live_try(report, SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(.ring_buffer_stacks = 1024));
}

static void rings_shrink_to_the_address_space(void **state)
{
	struct live_report report;

	(void)state;
	if (geteuid() != 0)
		skip(); /* what may be locked is less */
	live.target = target_start(burn_on);
	report = live_in_child(try_with_little_address_space);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_true(report.samples > 0);
	assert_true(report.smallest_ring < 32 << 20);
}

/* ---- races ---- */

static void *end_at_once(void *data)
{
	return data;
}

static void start_threads_that_end(struct target *self)
{
	target_ready(self);
	for (;;) {
		pthread_t threads[8];

		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, end_at_once, NULL);
		burn(1);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
}

static void threads_that_end_meanwhile_do_not_fail_an_attach(void **state)
{
	(void)state;
	live.target = target_start(start_threads_that_end);
	for (int i = 0; i < 30; i++) {
		live_attach(i % 2 ? SPULSE_ATTACH_STOP : SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
		live_poll_for(20);
		spulse_recorder_free(live.recorder);
		live.recorder = NULL;
		unlink(live.path);
	}
}

/* A vfork parent cannot be stopped before its child executes or ends. */
static void vfork_and_wait(struct target *self)
{
	if (vfork() == 0) {
		/* The pipe is the child's too. */
		if (write(self->to, "x", 1) == 1)
			sleep(60);
		_exit(0);
	}
	burn_on(self);
}

static void a_thread_that_cannot_stop_does_not_fail_an_attach(void **state)
{
	(void)state;
	live.target = target_start(vfork_and_wait);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(target_state(live.target.pid), 'D');
	live_poll_for(40);
	live_finish();
}

/* ---- names ---- */

static void burn_under_an_odd_name(struct target *self)
{
	prctl(PR_SET_NAME, ") R 1 (\t\xff\n");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a) b \xfe");
		burn_thread(NULL);
	}
	burn_on(self);
}

static void odd_names_are_no_obstacle(void **state)
{
	pid_t *children = NULL;
	size_t n = 0;

	(void)state;
	live.target = target_start(burn_under_an_odd_name);
	live_attach(SPULSE_ATTACH_STOP,
		    LIVE_OPTIONS(.follow = SPULSE_FOLLOW_DESCENDANTS, .annotate = true));
	assert_int_equal(spulse_children_discover(getpid(), &children, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(children[0], live.target.pid);
	live_poll_for(400);
	live_finish();
	assert_true(live_samples_of(live.target.pid, 0) > 5);
	assert_true(live_samples_of(children[1], 0) > 5);
	spulse_array_free(children);
}

/* ---- namespaces ---- */

static bool choose_next_pid(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
	bool ok = f && fprintf(f, "%d", pid - 1) > 0;

	if (f)
		ok = fclose(f) == 0 && ok;
	return ok;
}

enum { REUSED = 1234 };

static void attach_reused(struct live_report *report)
{
	enum spulse_attach_outcome outcome = SPULSE_ALREADY_ATTACHED;
	struct spulse_recording_summary before = {.size = sizeof(before)};
	struct target second;

	choose_next_pid(REUSED);
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(200);
	target_end(&live.target);
	choose_next_pid(REUSED);
	second = target_start(burn_on);
	if (live.target.pid != REUSED || second.pid != REUSED) {
		report->error = EPERM;
		return;
	}
	spulse_recorder_summary(live.recorder, &before);
	report->result = spulse_recorder_attach_process(live.recorder, REUSED, SPULSE_ATTACH_STOP,
							&outcome, NULL);
	report->errnum = outcome;
	live_poll_for(300);
	live_finish();
	report->samples = live.summary.samples - before.samples;
}

/* Runs `body` as the first process of a pid namespace, with a /proc of its own. */
static void in_namespace(struct live_report *report, void (*body)(struct live_report *report))
{
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) {
		report->error = EPERM;
		return;
	}
	pid = fork();
	if (pid == 0) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("proc", "/proc", "proc", 0, NULL) < 0)
			report->error = EPERM;
		else
			body(report);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status != 0)
		_exit(1);
}

static void try_reuse(struct live_report *report)
{
	in_namespace(report, attach_reused);
}

static void a_process_id_that_is_used_again_is_another_process(void **state)
{
	struct live_report report = live_in_child(try_reuse);

	(void)state;
	assert_int_equal(report.result, 0);
	assert_int_equal(report.errnum, SPULSE_ATTACHED);
	assert_true(report.samples > 5);
}

/* The first process of a namespace of its own; its child is process 2 there. */
static void burn_in_namespace(struct target *self)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0)
			burn_thread(NULL);
		burn_thread(NULL);
	}
	target_ready(self);
	for (;;)
		pause();
}

static void processes_of_another_pid_namespace_have_our_numbers(void **state)
{
	pid_t *children = NULL;
	size_t n = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(burn_in_namespace);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_DESCENDANTS));
	live_poll_for(400);
	live_finish();
	assert_int_equal(spulse_children_discover(live.target.pid, &children, &n, NULL), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_true(children[i] > 2);
		assert_true(live_samples_of(children[i], children[i]) > 5);
	}
	assert_int_equal(live_samples_of(0, 0),
			 live_samples_of(children[0], 0) + live_samples_of(children[1], 0));
	spulse_array_free(children);
}

static void try_without_pidfds(struct live_report *report)
{
	forbid_call(SYS_pidfd_open);
	live_try(report, SPULSE_ATTACH_STOP, LIVE_OPTIONS());
}

static void a_policy_without_pidfds_is_no_obstacle(void **state)
{
	struct live_report report;

	(void)state;
	live.target = target_start(burn_on);
	report = live_in_child(try_without_pidfds);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_true(report.samples >= 20);
}

/* ---- processes in other hands ---- */

static pid_t start_debugger(pid_t pid)
{
	int ready[2];
	pid_t debugger;
	char c = 0;

	assert_int_equal(pipe(ready), 0);
	debugger = fork();
	if (debugger == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0)
			c = 1;
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return c ? debugger : 0;
}

static pid_t tracer_of(pid_t pid)
{
	char path[64], line[256];
	pid_t tracer = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && tracer < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer;
}

static char warning[512];

static void keep_warning(void *data, enum spulse_log_level level, const char *message)
{
	(void)data;
	(void)level;
	snprintf(warning, sizeof(warning), "%s", message);
}

static void a_process_that_is_debugged_is_attached_beside_its_debugger(void **state)
{
	pid_t debugger;

	(void)state;
	live.target = target_start(burn_on);
	debugger = start_debugger(live.target.pid);
	if (!debugger)
		skip();
	spulse_log_set(keep_warning, NULL, SPULSE_LOG_WARNING);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	spulse_log_set(NULL, NULL, SPULSE_LOG_NONE);
	live_poll_until(20);
	live_finish();
	assert_int_equal(tracer_of(live.target.pid), debugger);
	assert_non_null(strchr("RS", target_state(live.target.pid)));
	/* It was not stopped, which is said. */
	assert_non_null(strstr(warning, "traced"));
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
}

/* ---- processes that changed ---- */

static void leave_the_leader(struct target *self)
{
	pthread_t thread;

	pthread_create(&thread, NULL, burn_thread, NULL);
	target_ready(self);
	syscall(SYS_exit, 0);
}

/* Its folder in /proc shows a zombie without mappings. */
static void a_process_whose_leader_ended_is_attached(void **state)
{
	(void)state;
	live.target = target_start(leave_the_leader);
	while (target_state(live.target.pid) != 'Z')
		usleep(1000);
	for (int mode = SPULSE_ATTACH_RUNNING; mode <= SPULSE_ATTACH_STOP; mode++) {
		live_attach(mode, LIVE_OPTIONS(.annotate = true));
		assert_int_equal(
			spulse_recorder_process_is_active(live.recorder, live.target.pid, NULL), 1);
		live_poll_until(20);
		live_finish();
		assert_true(live_samples_of(live.target.pid, 0) >= 20);
		assert_true(live_samples_in(live.target.pid, "/test_attach") >= 15);
		live_forget();
	}
}

static void hide_when_told(struct target *self)
{
	if (!live_become(LIVE_USER, 0))
		_exit(1);
	target_ready(self);
	burn(200);
	prctl(PR_SET_DUMPABLE, 0);
	burn_on(self);
}

static void try_long(struct live_report *report)
{
	if (!live_become(LIVE_USER, 0)) {
		report->error = EPERM;
		return;
	}
	live.wanted_samples = 500;
	live_try(report, SPULSE_ATTACH_STOP, LIVE_OPTIONS());
}

/* What is known of its mappings is kept. */
static void a_process_that_hides_itself_later_is_sampled_on(void **state)
{
	struct live_report report;

	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(hide_when_told);
	report = live_in_child(try_long);
	if (report.result < 0)
		fail_msg("%s", report.message);
	assert_true(report.samples >= 500);
	assert_true(report.without_module < report.samples / 20);
}

/* ---- the end ---- */

static void a_zombie_is_gone(void **state)
{
	struct spulse_error *err = NULL;
	siginfo_t info;

	(void)state;
	live.target = target_start(burn_on);
	kill(live.target.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, live.target.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(target_state(live.target.pid), 'Z');
	for (int mode = SPULSE_ATTACH_RUNNING; mode <= SPULSE_ATTACH_STOP; mode++) {
		assert_int_equal(spulse_recorder_attach(live.target.pid, live.path, mode,
							LIVE_OPTIONS(), &live.recorder, &err),
				 -SPULSE_ERROR_TARGET_GONE);
		assert_int_equal(spulse_error_errno(err), ESRCH);
		spulse_error_free(err);
		err = NULL;
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, live_setup, live_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_failed_attach_lets_the_target_run),
		TEST(the_process_of_another_user_is_refused_and_left_alone),
		TEST(a_hidden_process_is_not_said_to_be_gone),
		TEST(a_process_that_is_not_dumpable_is_refused),
		TEST(maps_that_cannot_be_read_do_not_end_an_attach),
		TEST(kernel_frames_that_are_refused_are_left_out),
		TEST(the_soft_limit_of_descriptors_is_raised),
		TEST(rings_shrink_to_the_memory_that_may_be_locked),
		TEST(rings_shrink_to_the_address_space),
		TEST(threads_that_end_meanwhile_do_not_fail_an_attach),
		TEST(a_thread_that_cannot_stop_does_not_fail_an_attach),
		TEST(odd_names_are_no_obstacle),
		TEST(a_process_id_that_is_used_again_is_another_process),
		TEST(processes_of_another_pid_namespace_have_our_numbers),
		TEST(a_policy_without_pidfds_is_no_obstacle),
		TEST(a_process_that_is_debugged_is_attached_beside_its_debugger),
		TEST(a_process_whose_leader_ended_is_attached),
		TEST(a_process_that_hides_itself_later_is_sampled_on),
		TEST(a_zombie_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

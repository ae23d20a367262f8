/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The recorder on real processes; where the kernel does not permit it everything is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

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

/* Many that burn would keep the recorder waiting for its turns. */
static void give_way(void)
{
	if (nice(10) < 0)
		_exit(1);
}

static void wait_on(struct target *self)
{
	target_ready(self);
	for (;;)
		pause();
}

/* ---- attach ---- */

static void a_running_target_runs_on_after_each_attach(void **state)
{
	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_true(strchr("RS", target_state(live.target.pid)));
	live_poll_for(300);
	live_finish();
	assert_true(strchr("RS", target_state(live.target.pid)));
	assert_true(live_samples_of(live.target.pid, live.target.pid) > 5);
}

static void a_failed_attach_leaves_target_and_folder_alone(void **state)
{
	struct spulse_error *err = NULL;
	size_t before;

	(void)state;
	live.target = target_start(burn_on);
	before = open_descriptors();
	assert_true(spulse_recorder_attach(live.target.pid, "/nonexistent/x.spool",
					   SPULSE_ATTACH_STOP, LIVE_OPTIONS(), &live.recorder,
					   &err) < 0);
	assert_int_equal(spulse_error_errno(err), ENOENT);
	spulse_error_free(err);
	err = NULL;
	assert_int_equal(spulse_recorder_attach(live.target.pid, live.path, SPULSE_ATTACH_STOP,
						LIVE_OPTIONS(.stack_size = 65529), &live.recorder,
						&err),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_error_free(err);
	assert_true(strchr("RS", target_state(live.target.pid)));
	assert_int_equal(access(live.path, F_OK), -1);
	assert_int_equal(open_descriptors(), before);
}

static void a_stopped_target_stays_stopped(void **state)
{
	(void)state;
	live.target = target_start(burn_on);
	kill(live.target.pid, SIGSTOP);
	while (target_state(live.target.pid) != 'T')
		usleep(1000);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(target_state(live.target.pid), 'T');
	live_poll_for(100);
	live_finish();
	assert_int_equal(target_state(live.target.pid), 'T');
	assert_int_equal(live.summary.samples, 0);
}

static volatile sig_atomic_t continued;

static void on_continue(int signal)
{
	(void)signal;
	continued++;
}

static void count_continues(struct target *self)
{
	signal(SIGCONT, on_continue);
	target_ready(self);
	target_listen(self);
	_exit(continued);
}

static void the_running_mode_sends_no_signal(void **state)
{
	int status;

	(void)state;
	live.target = target_start(count_continues);
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	live_poll_for(40);
	target_tell(&live.target);
	waitpid(live.target.pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 0);
	close(live.target.to);
	close(live.target.from);
	live.target.pid = 0;
}

static void a_process_cannot_stop_itself(void **state)
{
	(void)state;
	assert_int_equal(spulse_recorder_attach(getpid(), live.path, SPULSE_ATTACH_STOP,
						LIVE_OPTIONS(), &live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void a_process_can_record_itself(void **state)
{
	(void)state;
	live.target.pid = 0;
	assert_int_equal(spulse_recorder_attach(getpid(), live.path, SPULSE_ATTACH_RUNNING,
						LIVE_OPTIONS(), &live.recorder, NULL),
			 0);
	burn(200);
	live_finish();
	assert_true(live_samples_of(getpid(), 0) > 5);
}

static void a_missing_process_is_gone_and_nothing_leaks(void **state)
{
	struct spulse_error *err = NULL;
	size_t before = open_descriptors();

	(void)state;
	assert_int_equal(spulse_recorder_attach(INT32_MAX, live.path, SPULSE_ATTACH_STOP,
						LIVE_OPTIONS(), &live.recorder, &err),
			 -SPULSE_ERROR_TARGET_GONE);
	assert_true(spulse_error_errno(err) == ENOENT || spulse_error_errno(err) == ESRCH);
	spulse_error_free(err);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(access(live.path, F_OK), -1);
}

static void ids_out_of_range_are_refused(void **state)
{
	(void)state;
	assert_int_equal(spulse_recorder_attach(0, live.path, SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(),
						&live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_recorder_attach(-3, live.path, SPULSE_ATTACH_RUNNING,
						LIVE_OPTIONS(), &live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void tell_tid(struct target *self)
{
	pthread_t thread;

	pthread_create(&thread, NULL, burn_thread, NULL);
	target_ready(self);
	burn_thread(NULL);
}

/* Another thread of a process than its leader. */
static pid_t other_thread(pid_t pid)
{
	char folder[64];
	pid_t found = 0;

	snprintf(folder, sizeof(folder), "/proc/%d/task", pid);
	for (pid_t tid = pid + 1; tid < pid + 1000 && !found; tid++) {
		char name[96];

		snprintf(name, sizeof(name), "%s/%d", folder, tid);
		if (access(name, F_OK) == 0)
			found = tid;
	}
	return found;
}

static void a_thread_is_no_target(void **state)
{
	struct spulse_error *err = NULL;
	char number[16];
	pid_t tid;

	(void)state;
	live.target = target_start(tell_tid);
	tid = other_thread(live.target.pid);
	assert_true(tid > 0);
	assert_int_equal(spulse_recorder_attach(tid, live.path, SPULSE_ATTACH_STOP, LIVE_OPTIONS(),
						&live.recorder, &err),
			 -SPULSE_ERROR_INVALID_INPUT);
	snprintf(number, sizeof(number), "%d", live.target.pid);
	assert_non_null(strstr(spulse_error_message(err), number));
	spulse_error_free(err);
}

static void the_same_process_is_attached_once(void **state)
{
	enum spulse_attach_outcome outcome;
	size_t before;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	before = open_descriptors();
	assert_int_equal(spulse_recorder_attach_process(live.recorder, live.target.pid,
							SPULSE_ATTACH_STOP, &outcome, NULL),
			 0);
	assert_int_equal(outcome, SPULSE_ALREADY_ATTACHED);
	assert_int_equal(open_descriptors(), before);
	live_finish();
}

static void a_second_process_joins_the_recording(void **state)
{
	struct target second = target_start(burn_on);
	enum spulse_attach_outcome outcome;
	size_t active;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(spulse_recorder_attach_process(live.recorder, second.pid,
							SPULSE_ATTACH_STOP, &outcome, NULL),
			 0);
	assert_int_equal(outcome, SPULSE_ATTACHED);
	assert_int_equal(spulse_recorder_active_process_count(live.recorder, &active, NULL), 0);
	assert_int_equal(active, 2);
	assert_int_equal(
		spulse_recorder_has_active_processes_except(live.recorder, live.target.pid, NULL),
		1);
	live_poll_for(300);
	assert_int_equal(spulse_recorder_attach_process(live.recorder, INT32_MAX,
							SPULSE_ATTACH_STOP, &outcome, NULL),
			 0);
	assert_int_equal(outcome, SPULSE_ATTACH_EXITED);
	live_finish();
	assert_true(live_samples_of(live.target.pid, 0) > 0);
	assert_true(live_samples_of(second.pid, 0) > 0);
	target_end(&second);
}

/* ---- threads ---- */

enum { THREADS = 50 };

static void burn_in_threads(struct target *self)
{
	pthread_t thread;

	give_way();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, burn_thread, NULL);
	target_ready(self);
	burn_thread(NULL);
}

/* Descriptors of perf events. */
static size_t open_events(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(dir))) {
		char link[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1) > 0)
			n += strstr(link, "perf_event") != NULL;
	}
	closedir(dir);
	return n;
}

static void every_thread_is_sampled(void **state)
{
	size_t n, of_target = 0, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct spulse_thread *threads;

	(void)state;
	live.target = target_start(burn_in_threads);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(open_events(), (THREADS + 1) * cpus);
	live_poll_until(THREADS * 20);
	live_finish();
	threads = spulse_source_threads(spulse_snapshot_source(live.snapshot), &n);
	for (size_t i = 0; i < n; i++)
		of_target += threads[i].pid == live.target.pid;
	assert_int_equal(of_target, THREADS + 1);
}

static void start_threads_when_told(struct target *self)
{
	pthread_t thread;

	target_ready(self);
	target_listen(self);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, burn_thread, NULL);
	for (;;)
		pause();
}

static void threads_that_come_later_are_sampled_without_being_asked(void **state)
{
	size_t n;

	(void)state;
	live.target = target_start(start_threads_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	target_tell(&live.target);
	live_poll_for(600);
	live_finish();
	spulse_source_threads(spulse_snapshot_source(live.snapshot), &n);
	assert_true(n >= 4);
}

static void refreshing_tells_strangers_and_the_dead_apart(void **state)
{
	enum spulse_refresh_outcome outcome;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(spulse_recorder_refresh_threads(live.recorder, 1, &outcome, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(
		spulse_recorder_refresh_threads(live.recorder, live.target.pid, &outcome, NULL), 0);
	assert_int_equal(outcome, SPULSE_REFRESHED);
	kill(live.target.pid, SIGKILL);
	waitpid(live.target.pid, NULL, 0);
	assert_int_equal(
		spulse_recorder_refresh_threads(live.recorder, live.target.pid, &outcome, NULL), 0);
	assert_int_equal(outcome, SPULSE_REFRESH_EXITED);
	assert_int_equal(spulse_recorder_process_is_active(live.recorder, live.target.pid, NULL),
			 0);
}

static void leave_the_leader(struct target *self)
{
	pthread_t thread;

	pthread_create(&thread, NULL, burn_thread, NULL);
	target_ready(self);
	target_listen(self);
	syscall(SYS_exit, 0);
}

static void a_process_outlives_its_leader(void **state)
{
	const struct spulse_stack *stack;
	struct spulse_stacks *stacks = NULL;
	size_t with_module = 0, n = 0;

	(void)state;
	live.target = target_start(leave_the_leader);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	target_tell(&live.target);
	live_poll_for(500);
	assert_int_equal(spulse_recorder_process_is_active(live.recorder, live.target.pid, NULL),
			 1);
	live_finish();
	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	while (spulse_stacks_next(stacks, &stack, NULL) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);

		n++;
		with_module += spulse_frame_iter_next(&iter)->module_id != SPULSE_NO_MODULE;
	}
	spulse_stacks_free(stacks);
	assert_true(n > 5);
	assert_int_equal(with_module, n);
}

/* ---- poll ---- */

static void polling_an_idle_target_ends_in_time(void **state)
{
	struct timespec start, end;

	(void)state;
	live.target = target_start(wait_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(spulse_recorder_poll(live.recorder, 0, NULL, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(spulse_recorder_poll(live.recorder, 50000000, NULL, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 <
		    2000);
	live_finish();
	assert_int_equal(live.summary.samples, 0);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void a_signal_ends_a_poll_without_an_error(void **state)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	const struct sigaction action = {.sa_handler = on_alarm};

	(void)state;
	live.target = target_start(wait_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(20);
	alarms = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	/* Without a signal it would wait for ever. */
	assert_int_equal(spulse_recorder_poll(live.recorder, -1, NULL, NULL), 0);
	signal(SIGALRM, SIG_DFL);
	assert_int_equal(alarms, 1);
	live_finish();
}

static void a_loop_of_ones_own_waits_for_the_descriptor(void **state)
{
	struct spulse_poll_summary now = {.size = sizeof(now)}, last = {.size = sizeof(last)};
	struct pollfd fd = {.events = POLLIN};
	uint64_t samples = 0;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	fd.fd = spulse_recorder_fd(live.recorder);
	assert_true(fd.fd >= 0);
	for (int i = 0; i < 50 && samples < 50; i++) {
		if (!spulse_recorder_has_pending_events(live.recorder))
			assert_int_equal(poll(&fd, 1, 5000), 1);
		assert_int_equal(spulse_recorder_poll(live.recorder, 0, &now, NULL), 0);
		spulse_recorder_last_poll(live.recorder, &last);
		assert_memory_equal(&now, &last, sizeof(now));
		assert_int_equal(now.pending_events,
				 spulse_recorder_has_pending_events(live.recorder));
		assert_int_equal(now.active_processes, 1);
		assert_true(now.root_active);
		samples += now.samples;
	}
	assert_true(samples >= 50);
	live_finish();
}

static uint64_t samples_during(int milliseconds)
{
	struct spulse_recording_summary before = {.size = sizeof(before)};
	struct spulse_recording_summary after = {.size = sizeof(after)};

	assert_int_equal(spulse_recorder_flush(live.recorder, NULL), 0);
	spulse_recorder_summary(live.recorder, &before);
	live_poll_for(milliseconds);
	assert_int_equal(spulse_recorder_flush(live.recorder, NULL), 0);
	spulse_recorder_summary(live.recorder, &after);
	return after.samples - before.samples;
}

static void a_paused_recording_takes_no_samples(void **state)
{
	struct target second = target_start(burn_on);
	enum spulse_attach_outcome outcome;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_true(samples_during(200) > 0);
	assert_int_equal(spulse_recorder_disable(live.recorder, NULL), 0);
	assert_int_equal(spulse_recorder_attach_process(live.recorder, second.pid,
							SPULSE_ATTACH_STOP, &outcome, NULL),
			 0);
	samples_during(20);
	assert_int_equal(samples_during(200), 0);
	assert_int_equal(spulse_recorder_enable(live.recorder, NULL), 0);
	assert_true(samples_during(300) > 0);
	live_finish();
	assert_true(live_samples_of(second.pid, 0) > 0);
	target_end(&second);
}

static void what_is_in_the_rings_at_the_end_is_written(void **state)
{
	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	usleep(300000);
	live_finish();
	assert_true(live.summary.samples > 5);
}

static void rings_that_are_not_read_lose_samples_and_say_so(void **state)
{
	size_t count;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.ring_buffer_stacks = 1));
	sleep(1);
	live_poll_for(200);
	live_finish();
	assert_true(live.summary.lost_events > 0);
	assert_true(live.summary.lifecycle_gaps > 0);
	assert_true(live.summary.samples > 0);
	assert_int_equal(spulse_recorder_losses(live.recorder, &count)->pid, live.target.pid);
	assert_int_equal(count, 1);
}

/* Its threads share the events of the leader, which itself only waits. */
static void losses_are_named_by_thread(void **state)
{
	const struct spulse_loss *losses;
	uint64_t sum = 0, of_others = 0;
	size_t n;

	(void)state;
	live.target = target_start(start_threads_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.ring_buffer_stacks = 1));
	target_tell(&live.target);
	for (int i = 0; i < 15; i++) {
		usleep(50000);
		live_poll_for(20);
	}
	live_finish();
	losses = spulse_recorder_losses(live.recorder, &n);
	assert_true(n >= 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(losses[i].pid, live.target.pid);
		sum += losses[i].lost;
		of_others += losses[i].tid == live.target.pid ? 0 : losses[i].lost;
	}
	assert_int_equal(sum, live.summary.lost_events);
	assert_true(of_others >= sum * 8 / 10);
}

static void burn_and_end(struct target *self)
{
	target_ready(self);
	target_listen(self);
	burn(200);
}

static void the_last_samples_of_an_ended_process_have_modules(void **state)
{
	siginfo_t info;

	(void)state;
	live.target = target_start(burn_and_end);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	target_tell(&live.target);
	assert_int_equal(waitid(P_PID, live.target.pid, &info, WEXITED), 0);
	live_poll_for(60);
	live_finish();
	assert_true(live.summary.samples > 20);
	assert_true(live_samples_in(live.target.pid, "/test_recorder") >
		    live.summary.samples * 9 / 10);
	close(live.target.to);
	close(live.target.from);
	live.target.pid = 0;
}

static void both_events_record(void **state)
{
	static const enum spulse_sampling_event events[] = {SPULSE_EVENT_AUTO,
							    SPULSE_EVENT_CPU_CLOCK};

	(void)state;
	live.target = target_start(burn_on);
	for (int i = 0; i < 2; i++) {
		live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(.sampling_event = events[i]));
		live_poll_until(10);
		live_finish();
		assert_true(live.summary.samples >= 10);
		assert_true(live.summary.sampling_event == SPULSE_EVENT_CPU_CLOCK ||
			    events[i] == SPULSE_EVENT_AUTO);
		spulse_recorder_free(live.recorder);
		live.recorder = NULL;
		spulse_snapshot_free(live.snapshot);
		live.snapshot = NULL;
		unlink(live.path);
	}
}

static void nothing_stays_open_after_free(void **state)
{
	size_t before;

	(void)state;
	live.target = target_start(burn_on);
	before = open_descriptors();
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(60);
	spulse_recorder_free(live.recorder);
	live.recorder = NULL;
	assert_int_equal(open_descriptors(), before);
}

/* ---- modules ---- */

static void map_code(struct target *self)
{
	static const unsigned char loop[] = {0xeb, 0xfe};
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	target_ready(self);
	((void (*)(void))(uintptr_t)code)();
}

static void code_without_a_file_is_a_module(void **state)
{
#ifdef __x86_64__
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;
	struct spulse_frame_context context;
	struct spulse_frame_iter iter;

	(void)state;
	live.target = target_start(map_code);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(300);
	live_finish();
	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
	iter = spulse_stack_frames(stack);
	assert_true(spulse_frame_iter_next_context(&iter, &context));
	assert_non_null(context.module);
	assert_string_equal(spulse_module_path(context.module), "//anon");
	assert_int_equal(context.file_relative_ip, context.frame->abs_ip);
	spulse_stacks_free(stacks);
#else
	(void)state;
	(void)map_code;
	skip();
#endif
}

/* ---- children ---- */

static void fork_when_told(struct target *self)
{
	target_ready(self);
	target_listen(self);
	if (fork() == 0) {
		if (fork() == 0)
			for (int i = 0; i < 50; i++)
				burn(100);
		burn(300);
		_exit(0);
	}
	for (;;)
		pause();
}

static size_t processes_with_samples(void)
{
	const struct spulse_thread *threads;
	size_t n, count = 0;

	threads = spulse_source_threads(spulse_snapshot_source(live.snapshot), &n);
	for (size_t i = 0; i < n; i++)
		count += threads[i].pid == threads[i].tid;
	return count;
}

static void children_and_grandchildren_are_followed(void **state)
{
	(void)state;
	live.target = target_start(fork_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_NEW));
	target_tell(&live.target);
	live_poll_for(1000);
	live_finish();
	assert_int_equal(processes_with_samples(), 2);
}

static void children_are_left_alone_unless_followed(void **state)
{
	(void)state;
	live.target = target_start(fork_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	target_tell(&live.target);
	live_poll_for(400);
	live_finish();
	assert_int_equal(live.summary.samples, live_samples_of(live.target.pid, 0));
	for (size_t i = 0; i < spulse_source_module_count(live.source); i++)
		assert_int_equal(spulse_module_pid(spulse_source_module(live.source, i)),
				 live.target.pid);
}

static void fork_first(struct target *self)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				burn(100);
		}
	target_ready(self);
	for (;;)
		pause();
}

static void children_that_live_already_are_attached_on_request(void **state)
{
	(void)state;
	live.target = target_start(fork_first);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_DESCENDANTS));
	live_poll_for(600);
	live_finish();
	assert_int_equal(processes_with_samples(), 3);
}

enum { OLD_CHILDREN = 20 };

static void fork_many_first(struct target *self)
{
	give_way();
	for (int i = 0; i < OLD_CHILDREN; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			burn_thread(NULL);
		}
	target_ready(self);
	for (;;)
		pause();
}

/* The rings would be full before the last of them is attached. */
static void children_that_live_already_are_drained_meanwhile(void **state)
{
	struct spulse_recording_summary now = {.size = sizeof(now)};

	(void)state;
	live.target = target_start(fork_many_first);
	live_attach(SPULSE_ATTACH_STOP, &(struct spulse_recorder_options){
						.size = sizeof(struct spulse_recorder_options),
						.frequency = 299,
						.follow = SPULSE_FOLLOW_DESCENDANTS});
	spulse_recorder_summary(live.recorder, &now);
	assert_true(now.samples > 0);
	live_poll_for(100);
	live_finish();
	assert_int_equal(live.summary.lost_events, 0);
}

static void fork_often(struct target *self)
{
	target_ready(self);
	target_listen(self);
	for (int i = 0; i < 2000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	target_ready(self);
	for (;;)
		pause();
}

static void two_thousand_children_leave_no_descriptor(void **state)
{
	size_t before;

	(void)state;
	live.target = target_start(fork_often);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_NEW));
	live_poll_for(40);
	before = open_descriptors();
	target_tell(&live.target);
	for (;;) {
		char c;
		int flags = fcntl(live.target.from, F_GETFL);

		live_poll_for(20);
		fcntl(live.target.from, F_SETFL, flags | O_NONBLOCK);
		if (read(live.target.from, &c, 1) == 1)
			break;
	}
	live_poll_for(200);
	assert_true(open_descriptors() <= before + 4);
	live_finish();
}

/* ---- outputs ---- */

static void the_file_is_private_and_complete(void **state)
{
	struct stat st;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	assert_int_equal(stat(live.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* The header is there from the first moment on. */
	assert_int_equal(spulse_snapshot_open(live.path, &live.snapshot, NULL), 0);
}

struct small_disk {
	size_t left;
	int closed;
};

static ssize_t write_small(void *data, const void *bytes, size_t len)
{
	struct small_disk *disk = data;

	(void)bytes;
	if (len > disk->left)
		return -ENOSPC;
	disk->left -= len;
	return len;
}

static int close_small(void *data)
{
	((struct small_disk *)data)->closed++;
	return 0;
}

static void a_full_disk_ends_the_recording_with_its_reason(void **state)
{
	static const struct spulse_output output = {
		.size = sizeof(output),
		.write = write_small,
		.close = close_small,
	};
	struct small_disk disk = {.left = 4096};
	struct spulse_error *err = NULL;
	int r = 0;

	(void)state;
	live.target = target_start(burn_on);
	live_succeed(spulse_recorder_attach_output(
			     live.target.pid, &output, &disk, SPULSE_ATTACH_STOP,
			     LIVE_OPTIONS(.publish_interval_ns = 1), &live.recorder, &err),
		     &err);
	for (int i = 0; i < 500 && r == 0; i++)
		r = spulse_recorder_poll(live.recorder, 20000000, NULL, &err);
	assert_true(r < 0);
	assert_int_equal(spulse_error_errno(err), ENOSPC);
	spulse_error_free(err);
	err = NULL;
	assert_int_equal(spulse_recorder_poll(live.recorder, 0, NULL, &err), r);
	assert_int_equal(spulse_error_errno(err), ENOSPC);
	spulse_error_free(err);
	err = NULL;
	assert_true(spulse_recorder_finish(live.recorder, &live.summary, &err) < 0);
	assert_int_equal(spulse_error_errno(err), ENOSPC);
	spulse_error_free(err);
	assert_true(live.summary.sample_events > 0);
	spulse_recorder_free(live.recorder);
	live.recorder = NULL;
	assert_int_equal(disk.closed, 1);
}

static void a_descriptor_must_be_an_empty_writable_file(void **state)
{
	int fds[2], fd;

	(void)state;
	live.target = target_start(burn_on);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(spulse_recorder_attach_fd(live.target.pid, fds[1], SPULSE_ATTACH_STOP,
						   LIVE_OPTIONS(), &live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	close(fds[0]);
	close(fds[1]);
	fd = open(live.path, O_RDWR | O_CREAT | O_APPEND, 0600);
	assert_int_equal(spulse_recorder_attach_fd(live.target.pid, fd, SPULSE_ATTACH_STOP,
						   LIVE_OPTIONS(), &live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	close(fd);
	fd = open(live.path, O_RDONLY);
	assert_int_equal(spulse_recorder_attach_fd(live.target.pid, fd, SPULSE_ATTACH_STOP,
						   LIVE_OPTIONS(), &live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	close(fd);
	fd = open(live.path, O_RDWR);
	assert_int_equal(spulse_recorder_attach_fd(live.target.pid, fd, SPULSE_ATTACH_STOP,
						   LIVE_OPTIONS(), &live.recorder, NULL),
			 0);
	close(fd);
	live_poll_for(100);
	live_finish();
}

static void there_is_one_tail(void **state)
{
	struct spulse_tail *tail = NULL, *second = NULL;
	const struct spulse_batch *batch;
	enum spulse_tail_state end;
	struct spulse_error *err = NULL;
	int r;

	(void)state;
	live.target = target_start(burn_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_succeed(spulse_recorder_tail(live.recorder, &tail, &err), &err);
	assert_int_equal(spulse_recorder_tail(live.recorder, &second, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	live_poll_for(100);
	live_finish();
	do {
		assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
		r = spulse_tail_wait(tail, 0, &end, NULL);
	} while (r == 1);
	assert_int_equal(r, 0);
	assert_int_equal(end, SPULSE_TAIL_FINISHED);
	spulse_tail_free(tail);
}

/* ---- launch ---- */

static void a_launched_program_is_recorded_from_its_first_instruction(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct spulse_launch *launch = NULL;
	struct spulse_error *err = NULL;
	const struct spulse_module *first;
	int status;

	(void)state;
	live_succeed(spulse_launch_new(argv, NULL, &launch, &err), &err);
	live_succeed(spulse_recorder_attach(spulse_launch_pid(launch), live.path,
					    SPULSE_ATTACH_ON_EXEC, LIVE_OPTIONS(), &live.recorder,
					    &err),
		     &err);
	live_succeed(spulse_launch_run(launch, live.recorder, &err), &err);
	assert_int_equal(spulse_launch_wait(launch, &status, NULL), 0);
	live_poll_for(40);
	live_finish();
	first = spulse_source_module(spulse_snapshot_source(live.snapshot), 0);
	assert_non_null(first);
	assert_non_null(strstr(spulse_module_path(first), "/true")
				? strstr(spulse_module_path(first), "/true")
				: strstr(spulse_module_path(first), "coreutils"));
	spulse_launch_free(launch);
}

static void a_launch_that_never_executes_leaves_an_empty_recording(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct spulse_launch *launch = NULL;
	struct spulse_error *err = NULL;

	(void)state;
	live_succeed(spulse_launch_new(argv, NULL, &launch, &err), &err);
	live.target.pid = 0;
	live_succeed(spulse_recorder_attach(spulse_launch_pid(launch), live.path,
					    SPULSE_ATTACH_ON_EXEC, LIVE_OPTIONS(), &live.recorder,
					    &err),
		     &err);
	assert_int_equal(spulse_recorder_has_active_processes_except(live.recorder, 0, NULL), 1);
	live_poll_for(40);
	spulse_launch_free(launch);
	live_poll_for(40);
	assert_int_equal(spulse_recorder_has_active_processes_except(live.recorder, 0, NULL), 0);
	live_finish();
	assert_int_equal(live.summary.sample_events, 0);
	assert_int_equal(spulse_source_module_count(live.source), 0);
}

static void a_program_that_cannot_be_executed_ends_the_tail_with_the_reason(void **state)
{
	static const char *const argv[] = {"/nonexistent-program", NULL};
	struct spulse_launch *launch = NULL;
	struct spulse_tail *tail = NULL;
	const struct spulse_batch *batch;
	struct spulse_error *err = NULL;
	enum spulse_tail_state end;
	int r = 1;

	(void)state;
	live_succeed(spulse_launch_new(argv, NULL, &launch, &err), &err);
	live_succeed(spulse_recorder_attach(spulse_launch_pid(launch), live.path,
					    SPULSE_ATTACH_ON_EXEC, LIVE_OPTIONS(), &live.recorder,
					    &err),
		     &err);
	live_succeed(spulse_recorder_tail(live.recorder, &tail, &err), &err);
	assert_int_equal(spulse_launch_run(launch, live.recorder, NULL),
			 -SPULSE_ERROR_PROCESS_LAUNCH);
	for (int i = 0; i < 10 && r > 0; i++) {
		assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
		r = spulse_tail_wait(tail, 0, &end, &err);
	}
	assert_int_equal(r, -SPULSE_ERROR_PROCESS_LAUNCH);
	assert_int_equal(spulse_error_errno(err), ENOENT);
	spulse_error_free(err);
	spulse_tail_free(tail);
	spulse_launch_free(launch);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, live_setup, live_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_running_target_runs_on_after_each_attach),
		TEST(a_failed_attach_leaves_target_and_folder_alone),
		TEST(a_stopped_target_stays_stopped),
		TEST(the_running_mode_sends_no_signal),
		TEST(a_process_cannot_stop_itself),
		TEST(a_process_can_record_itself),
		TEST(a_missing_process_is_gone_and_nothing_leaks),
		TEST(ids_out_of_range_are_refused),
		TEST(a_thread_is_no_target),
		TEST(the_same_process_is_attached_once),
		TEST(a_second_process_joins_the_recording),
		TEST(every_thread_is_sampled),
		TEST(threads_that_come_later_are_sampled_without_being_asked),
		TEST(refreshing_tells_strangers_and_the_dead_apart),
		TEST(a_process_outlives_its_leader),
		TEST(polling_an_idle_target_ends_in_time),
		TEST(a_paused_recording_takes_no_samples),
		TEST(what_is_in_the_rings_at_the_end_is_written),
		TEST(rings_that_are_not_read_lose_samples_and_say_so),
		TEST(a_loop_of_ones_own_waits_for_the_descriptor),
		TEST(losses_are_named_by_thread),
		TEST(a_signal_ends_a_poll_without_an_error),
		TEST(the_last_samples_of_an_ended_process_have_modules),
		TEST(both_events_record),
		TEST(children_that_live_already_are_drained_meanwhile),
		TEST(a_launch_that_never_executes_leaves_an_empty_recording),
		TEST(nothing_stays_open_after_free),
		TEST(code_without_a_file_is_a_module),
		TEST(children_and_grandchildren_are_followed),
		TEST(children_are_left_alone_unless_followed),
		TEST(children_that_live_already_are_attached_on_request),
		TEST(two_thousand_children_leave_no_descriptor),
		TEST(the_file_is_private_and_complete),
		TEST(a_full_disk_ends_the_recording_with_its_reason),
		TEST(a_descriptor_must_be_an_empty_writable_file),
		TEST(there_is_one_tail),
		TEST(a_launched_program_is_recorded_from_its_first_instruction),
		TEST(a_program_that_cannot_be_executed_ends_the_tail_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

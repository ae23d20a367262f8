/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "live.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct live live;

int live_setup(void **state)
{
	(void)state;
	if (!can_sample()) {
		puts("SKIP: the kernel refuses perf_event_open");
		exit(77);
	}
	memset(&live, 0, sizeof(live));
	snprintf(live.path, sizeof(live.path), "/tmp/test-live-%d.spool", getpid());
	unlink(live.path);
	live.summary.size = sizeof(live.summary);
	return 0;
}

int live_teardown(void **state)
{
	(void)state;
	spulse_recorder_free(live.recorder);
	spulse_snapshot_free(live.snapshot);
	if (live.target.pid)
		target_end(&live.target);
	unlink(live.path);
	memset(&live, 0, sizeof(live));
	return 0;
}

void live_succeed(int r, struct spulse_error **err)
{
	if (r < 0)
		fail_msg("%s", spulse_error_message(*err));
}

void live_attach(enum spulse_attach_mode mode, const struct spulse_recorder_options *options)
{
	struct spulse_error *err = NULL;

	live_succeed(spulse_recorder_attach(live.target.pid, live.path, mode, options,
					    &live.recorder, &err),
		     &err);
}

void live_poll_for(int milliseconds)
{
	struct spulse_error *err = NULL;

	for (int i = 0; i < milliseconds; i += 20)
		live_succeed(spulse_recorder_poll(live.recorder, 20000000, NULL, &err), &err);
}

void live_poll_until(uint64_t samples)
{
	struct spulse_recording_summary now = {.size = sizeof(now)};

	for (int i = 0; i < 1000 && now.samples < samples; i++) {
		live_poll_for(20);
		spulse_recorder_summary(live.recorder, &now);
	}
}

void live_finish(void)
{
	const struct spulse_recording_summary *s = &live.summary;
	struct spulse_error *err = NULL;

	live_succeed(spulse_recorder_finish(live.recorder, &live.summary, &err), &err);
	live_succeed(spulse_snapshot_open(live.path, &live.snapshot, &err), &err);
	live.source = spulse_snapshot_source(live.snapshot);
	assert_int_equal(s->sample_events,
			 s->samples + s->missing_pid_samples + s->missing_tid_samples +
				 s->idle_tid_samples + s->missing_timestamp_samples +
				 s->empty_stack_samples + s->excluded_kernel_samples +
				 s->queued_samples + s->failed_samples + s->other_program_samples);
}

size_t live_samples_of(pid_t pid, pid_t tid)
{
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;
	size_t n = 0;

	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	while (spulse_stacks_next(stacks, &stack, NULL) > 0)
		n += (!pid || spulse_stack_pid(stack) == pid) &&
		     (!tid || spulse_stack_tid(stack) == tid);
	spulse_stacks_free(stacks);
	return n;
}

void live_forget(void)
{
	spulse_recorder_free(live.recorder);
	live.recorder = NULL;
	spulse_snapshot_free(live.snapshot);
	live.snapshot = NULL;
	unlink(live.path);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

size_t live_samples_in(pid_t pid, const char *path_end)
{
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;
	size_t n = 0;

	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	while (spulse_stacks_next(stacks, &stack, NULL) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);
		struct spulse_frame_context context;

		if (pid && spulse_stack_pid(stack) != pid)
			continue;
		if (spulse_frame_iter_next_context(&iter, &context) && context.module)
			n += ends_with(spulse_module_path(context.module), path_end);
	}
	spulse_stacks_free(stacks);
	return n;
}

/* ---- without privileges ---- */

struct live_report live_in_child(void (*body)(struct live_report *report))
{
	struct live_report *shared, report;
	int status = 0;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		body(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	report = *shared;
	munmap(shared, sizeof(*shared));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with status %#x", status);
	if (report.error == EPERM)
		skip();
	assert_int_equal(report.error, 0);
	return report;
}

bool live_become(uid_t user, uint64_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = capabilities >> 32 * i;
	prctl(PR_SET_KEEPCAPS, 1);
	return setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 &&
	       setresuid(user, user, user) == 0 && syscall(SYS_capset, &header, data) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0;
}

static void note_warning(void *data, enum spulse_log_level level, const char *message)
{
	struct live_report *report = data;

	if (level == SPULSE_LOG_WARNING)
		snprintf(report->warning, sizeof(report->warning), "%s", message);
}

static void measure(struct live_report *report)
{
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;

	if (spulse_snapshot_open(live.path, &live.snapshot, NULL) < 0 ||
	    spulse_snapshot_stacks(live.snapshot, &stacks, NULL) < 0)
		return;
	while (spulse_stacks_next(stacks, &stack, NULL) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);
		const struct spulse_frame *frame;

		if (spulse_stack_depth(stack) > report->frames)
			report->frames = spulse_stack_depth(stack);
		frame = spulse_frame_iter_next(&iter);
		report->without_module += frame && frame->module_id == SPULSE_NO_MODULE;
		for (; frame; frame = spulse_frame_iter_next(&iter))
			report->kernel_frames += frame->mode == SPULSE_FRAME_KERNEL;
	}
	spulse_stacks_free(stacks);
}

static int record_a_while(struct live_report *report, enum spulse_attach_mode mode,
			  const struct spulse_recorder_options *options, struct spulse_error **err)
{
	uint64_t wanted = live.wanted_samples ? live.wanted_samples : 20;
	struct spulse_recording_summary now = {.size = sizeof(now)};
	int r = spulse_recorder_attach(live.target.pid, live.path, mode, options, &live.recorder,
				       err);

	for (int i = 0; i < 500 && r == 0 && now.samples < wanted; i++) {
		r = spulse_recorder_poll(live.recorder, 20000000, NULL, err);
		spulse_recorder_summary(live.recorder, &now);
	}
	if (r == 0)
		r = spulse_recorder_finish(live.recorder, &now, err);
	report->samples = now.samples;
	report->kernel_enabled = now.kernel_enabled;
	report->smallest_ring = now.minimum_ring_buffer_bytes;
	report->largest_ring = now.maximum_ring_buffer_bytes;
	return r;
}

void live_try(struct live_report *report, enum spulse_attach_mode mode,
	      const struct spulse_recorder_options *options)
{
	struct spulse_error *err = NULL;
	struct rlimit limit;

	unlink(live.path);
	spulse_log_set(note_warning, report, SPULSE_LOG_WARNING);
	report->result = record_a_while(report, mode, options, &err);
	spulse_log_set(NULL, NULL, SPULSE_LOG_NONE);
	if (report->result == 0)
		measure(report);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		report->soft_descriptors = limit.rlim_cur;
	if (err) {
		report->errnum = spulse_error_errno(err);
		snprintf(report->message, sizeof(report->message), "%s", spulse_error_message(err));
		spulse_error_free(err);
	}
}

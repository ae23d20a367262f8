/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The calls on a recorder, on a made-up kernel that fails when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "live.h"
#include "perf/perf.h"
#include "perf_fake.h"
#include "perf_records.h"

static struct perf_records records;
static uint64_t now;

static void wait_on(struct target *self)
{
	target_ready(self);
	for (;;)
		pause();
}

static int setup(void **state)
{
	(void)state;
	memset(&live, 0, sizeof(live));
	snprintf(live.path, sizeof(live.path), "/tmp/test-control-%d.spool", getpid());
	unlink(live.path);
	live.summary.size = sizeof(live.summary);
	live.target = target_start(wait_on);
	perf_fake_install();
	perf_records_init(&records, 0xff01ff);
	return 0;
}

static int teardown(void **state)
{
	live_teardown(state);
	perf_records_release(&records);
	perf_fake_remove();
	return 0;
}

static void put_samples(int count)
{
	for (int i = 0; i < count; i++) {
		const struct perf_sample_fields sample = {
			.pid = live.target.pid,
			.tid = live.target.pid,
			.time = ++now,
			.ip = 0x10000,
			.misc = PERF_RECORD_MISC_USER,
		};

		perf_put_sample(&records, &sample);
	}
	perf_fake_produce(perf_fake.maps.data[0].page, records.bytes.data, records.bytes.len);
	records.bytes.len = 0;
}

/* ---- two failures ---- */

static int fail_disable(int fd, unsigned long request)
{
	(void)fd;
	return request == PERF_EVENT_IOC_DISABLE ? -EIO : 0;
}

static ssize_t no_space(void *data, const void *bytes, size_t len)
{
	(void)bytes;
	/* The header still fits. */
	return (*(int *)data)++ ? -ENOSPC : (ssize_t)len;
}

static void a_second_failure_is_attached_to_the_first(void **state)
{
	static const struct spulse_output output = {.size = sizeof(output), .write = no_space};
	struct spulse_error *err = NULL;
	int writes = 0;

	(void)state;
	live_succeed(spulse_recorder_attach_output(live.target.pid, &output, &writes,
						   SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(),
						   &live.recorder, &err),
		     &err);
	put_samples(3);
	perf_fake.ioctl_answer = fail_disable;
	assert_true(spulse_recorder_finish(live.recorder, &live.summary, &err) < 0);
	assert_int_equal(spulse_error_errno(err), EIO);
	assert_non_null(spulse_error_cleanup(err));
	assert_int_equal(spulse_error_errno(spulse_error_cleanup(err)), ENOSPC);
	spulse_error_free(err);
	/* The counters are there all the same. */
	assert_int_equal(live.summary.sample_events, 3);
	perf_fake.ioctl_answer = NULL;
}

/* ---- what ends a recording ---- */

static void broken_ring_data_ends_the_recording_with_its_reason(void **state)
{
	static const struct perf_event_header broken = {.type = PERF_RECORD_SAMPLE, .size = 4};
	enum spulse_attach_outcome outcome;
	struct spulse_error *err = NULL;
	int r;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_samples(2);
	live_succeed(spulse_recorder_flush(live.recorder, &err), &err);
	perf_fake_produce(perf_fake.maps.data[0].page, &broken, sizeof(broken));
	r = spulse_recorder_poll(live.recorder, 0, NULL, &err);
	assert_true(r < 0);
	assert_int_equal(spulse_error_errno(err), EBADMSG);
	spulse_error_free(err);
	assert_int_equal(spulse_recorder_flush(live.recorder, NULL), r);
	assert_int_equal(spulse_recorder_enable(live.recorder, NULL), r);
	assert_int_equal(spulse_recorder_disable(live.recorder, NULL), r);
	assert_int_equal(spulse_recorder_attach_process(live.recorder, live.target.pid,
							SPULSE_ATTACH_RUNNING, &outcome, NULL),
			 r);
	assert_int_equal(spulse_recorder_finish(live.recorder, &live.summary, NULL), r);
	assert_int_equal(live.summary.samples, 2);
	/* What was written before can be read. */
	assert_int_equal(spulse_snapshot_open(live.path, &live.snapshot, NULL), 0);
	assert_int_equal(live_samples_of(0, 0), 2);
}

/* ---- switching on and off ---- */

static size_t count_requests(unsigned long request)
{
	size_t n = 0;

	for (size_t i = 0; i < perf_fake.ioctls.len; i++)
		n += perf_fake.ioctls.data[i].request == request;
	return n;
}

static void nothing_is_enabled_before_an_execve(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct spulse_launch *launch = NULL;
	struct spulse_error *err = NULL;

	(void)state;
	live_succeed(spulse_launch_new(argv, NULL, &launch, &err), &err);
	live_succeed(spulse_recorder_attach(spulse_launch_pid(launch), live.path,
					    SPULSE_ATTACH_ON_EXEC, LIVE_OPTIONS(), &live.recorder,
					    &err),
		     &err);
	assert_int_equal(count_requests(PERF_EVENT_IOC_ENABLE), 0);
	for (size_t i = 0; i < perf_fake.opens.len; i++)
		assert_true(perf_fake.opens.data[i].attr.enable_on_exec);
	live_finish();
	spulse_launch_free(launch);
}

static void what_joins_a_paused_recording_stays_off(void **state)
{
	struct target second = target_start(wait_on);
	enum spulse_attach_outcome outcome;
	size_t enabled, opened;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	opened = perf_fake.opens.len;
	enabled = count_requests(PERF_EVENT_IOC_ENABLE);
	assert_int_equal(enabled, opened);
	assert_int_equal(spulse_recorder_disable(live.recorder, NULL), 0);
	assert_int_equal(count_requests(PERF_EVENT_IOC_DISABLE), opened);
	assert_int_equal(spulse_recorder_attach_process(live.recorder, second.pid,
							SPULSE_ATTACH_RUNNING, &outcome, NULL),
			 0);
	assert_int_equal(perf_fake.opens.len, 2 * opened);
	assert_int_equal(count_requests(PERF_EVENT_IOC_ENABLE), enabled);
	assert_int_equal(spulse_recorder_enable(live.recorder, NULL), 0);
	assert_int_equal(count_requests(PERF_EVENT_IOC_ENABLE), enabled + 2 * opened);
	live_finish();
	target_end(&second);
}

static int deny_second(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)cpu;
	return pid == live.target.pid ? 0 : -EACCES;
}

static void a_refused_second_process_leaves_the_first_recorded(void **state)
{
	struct target second = target_start(wait_on);
	enum spulse_attach_outcome outcome;
	size_t open, active;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	open = perf_fake.open_descriptors;
	perf_fake.open_answer = deny_second;
	assert_int_equal(spulse_recorder_attach_process(live.recorder, second.pid,
							SPULSE_ATTACH_STOP, &outcome, NULL),
			 -SPULSE_ERROR_PERMISSION);
	assert_int_equal(perf_fake.open_descriptors, open);
	assert_non_null(strchr("RS", target_state(second.pid)));
	assert_int_equal(spulse_recorder_active_process_count(live.recorder, &active, NULL), 0);
	assert_int_equal(active, 1);
	put_samples(2);
	live_finish();
	assert_int_equal(live.summary.samples, 2);
	target_end(&second);
}

/* ---- counters ---- */

static void an_older_callers_summary_is_filled_as_far_as_it_goes(void **state)
{
	struct spulse_recording_summary summary;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_samples(2);
	live_succeed(spulse_recorder_flush(live.recorder, NULL), &(struct spulse_error *){0});
	memset(&summary, 0x55, sizeof(summary));
	summary.size = offsetof(struct spulse_recording_summary, lost_events);
	spulse_recorder_summary(live.recorder, &summary);
	assert_int_equal(summary.sample_events, 2);
	assert_int_equal(summary.samples, 2);
	assert_int_equal(summary.lost_events, 0x5555555555555555);
	live_finish();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_second_failure_is_attached_to_the_first),
		TEST(broken_ring_data_ends_the_recording_with_its_reason),
		TEST(nothing_is_enabled_before_an_execve),
		TEST(what_joins_a_paused_recording_stays_off),
		TEST(a_refused_second_process_leaves_the_first_recorded),
		TEST(an_older_callers_summary_is_filled_as_far_as_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

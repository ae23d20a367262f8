/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A recorder of a real process on a made-up kernel, which loses what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "live.h"
#include "perf/perf.h"
#include "perf_fake.h"
#include "perf_records.h"

/* Processes that the target never made; their numbers are beyond every real one. */
enum { CHILD = 1 << 22, STRANGER };

static struct perf_records records;

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
	snprintf(live.path, sizeof(live.path), "/tmp/test-losses-%d.spool", getpid());
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

static void start(const struct spulse_recorder_options *options)
{
	live_attach(SPULSE_ATTACH_RUNNING, options);
}

/* Puts what was written since the last time into the first ring, and lets it be read. */
static void produce(void)
{
	perf_fake_produce(perf_fake.maps.data[0].page, records.bytes.data, records.bytes.len);
	records.bytes.len = 0;
	struct spulse_error *err = NULL;

	live_succeed(spulse_recorder_flush(live.recorder, &err), &err);
}

static uint64_t now;

static void put_thread(pid_t tid)
{
	perf_put_task(&records, PERF_RECORD_FORK, live.target.pid, live.target.pid, tid,
		      live.target.pid, ++now);
}

static void put_child(pid_t pid)
{
	perf_put_task(&records, PERF_RECORD_FORK, pid, live.target.pid, pid, live.target.pid,
		      ++now);
}

static void put_lost(pid_t pid, pid_t tid, uint64_t count)
{
	perf_records_begin(&records, PERF_RECORD_LOST, 0);
	perf_records_u64(&records, 1);
	perf_records_u64(&records, count);
	perf_records_trailer(&records, pid, tid, ++now);
	perf_records_end(&records);
}

static uint64_t lost_on_first_cpu;

static uint64_t leader_loses(pid_t tid, int cpu)
{
	return tid == live.target.pid && cpu == 0 ? lost_on_first_cpu : 0;
}

static void expect_losses(size_t count, const struct spulse_loss *expected)
{
	size_t n;
	const struct spulse_loss *losses = spulse_recorder_losses(live.recorder, &n);

	assert_int_equal(n, count);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(losses[i].pid, expected[i].pid);
		assert_int_equal(losses[i].tid, expected[i].tid);
		assert_int_equal(losses[i].lost, expected[i].lost);
	}
}

static void a_thread_without_events_gets_its_part(void **state)
{
	pid_t pid = live.target.pid;

	(void)state;
	start(LIVE_OPTIONS());
	perf_fake.lost_answer = leader_loses;
	put_thread(CHILD);
	put_lost(pid, CHILD, 6);
	lost_on_first_cpu = 10;
	produce();
	expect_losses(2, (struct spulse_loss[]){{pid, CHILD, 6}, {pid, pid, 4}});
	live_finish();
	assert_int_equal(live.summary.lost_events, 10);
	assert_int_equal(live.summary.lifecycle_gaps, 1);
}

static void a_record_may_come_later_than_its_loss(void **state)
{
	pid_t pid = live.target.pid;

	(void)state;
	start(LIVE_OPTIONS());
	perf_fake.lost_answer = leader_loses;
	put_thread(CHILD);
	lost_on_first_cpu = 10;
	produce();
	expect_losses(1, (struct spulse_loss[]){{pid, pid, 10}});
	put_lost(pid, CHILD, 7);
	lost_on_first_cpu = 11;
	produce();
	expect_losses(2, (struct spulse_loss[]){{pid, CHILD, 7}, {pid, pid, 4}});
}

static void a_child_loses_what_its_ancestors_events_count(void **state)
{
	pid_t pid = live.target.pid;

	(void)state;
	start(LIVE_OPTIONS(.follow = SPULSE_FOLLOW_NEW));
	perf_fake.lost_answer = leader_loses;
	put_child(CHILD);
	put_lost(CHILD, CHILD, 8);
	lost_on_first_cpu = 9;
	produce();
	expect_losses(2, (struct spulse_loss[]){{CHILD, CHILD, 8}, {pid, pid, 1}});
}

static void records_never_add_to_what_the_counters_say(void **state)
{
	pid_t pid = live.target.pid;

	(void)state;
	start(LIVE_OPTIONS());
	perf_fake.lost_answer = leader_loses;
	put_thread(CHILD);
	/* More than was lost; of the thread that has events of its own; of nobody's. */
	put_lost(pid, CHILD, 100);
	put_lost(pid, pid, 100);
	put_lost(STRANGER, STRANGER, 100);
	lost_on_first_cpu = 5;
	produce();
	expect_losses(1, (struct spulse_loss[]){{pid, CHILD, 5}});
	live_finish();
	assert_int_equal(live.summary.lost_events, 5);
}

static uint64_t number_of(const char *key)
{
	size_t n;
	const struct spulse_annotation *notes = spulse_source_annotations(live.source, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(notes[i].key, key))
			return strtoull(notes[i].value, NULL, 10);
	return 0;
}

static void losses_are_noted_by_process_and_thread(void **state)
{
	pid_t pid = live.target.pid;
	char key[64];

	(void)state;
	start(LIVE_OPTIONS(.annotate = true));
	perf_fake.lost_answer = leader_loses;
	put_thread(CHILD);
	put_lost(pid, CHILD, 6);
	lost_on_first_cpu = 10;
	produce();
	live_finish();
	snprintf(key, sizeof(key), "lost/%d", pid);
	assert_int_equal(number_of(key), 10);
	snprintf(key, sizeof(key), "lost/%d/%d", pid, pid);
	assert_int_equal(number_of(key), 4);
	snprintf(key, sizeof(key), "lost/%d/%d", pid, CHILD);
	assert_int_equal(number_of(key), 6);
	assert_int_equal(number_of("counter/lost-events"), 10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_without_events_gets_its_part),
		TEST(a_record_may_come_later_than_its_loss),
		TEST(a_child_loses_what_its_ancestors_events_count),
		TEST(records_never_add_to_what_the_counters_say),
		TEST(losses_are_noted_by_process_and_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

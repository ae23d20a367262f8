/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Waits from made-up context switches: how many samples each becomes, and with which stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "offline.h"
#include "record/recorder.h"

static struct offline o;

static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000, 0xffffffff81000011 };

static int setup(void **state)
{
	(void)state;
	offline_init(&o, 1);
	o.options.off_cpu = true;
	o.options.include_kernel = true;
	o.options.frequency = 1000;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offline_release(&o);
	return 0;
}

static void put(struct perf_event event)
{
	fake_source_put(&o.fake, 0, &event);
}

static void run(void)
{
	offline_start(&o);
	offline_finish(&o);
}

enum { MS = 1000000 };

/* What the kernel says when a thread stops running: its stack, then why. */
static void switch_out(int32_t pid, int32_t tid, uint64_t time, bool preempt)
{
	struct perf_event sample = offline_sample(pid, tid, time, 0xffffffff81000000);
	struct perf_event out = offline_event(PERF_RECORD_SWITCH, pid, tid, time + 1);

	sample.misc = PERF_RECORD_MISC_KERNEL;
	sample.sample.event_id = PERF_EVENT_CONTEXT_SWITCH;
	sample.sample.callchain = chain;
	sample.sample.callchain_len = 3;
	put(sample);
	out.context_switch.out = true;
	out.context_switch.preempt = preempt;
	put(out);
}

static void switch_in(int32_t pid, int32_t tid, uint64_t time)
{
	put(offline_event(PERF_RECORD_SWITCH, pid, tid, time));
}

static void a_wait_becomes_as_many_samples_as_intervals_fit(void **state)
{
	(void)state;
	switch_out(5, 5, 100 * MS, false);
	switch_in(5, 5, 107 * MS);
	run();
	assert_int_equal(o.summary.samples, 7);
	assert_int_equal(o.summary.sample_events, 7);
	for (int i = 0; i < 7; i++)
		assert_string_equal(offline_next_stack(&o),
				    "kernel:1 kernel:ffffffff81000000 kernel:ffffffff81000010");
	assert_string_equal(offline_next_stack(&o), "none");
}

static void what_is_left_is_carried_to_the_next_wait_of_the_thread(void **state)
{
	(void)state;
	/* Ten waits of 0.4 ms are four samples, whichever thread waits in between. */
	for (int i = 0; i < 10; i++) {
		switch_out(5, 5, (100 + 2 * i) * MS, false);
		switch_out(5, 6, (100 + 2 * i) * MS + 2, false);
		switch_in(5, 5, (100 + 2 * i) * MS + 400000);
		switch_in(5, 6, (100 + 2 * i) * MS + 100002);
	}
	run();
	/* And ten of 0.1 ms of the other thread one. */
	assert_int_equal(o.summary.samples, 4 + 1);
}

static void a_thread_that_could_run_does_not_wait(void **state)
{
	(void)state;
	switch_out(5, 5, 100 * MS, true);
	switch_in(5, 5, 200 * MS);
	run();
	assert_int_equal(o.summary.samples, 0);
	assert_int_equal(o.summary.sample_events, 0);
}

static void a_wait_that_began_before_has_no_stack_and_is_left_out(void **state)
{
	(void)state;
	switch_in(5, 5, 200 * MS);
	switch_out(5, 5, 300 * MS, false);
	switch_in(5, 5, 302 * MS);
	run();
	assert_int_equal(o.summary.samples, 2);
}

static void a_thread_that_ends_does_not_wait_on(void **state)
{
	(void)state;
	switch_out(5, 6, 100 * MS, false);
	switch_in(5, 6, 103 * MS);
	switch_out(5, 6, 110 * MS, false);
	put(offline_event(PERF_RECORD_EXIT, 5, 6, 111 * MS));
	run();
	assert_int_equal(o.summary.samples, 3);
}

static void a_wait_that_goes_on_at_the_end_counts_up_to_there(void **state)
{
	(void)state;
	/* The end is now, by the clock: since the machine was started. */
	o.options.frequency = 1;
	switch_out(5, 5, 1, false);
	run();
	assert_true(o.summary.samples > 0);
	assert_int_equal(o.summary.samples, o.summary.sample_events);
}

/* The records of how a wait ended and of the thread's end were lost. */
static void a_wait_ends_when_the_thread_is_missed(void **state)
{
	uint64_t before = rec_monotonic_ns() - 5 * MS, missed;

	(void)state;
	switch_out(5, 6, before, false);
	switch_out(5, 7, before, false);
	offline_start(&o);
	assert_int_equal(spulse_recorder_flush(o.recorder, NULL), 0);
	assert_non_null(threads_add(o.recorder, 5, 6, false));
	assert_non_null(threads_add(o.recorder, 5, 7, false));
	threads_remove(o.recorder, 6);
	threads_remove(o.recorder, 7);
	missed = rec_monotonic_ns();
	/* Its id is another's now. */
	switch_out(5, 7, missed + 1, false);
	switch_in(5, 7, missed + 1 + 3 * MS);
	usleep(200000);
	offline_finish(&o);
	assert_in_range(o.summary.samples, 5 + 5 + 3, (missed - before) / MS * 2 + 3);
}

static void times_lie_within_the_wait(void **state)
{
	const struct spulse_sample *samples;
	size_t n;

	(void)state;
	switch_out(5, 5, 100 * MS, false);
	switch_in(5, 5, 105 * MS);
	run();
	samples = spulse_snapshot_samples(o.snapshot, &n);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(samples[i].timestamp_ns, (100 + i) * MS);
}

static void nothing_of_it_unless_asked_for(void **state)
{
	(void)state;
	o.options.off_cpu = false;
	switch_out(5, 5, 100 * MS, false);
	switch_in(5, 5, 200 * MS);
	run();
	assert_int_equal(o.summary.samples, 0);
}

static void samples_on_a_cpu_stay_what_they_are(void **state)
{
	(void)state;
	put(offline_sample(5, 5, 99 * MS, 0x1000));
	switch_out(5, 5, 100 * MS, false);
	switch_in(5, 5, 102 * MS);
	put(offline_sample(5, 5, 103 * MS, 0x2000));
	run();
	assert_int_equal(o.summary.samples, 4);
	assert_string_equal(offline_next_stack(&o), "user:1000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_wait_becomes_as_many_samples_as_intervals_fit),
		TEST(what_is_left_is_carried_to_the_next_wait_of_the_thread),
		TEST(a_thread_that_could_run_does_not_wait),
		TEST(a_wait_that_began_before_has_no_stack_and_is_left_out),
		TEST(a_thread_that_ends_does_not_wait_on),
		TEST(a_wait_that_goes_on_at_the_end_counts_up_to_there),
		TEST(a_wait_ends_when_the_thread_is_missed),
		TEST(times_lie_within_the_wait),
		TEST(nothing_of_it_unless_asked_for),
		TEST(samples_on_a_cpu_stay_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

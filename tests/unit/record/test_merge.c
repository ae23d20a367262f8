/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "fake_source.h"
#include "random.h"
#include "record/merge.h"

struct seen {
	VEC(struct perf_event) events;
	size_t fail_at; /* 1 + index; 0: never */
};

static int see(void *data, const struct perf_event *event, struct spulse_error **err)
{
	struct seen *seen = data;

	assert_true(vec_push(&seen->events, *event));
	if (seen->events.len == seen->fail_at)
		return err_set(err, SPULSE_ERROR_IO, "told to");
	return 0;
}

static void expect(const struct seen *seen, const int32_t *numbers, size_t n)
{
	assert_int_equal(seen->events.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seen->events.data[i].pid, numbers[i]);
}

#define EXPECT(seen, ...) \
	expect((seen), (const int32_t[]){ __VA_ARGS__ }, \
	       sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))

static struct fake_source fake;
static struct merge merge;
static struct seen seen;

static int setup(void **state)
{
	(void)state;
	fake_source_init(&fake, 2);
	merge = (struct merge){ .source = &fake.source };
	seen = (struct seen){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_source_release(&fake);
	merge_release(&merge);
	vec_free(&seen.events);
	return 0;
}

static void crossed_times_come_out_in_order(void **state)
{
	(void)state;
	fake_source_put_time(&fake, 0, 10, 1);
	fake_source_put_time(&fake, 0, 40, 4);
	fake_source_put_time(&fake, 1, 20, 2);
	fake_source_put_time(&fake, 1, 30, 3);
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	EXPECT(&seen, 1, 2, 3, 4);
	assert_false(merge.pending);
	assert_int_equal(fake.detached, 0);
}

/* Published in ring 0 only after ring 1 was looked at for the first time. */
static void late_but_older(struct fake_source *f, size_t stream, size_t number)
{
	(void)stream;
	if (number == 3) /* the second round's first stream */
		fake_source_put_time(f, 0, 5, 1);
}

static void what_was_published_between_the_snapshots_still_comes_first(void **state)
{
	(void)state;
	fake_source_put_time(&fake, 1, 20, 2);
	fake.on_snapshot = late_but_older;
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	/* The older one was seen once only: nothing goes before it, and it may not go yet. */
	assert_int_equal(seen.events.len, 0);
	assert_true(merge.pending);
	assert_int_equal(fake.detached, 1);
	fake.on_snapshot = NULL;
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	EXPECT(&seen, 1, 2);
	assert_false(merge.pending);
}

static void equal_times_keep_the_order_of_arrival(void **state)
{
	(void)state;
	fake_source_put_time(&fake, 1, 7, 3);
	fake_source_put_time(&fake, 1, 7, 4);
	fake_source_put_time(&fake, 0, 7, 1);
	fake_source_put_time(&fake, 0, 7, 2);
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	EXPECT(&seen, 1, 2, 3, 4);
}

static void more_each_time(struct fake_source *f, size_t stream, size_t number)
{
	fake_source_put_time(f, stream, 1000 + number, (int32_t)number);
}

static void continuous_production_takes_two_rounds_at_most(void **state)
{
	(void)state;
	fake.on_snapshot = more_each_time;
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	assert_int_equal(fake.snapshots, 4);
	EXPECT(&seen, 1, 2);
	assert_true(merge.pending);
}

static void a_flush_passes_everything_on(void **state)
{
	(void)state;
	fake.on_snapshot = more_each_time;
	assert_int_equal(merge_pass(&merge, MERGE_ALL, see, &seen, NULL), 0);
	EXPECT(&seen, 1, 2, 3, 4);
	assert_false(merge.pending);
}

static void a_broken_stream_fails_and_loses_nothing_of_the_other(void **state)
{
	struct spulse_error *err = NULL;

	(void)state;
	fake_source_put_time(&fake, 0, 10, 1);
	fake.streams.data[1].broken = true;
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, &err), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), EBADMSG);
	spulse_error_free(err);
	assert_int_equal(seen.events.len, 0);
	fake.streams.data[1].broken = false;
	assert_int_equal(merge_pass(&merge, MERGE_ALL, see, &seen, NULL), 0);
	EXPECT(&seen, 1);
}

static void a_failing_consumer_ends_the_pass(void **state)
{
	struct spulse_error *err = NULL;

	(void)state;
	fake_source_put_time(&fake, 0, 10, 1);
	fake_source_put_time(&fake, 0, 11, 2);
	seen.fail_at = 1;
	assert_int_equal(merge_pass(&merge, MERGE_ALL, see, &seen, &err), -SPULSE_ERROR_IO);
	spulse_error_free(err);
	EXPECT(&seen, 1);
}

static void events_without_a_time_come_first(void **state)
{
	const struct perf_event timeless = { .type = PERF_RECORD_MAX, .pid = 9 };

	(void)state;
	fake_source_put_time(&fake, 0, 1, 1);
	fake_source_put(&fake, 1, &timeless);
	assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
	EXPECT(&seen, 9, 1);
}

static void random_streams_come_out_sorted(void **state)
{
	struct random random = { .state = 7 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		size_t streams = 1 + random_below(&random, 70), n = 0;

		teardown(NULL);
		setup(NULL);
		fake_source_release(&fake);
		fake_source_init(&fake, streams);
		merge.source = &fake.source;
		for (size_t i = 0; i < streams; i++) {
			uint64_t time = random_below(&random, 100);

			for (size_t k = random_below(&random, 20); k > 0; k--, n++) {
				time += random_below(&random, 30);
				fake_source_put_time(&fake, i, time, (int32_t)i);
			}
		}
		assert_int_equal(merge_pass(&merge, MERGE_SETTLED, see, &seen, NULL), 0);
		assert_int_equal(seen.events.len, n);
		for (size_t i = 1; i < n; i++) {
			const struct perf_event *a = &seen.events.data[i - 1], *b = a + 1;

			assert_true(a->time < b->time ||
				    (a->time == b->time && a->pid <= b->pid));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(crossed_times_come_out_in_order),
		TEST(what_was_published_between_the_snapshots_still_comes_first),
		TEST(equal_times_keep_the_order_of_arrival),
		TEST(continuous_production_takes_two_rounds_at_most),
		TEST(a_flush_passes_everything_on),
		TEST(a_broken_stream_fails_and_loses_nothing_of_the_other),
		TEST(a_failing_consumer_ends_the_pass),
		TEST(events_without_a_time_come_first),
		TEST(random_streams_come_out_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

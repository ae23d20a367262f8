/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "perf_fake.h"
#include "perf_records.h"
#include "random.h"

enum { PAGE = 4096, SIZE = 65536 };

static struct perf_stream stream;
static struct perf_event_mmap_page *page;
static struct perf_records w;

static int setup(void **state)
{
	void *area;

	(void)state;
	perf_fake_install();
	memset(&stream, 0, sizeof(stream));
	perf_records_init(&w, 0xff01ff);
	stream.layout = w.layout;
	assert_int_equal(perf_sys->map(-1, PAGE + SIZE, &area), 0);
	page = area;
	assert_true(perf_ring_init(&stream.ring, area, PAGE + SIZE, PAGE));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_stream_release(&stream);
	perf_records_release(&w);
	perf_fake_remove();
	return 0;
}

static void produce(void)
{
	perf_fake_produce(page, w.bytes.data, w.bytes.len);
	w.bytes.len = 0;
}

static void produce_sample(uint64_t time)
{
	static uint8_t stack[1024];
	uint64_t regs[17];
	const uint64_t chain[] = { time, time + 1 };

	memset(stack, time, sizeof(stack));
	for (int i = 0; i < 17; i++)
		regs[i] = time + i;
	perf_put_sample(&w, &(struct perf_sample_fields){
		.pid = 1, .tid = 2, .time = time, .abi = 2, .regs = regs, .stack = stack,
		.stack_used = 512, .stack_size = 1024, .chain = chain, .chain_len = 2 });
	produce();
}

static void check_sample(const struct perf_event *event, uint64_t time)
{
	assert_int_equal(event->type, PERF_RECORD_SAMPLE);
	assert_int_equal(event->time, time);
	assert_int_equal(event->sample.callchain[1], time + 1);
	assert_int_equal(event->sample.regs[16], time + 16);
	assert_int_equal(event->sample.stack_len, 512);
	for (int i = 0; i < 512; i++)
		assert_int_equal(event->sample.stack[i], (uint8_t)time);
}

static void expect_sample(uint64_t time)
{
	const struct perf_event *event;

	assert_int_equal(perf_stream_front(&stream, &event, NULL), 1);
	check_sample(event, time);
	/* Asking again changes nothing. */
	assert_int_equal(perf_stream_front(&stream, &event, NULL), 1);
	check_sample(event, time);
	perf_stream_advance(&stream);
}

static void expect_nothing(void)
{
	const struct perf_event *event;

	assert_int_equal(perf_stream_front(&stream, &event, NULL), 0);
}

static void test_records_come_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		produce_sample(i);
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	for (int i = 0; i < 10; i++)
		expect_sample(i);
	expect_nothing();
	assert_int_equal(page->data_tail, page->data_head);
}

static void test_detach_gives_all_space_back(void **state)
{
	const struct perf_event *event;

	(void)state;
	for (int i = 0; i < 10; i++)
		produce_sample(i);
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	expect_sample(0);
	/* A front that was looked at but not taken is kept too. */
	assert_int_equal(perf_stream_front(&stream, &event, NULL), 1);
	assert_int_equal(perf_stream_detach(&stream, NULL), 0);
	assert_int_equal(page->data_tail, page->data_head);
	/* The kernel may write over what was there. */
	for (int i = 10; i < 40; i++)
		produce_sample(i);
	for (int i = 1; i < 10; i++)
		expect_sample(i);
	expect_nothing();
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	for (int i = 10; i < 40; i++)
		expect_sample(i);
	expect_nothing();
}

static void test_copies_leave_out_the_unused_stack(void **state)
{
	(void)state;
	produce_sample(1);
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	assert_int_equal(perf_stream_detach(&stream, NULL), 0);
	/* header, ip, ids, time, chain of 2, abi, registers, stack size, 512 bytes */
	assert_int_equal(stream.bytes.len, 8 + 8 + 8 + 8 + 24 + 8 + 17 * 8 + 8 + 512);
	expect_sample(1);
	assert_int_equal(stream.bytes.len, 0);
}

static void test_copies_stay_bounded_over_many_passes(void **state)
{
	struct random rng = { .state = 9 };
	uint64_t made = 0, taken = 0;

	(void)state;
	for (int pass = 0; pass < 3000; pass++) {
		size_t n = random_below(&rng, 20);

		for (size_t i = 0; i < n; i++)
			produce_sample(made++);
		assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
		/* Sometimes more, sometimes fewer than there are, so that copies pile up. */
		for (n = random_below(&rng, 25); n && taken < made; n--)
			expect_sample(taken++);
		assert_int_equal(perf_stream_detach(&stream, NULL), 0);
		assert_true(stream.copied.len - stream.copied_next == made - taken);
		assert_true(stream.bytes.cap < 1 << 20);
	}
}

static void test_names_survive_being_copied(void **state)
{
	const struct perf_event *event;

	(void)state;
	perf_put_mmap2(&w, &(struct perf_mmap_fields){ .path = "/lib/one.so", .prot = 5 });
	perf_put_comm(&w, 1, 2, 3, false, "two");
	produce();
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	assert_int_equal(perf_stream_detach(&stream, NULL), 0);
	memset(stream.ring.data, 0xff, SIZE);
	assert_int_equal(perf_stream_front(&stream, &event, NULL), 1);
	assert_string_equal(event->mmap.path, "/lib/one.so");
	perf_stream_advance(&stream);
	assert_int_equal(perf_stream_front(&stream, &event, NULL), 1);
	assert_string_equal(event->comm.name, "two");
}

static void test_bad_record_consumes_nothing(void **state)
{
	struct spulse_error *err = NULL;
	const struct perf_event *event;

	(void)state;
	produce_sample(1);
	perf_records_begin(&w, PERF_RECORD_SAMPLE, 0);
	perf_records_u64(&w, 1);
	perf_records_end(&w);
	produce();
	assert_int_equal(perf_stream_snapshot(&stream, NULL), 0);
	expect_sample(1);
	assert_int_equal(perf_stream_front(&stream, &event, &err), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), EBADMSG);
	assert_non_null(strstr(spulse_error_message(err), "type 9"));
	assert_true(page->data_tail < page->data_head);
	spulse_error_free(err);
	assert_int_equal(perf_stream_detach(&stream, NULL), -SPULSE_ERROR_IO);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_records_come_in_order),
		CASE(test_detach_gives_all_space_back),
		CASE(test_copies_leave_out_the_unused_stack),
		CASE(test_copies_stay_bounded_over_many_passes),
		CASE(test_names_survive_being_copied),
		CASE(test_bad_record_consumes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

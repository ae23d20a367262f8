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

enum { PAGE = 4096, SIZE = 4096 };

static struct perf_ring ring;
static struct perf_event_mmap_page *page;

static int setup(void **state)
{
	void *area;

	(void)state;
	perf_fake_install();
	assert_int_equal(perf_sys->map(-1, PAGE + SIZE, &area), 0);
	page = area;
	assert_true(perf_ring_init(&ring, area, PAGE + SIZE, PAGE));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_ring_release(&ring);
	perf_fake_remove();
	return 0;
}

/* A record of `size` bytes filled with `fill`. */
static void produce(size_t size, uint8_t fill)
{
	uint8_t bytes[SIZE];
	struct perf_event_header header = { .type = 99, .size = size };

	memset(bytes, fill, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	perf_fake_produce(page, bytes, size);
}

static void test_description_is_checked(void **state)
{
	struct perf_ring other;

	(void)state;
	page->data_size = SIZE - 8;
	assert_false(perf_ring_init(&other, page, PAGE + SIZE, PAGE));
	page->data_size = SIZE * 2;
	assert_false(perf_ring_init(&other, page, PAGE + SIZE, PAGE));
	page->data_size = SIZE;
	page->data_offset = PAGE + 8;
	assert_false(perf_ring_init(&other, page, PAGE + SIZE, PAGE));
	/* An old kernel leaves both zero. */
	page->data_size = page->data_offset = 0;
	assert_true(perf_ring_init(&other, page, PAGE + SIZE, PAGE));
	assert_int_equal(other.size, SIZE);
	assert_ptr_equal(other.data, (uint8_t *)page + PAGE);
}

static void test_record_is_read_in_place(void **state)
{
	const void *record;
	size_t size;

	(void)state;
	produce(64, 0xaa);
	assert_int_equal(perf_ring_snapshot(&ring, NULL), 0);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
	assert_int_equal(size, 64);
	assert_ptr_equal(record, ring.data);
	/* It stays until it is given back. */
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
	assert_int_equal(page->data_tail, 0);
	perf_ring_advance(&ring, size);
	assert_int_equal(page->data_tail, 64);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 0);
}

static void test_later_records_wait_for_the_next_snapshot(void **state)
{
	const void *record;
	size_t size;

	(void)state;
	produce(64, 1);
	assert_int_equal(perf_ring_snapshot(&ring, NULL), 0);
	produce(64, 2);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
	perf_ring_advance(&ring, size);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 0);
	assert_int_equal(perf_ring_snapshot(&ring, NULL), 0);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
	assert_int_equal(((const uint8_t *)record)[63], 2);
}

static void test_records_that_wrap_are_intact(void **state)
{
	struct random rng = { .state = 1 };
	const void *record;
	size_t size;

	(void)state;
	/* Several times around, several records at once, until every offset wrapped. */
	for (int i = 0; i < 20000; i++) {
		size_t sizes[4], n = 1 + random_below(&rng, 4);

		for (size_t j = 0; j < n; j++) {
			sizes[j] = 8 * (1 + random_below(&rng, 100));
			produce(sizes[j], i + j);
		}
		assert_int_equal(perf_ring_snapshot(&ring, NULL), 0);
		for (size_t j = 0; j < n; j++) {
			assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
			assert_int_equal(size, sizes[j]);
			for (size_t k = 8; k < size; k++)
				assert_int_equal(((const uint8_t *)record)[k], (uint8_t)(i + j));
			perf_ring_advance(&ring, size);
			assert_true(page->data_tail <= ring.position);
		}
		perf_ring_publish(&ring);
		assert_int_equal(page->data_tail, page->data_head);
	}
}

/* Each case: what the kernel would have to write, and that nothing was consumed. */
static void check_malformed(const char *reason)
{
	struct spulse_error *err = NULL;
	uint64_t tail = page->data_tail;
	const void *record;
	size_t size;
	int r = perf_ring_snapshot(&ring, &err);

	if (r == 0)
		r = perf_ring_front(&ring, &record, &size, &err);
	assert_int_equal(r, -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), EBADMSG);
	assert_non_null(strstr(spulse_error_message(err), reason));
	assert_int_equal(page->data_tail, tail);
	spulse_error_free(err);
}

static void test_head_that_goes_back_is_refused(void **state)
{
	const void *record;
	size_t size;

	(void)state;
	produce(64, 1);
	assert_int_equal(perf_ring_snapshot(&ring, NULL), 0);
	assert_int_equal(perf_ring_front(&ring, &record, &size, NULL), 1);
	perf_ring_advance(&ring, size);
	page->data_head = 8;
	check_malformed("went back");
}

static void test_more_than_the_ring_holds_is_refused(void **state)
{
	(void)state;
	page->data_head = SIZE + 8;
	check_malformed("more data than the ring holds");
}

static void test_incomplete_header_is_refused(void **state)
{
	(void)state;
	page->data_head = 4;
	check_malformed("incomplete header");
}

static void test_zero_and_odd_lengths_are_refused(void **state)
{
	(void)state;
	page->data_head = 64;
	check_malformed("impossible record length");
	((struct perf_event_header *)ring.data)->size = 4;
	check_malformed("impossible record length");
	((struct perf_event_header *)ring.data)->size = 20;
	check_malformed("impossible record length");
}

static void test_record_beyond_the_head_is_refused(void **state)
{
	(void)state;
	page->data_head = 64;
	((struct perf_event_header *)ring.data)->size = 72;
	check_malformed("beyond the head");
}

int main(void)
{
#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_RING(test_description_is_checked),
		WITH_RING(test_record_is_read_in_place),
		WITH_RING(test_later_records_wait_for_the_next_snapshot),
		WITH_RING(test_records_that_wrap_are_intact),
		WITH_RING(test_head_that_goes_back_is_refused),
		WITH_RING(test_more_than_the_ring_holds_is_refused),
		WITH_RING(test_incomplete_header_is_refused),
		WITH_RING(test_zero_and_odd_lengths_are_refused),
		WITH_RING(test_record_beyond_the_head_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

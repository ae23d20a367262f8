/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stackpulse/error.h>
#include <stackpulse/record.h>

#include "base/errors.h"
#include "spool/spool.h"

/* A recording in this process: a file, its writer and the channel to its tail. */
struct recording {
	int fd;
	struct spulse_spool_writer *writer;
	struct spool_channel *channel;
	struct spulse_tail *tail;
	uint64_t written;
};

static void start(struct recording *rec, bool disposable)
{
	const struct spulse_spool_header header = { .size = sizeof(header), .format = 4 };
	int *fd = malloc(sizeof(*fd));

	rec->fd = memfd_create("spool", MFD_CLOEXEC);
	*fd = dup(rec->fd);
	rec->written = 0;
	assert_int_equal(spulse_spool_writer_new(&spool_fd_output, fd, &header, &rec->writer,
						 NULL), 0);
	assert_int_equal(spulse_spool_writer_flush(rec->writer, NULL), 0);
	assert_int_equal(spool_channel_new(&rec->channel, NULL), 0);
	spool_channel_publish(rec->channel, spool_writer_written(rec->writer));
	assert_int_equal(spool_tail_open_channel(rec->fd, "test", rec->channel, NULL, disposable,
						 &rec->tail, NULL), 0);
}

static void stop(struct recording *rec)
{
	spulse_tail_free(rec->tail);
	spulse_spool_writer_free(rec->writer);
	spool_channel_unref(rec->channel);
	close(rec->fd);
}

static void add_samples(struct recording *rec, uint64_t count)
{
	struct spulse_frame frame = { .abs_ip = 5, .file_relative_ip = 5,
				      .module_id = SPULSE_NO_MODULE };

	for (; count; count--) {
		struct spulse_sample sample = { .timestamp_ns = ++rec->written, .pid = 1,
						.tid = 1 };

		assert_int_equal(spulse_spool_writer_sample(rec->writer, &sample, &frame, 1, NULL),
				 0);
	}
	assert_int_equal(spulse_spool_writer_flush(rec->writer, NULL), 0);
}

static void publish(struct recording *rec)
{
	spool_channel_publish(rec->channel, spool_writer_written(rec->writer));
}

/* Polls once; the number of samples. */
static uint64_t poll_once(struct spulse_tail *tail)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_batch *batch;

	assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
	assert_int_equal(spulse_batch_stacks(batch, &stacks, NULL), 0);
	return spulse_stacks_remaining(stacks);
}

static bool readable(int fd)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	return poll(&entry, 1, 0) == 1;
}

static void test_only_published_bytes_are_visible(void **state)
{
	enum spulse_tail_state tail_state;
	struct recording rec;

	(void)state;
	start(&rec, false);
	assert_true(readable(spulse_tail_fd(rec.tail)));
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 0);
	assert_false(readable(spulse_tail_fd(rec.tail)));
	add_samples(&rec, 10);
	assert_int_equal(spulse_tail_wait(rec.tail, 1000000, &tail_state, NULL), 0);
	assert_int_equal(tail_state, SPULSE_TAIL_OPEN);
	assert_int_equal(poll_once(rec.tail), 0);
	publish(&rec);
	assert_true(readable(spulse_tail_fd(rec.tail)));
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 10);
	assert_false(readable(spulse_tail_fd(rec.tail)));
	stop(&rec);
}

static void test_finish_repeats_with_the_summary(void **state)
{
	struct spulse_recording_summary summary = { .size = sizeof(summary), .samples = 3 };
	struct spulse_recording_summary found = { .size = sizeof(found) };
	enum spulse_tail_state tail_state;
	struct recording rec;

	(void)state;
	start(&rec, false);
	add_samples(&rec, 3);
	publish(&rec);
	assert_int_equal(spulse_tail_summary(rec.tail, &found), 0);
	spool_channel_end(rec.channel, NULL, &summary);
	/* The rest comes first. */
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 0);
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 0);
		assert_int_equal(tail_state, SPULSE_TAIL_FINISHED);
	}
	assert_int_equal(spulse_tail_summary(rec.tail, &found), 1);
	assert_int_equal(found.samples, 3);
	assert_true(readable(spulse_tail_fd(rec.tail)));
	stop(&rec);
}

static void test_failure_comes_after_the_rest(void **state)
{
	struct spulse_error *error = NULL, *found = NULL;
	enum spulse_tail_state tail_state;
	struct recording rec;

	(void)state;
	start(&rec, false);
	poll_once(rec.tail);
	add_samples(&rec, 2);
	publish(&rec);
	add_samples(&rec, 5);
	err_io(&error, 5, NULL, "the disk burns");
	spool_channel_end(rec.channel, error, NULL);
	spulse_error_free(error);
	publish(&rec);
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 2);
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, &found), -SPULSE_ERROR_IO);
	assert_string_equal(spulse_error_message(found), "the disk burns: Input/output error");
	spulse_error_free(found);
	stop(&rec);
}

static void test_either_side_may_go_first(void **state)
{
	enum spulse_tail_state tail_state;
	struct recording rec;

	(void)state;
	start(&rec, false);
	add_samples(&rec, 4);
	publish(&rec);
	spool_channel_end(rec.channel, NULL, NULL);
	spulse_spool_writer_free(rec.writer);
	rec.writer = NULL;
	spool_channel_unref(rec.channel);
	rec.channel = NULL;
	close(rec.fd);
	rec.fd = -1;
	assert_int_equal(poll_once(rec.tail), 0);
	assert_int_equal(spulse_tail_wait(rec.tail, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(rec.tail), 4);
	spulse_tail_free(rec.tail);
	start(&rec, false);
	spulse_tail_free(rec.tail);
	rec.tail = NULL;
	add_samples(&rec, 4);
	publish(&rec);
	stop(&rec);
}

static void test_more_published_than_there_is(void **state)
{
	const struct spulse_batch *batch;
	struct recording rec;

	(void)state;
	start(&rec, false);
	poll_once(rec.tail);
	spool_channel_publish(rec.channel, 1 << 20);
	assert_int_equal(spulse_tail_poll(rec.tail, &batch, NULL), -SPULSE_ERROR_CORRUPT_SPOOL);
	stop(&rec);
}

static uint64_t blocks(const struct recording *rec)
{
	struct stat st;

	assert_int_equal(fstat(rec->fd, &st), 0);
	return st.st_blocks;
}

static void test_disposable_frees_what_was_consumed(void **state)
{
	struct spulse_tail_stats stats = { .size = sizeof(stats) };
	enum spulse_tail_state tail_state;
	uint64_t samples = 0, before;
	struct recording rec;

	(void)state;
	start(&rec, true);
	add_samples(&rec, 40000);
	publish(&rec);
	before = blocks(&rec);
	spool_channel_end(rec.channel, NULL, NULL);
	while (spulse_tail_wait(rec.tail, -1, &tail_state, NULL) > 0)
		samples += poll_once(rec.tail);
	assert_int_equal(samples, 40000);
	spulse_tail_stats(rec.tail, &stats);
	assert_int_equal(stats.reclamation, SPULSE_RECLAMATION_ENABLED);
	assert_int_equal(stats.consumed_bytes, stats.published_bytes);
	assert_int_equal(stats.reclaimed_bytes, stats.consumed_bytes / 4096 * 4096);
	assert_true(blocks(&rec) <= 8 && before > 8);
	stop(&rec);
}

static void test_discard_consumed(void **state)
{
	struct spulse_tail_stats stats = { .size = sizeof(stats) };
	SPULSE_CLEANUP(tail) foreign = NULL;
	struct recording rec;
	char path[64];

	(void)state;
	start(&rec, false);
	add_samples(&rec, 10000);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", rec.fd);
	assert_int_equal(spulse_tail_open(path, &foreign, NULL), 0);
	assert_int_equal(spulse_tail_fd(foreign), -1);
	assert_int_equal(spulse_tail_discard_consumed(foreign, NULL), -SPULSE_ERROR_PERMISSION);
	publish(&rec);
	poll_once(rec.tail);
	assert_int_equal(spulse_tail_discard_consumed(rec.tail, NULL), 0);
	spulse_tail_stats(rec.tail, &stats);
	assert_int_equal(stats.reclaimed_bytes, 0);
	assert_int_equal(poll_once(rec.tail), 10000);
	assert_int_equal(spulse_tail_discard_consumed(rec.tail, NULL), 0);
	spulse_tail_stats(rec.tail, &stats);
	assert_true(stats.reclaimed_bytes > 30000);
	assert_int_equal(stats.reclamation, SPULSE_RECLAMATION_RETAINED);
	/* The file goes on. */
	add_samples(&rec, 5);
	publish(&rec);
	assert_int_equal(poll_once(rec.tail), 5);
	stop(&rec);
}

static void *write_slowly(void *data)
{
	struct recording *rec = data;

	for (int i = 0; i < 200; i++) {
		add_samples(rec, 50);
		publish(rec);
		if (i % 20 == 0)
			usleep(1000);
	}
	spool_channel_end(rec->channel, NULL, NULL);
	return NULL;
}

static void test_reading_in_another_thread(void **state)
{
	enum spulse_tail_state tail_state;
	struct recording rec;
	uint64_t samples = 0;
	pthread_t thread;
	int r;

	(void)state;
	start(&rec, true);
	assert_int_equal(pthread_create(&thread, NULL, write_slowly, &rec), 0);
	while ((r = spulse_tail_wait(rec.tail, -1, &tail_state, NULL)) > 0)
		samples += poll_once(rec.tail);
	assert_int_equal(r, 0);
	assert_int_equal(tail_state, SPULSE_TAIL_FINISHED);
	assert_int_equal(samples, 10000);
	pthread_join(thread, NULL);
	stop(&rec);
}

static void test_waiting_for_a_foreign_file(void **state)
{
	SPULSE_CLEANUP(tail) foreign = NULL;
	enum spulse_tail_state tail_state;
	struct recording rec;
	char path[64];

	(void)state;
	start(&rec, false);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", rec.fd);
	assert_int_equal(spulse_tail_open(path, &foreign, NULL), 0);
	assert_int_equal(spulse_tail_wait(foreign, 0, &tail_state, NULL), 1);
	poll_once(foreign);
	assert_int_equal(spulse_tail_wait(foreign, 0, &tail_state, NULL), 0);
	assert_int_equal(spulse_tail_wait(foreign, 30000000, &tail_state, NULL), 0);
	assert_int_equal(tail_state, SPULSE_TAIL_OPEN);
	add_samples(&rec, 1);
	assert_int_equal(spulse_tail_wait(foreign, -1, &tail_state, NULL), 1);
	assert_int_equal(poll_once(foreign), 1);
	stop(&rec);
}

static void test_batch_limit(void **state)
{
	const struct spulse_batch *batch;
	struct recording rec;

	(void)state;
	start(&rec, false);
	poll_once(rec.tail);
	add_samples(&rec, 40000);
	publish(&rec);
	assert_int_equal(poll_once(rec.tail), 16384);
	assert_int_equal(poll_once(rec.tail), 16384);
	assert_int_equal(poll_once(rec.tail), 7232);
	add_samples(&rec, 16384);
	publish(&rec);
	assert_int_equal(spulse_tail_poll(rec.tail, &batch, NULL), 0);
	assert_false(spulse_batch_has_more(batch));
	stop(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_published_bytes_are_visible),
		cmocka_unit_test(test_finish_repeats_with_the_summary),
		cmocka_unit_test(test_failure_comes_after_the_rest),
		cmocka_unit_test(test_either_side_may_go_first),
		cmocka_unit_test(test_more_published_than_there_is),
		cmocka_unit_test(test_disposable_frees_what_was_consumed),
		cmocka_unit_test(test_discard_consumed),
		cmocka_unit_test(test_reading_in_another_thread),
		cmocka_unit_test(test_waiting_for_a_foreign_file),
		cmocka_unit_test(test_batch_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

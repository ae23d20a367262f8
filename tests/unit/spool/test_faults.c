/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A writer whose output fails at any moment, and files that change under a reader: what was
 * written is readable up to the last complete record, errors are kept, and nothing else is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stackpulse/error.h>

#include "spool/spool.h"
#include "spool_output.h"

static const struct spulse_spool_header header = {
	.size = sizeof(header),
	.format = 4,
	.interval = 1000000,
};

/* Event number i: a module now and then, else a sample. */
static int event(struct spulse_spool_writer *writer, uint64_t i, struct spulse_error **err)
{
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = 7,
		.start = 0x1000 + i * 4096,
		.end = 0x2000 + i * 4096,
		.path = "/usr/lib/a-library-with-a-name.so",
		.path_len = 33,
	};
	struct spulse_sample sample = { .timestamp_ns = 1000 + i, .pid = 7, .tid = 8 };
	struct spulse_frame frames[3];
	uint32_t id;

	if (i % 8 == 0)
		return spulse_spool_writer_module(writer, &fields, &id, err);
	for (size_t k = 0; k < 3; k++)
		frames[k] = (struct spulse_frame){
			.file_relative_ip = 0x500000 + i % 5 * k,
			.abs_ip = 0x500000 + i % 5 * k,
			.module_id = SPULSE_NO_MODULE,
		};
	return spulse_spool_writer_sample(writer, &sample, frames, 3, err);
}

/* Writes events, each flushed, until the output fails; returns how many went well. */
static uint64_t write_until_failure(struct spool_output *output, uint64_t events, int *kind,
				    int *errnum)
{
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spulse_error *err = NULL, *again = NULL;
	uint64_t done = 0;
	int r = spulse_spool_writer_new(&spool_output_functions, output, &header, &writer, NULL);

	assert_int_equal(r, 0);
	while (r == 0 && done < events) {
		r = event(writer, done, &err);
		if (r == 0)
			r = spulse_spool_writer_flush(writer, &err);
		done += r == 0;
	}
	*kind = r;
	*errnum = spulse_error_errno(err);
	if (r < 0) {
		size_t len = output->bytes.len;
		unsigned int calls = output->calls;

		/* The error stays, and nothing more is written. */
		assert_int_equal(event(writer, done, &again), r);
		assert_int_equal(spulse_error_errno(again), *errnum);
		assert_int_equal(spulse_spool_writer_finish(writer, NULL), r);
		assert_int_equal(output->bytes.len, len);
		assert_int_equal(output->calls, calls);
		assert_int_equal(spool_writer_written(writer), len);
	}
	spulse_error_free(err);
	spulse_error_free(again);
	return done;
}

static uint64_t samples_among(uint64_t events)
{
	return events - (events + 7) / 8;
}

/* Opens what was written; a header that was cut is the one thing that cannot be. */
static void check_readable(const struct spool_output *output, size_t header_len, uint64_t done)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	struct spool_file file;
	size_t count;
	int r;

	spool_file_make(&file, output->bytes.data, output->bytes.len);
	r = spulse_snapshot_open(file.path, &snapshot, NULL);
	spool_file_close(&file);
	if (output->bytes.len < header_len) {
		assert_int_equal(r, -SPULSE_ERROR_CORRUPT_SPOOL);
		return;
	}
	assert_int_equal(r, 0);
	spulse_snapshot_samples(snapshot, &count);
	/* The event that failed may have got through nevertheless. */
	assert_in_range(count, samples_among(done), samples_among(done) + 1);
}

static size_t header_length(void)
{
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_output output = { 0 };
	size_t len;

	spulse_spool_writer_new(&spool_output_functions, &output, &header, &writer, NULL);
	spulse_spool_writer_flush(writer, NULL);
	len = output.bytes.len;
	strbuf_release(&output.bytes);
	return len;
}

static void test_full_disk(void **state)
{
	size_t header_len = header_length();
	int kind = -1, errnum;

	(void)state;
	/* Every size of the disk, up to one that holds all. */
	for (size_t room = 1; kind < 0; room++) {
		struct spool_output output = { .room = room, .error = ENOSPC, .piece = room % 5 };
		uint64_t done = write_until_failure(&output, 60, &kind, &errnum);

		if (kind < 0) {
			assert_int_equal(kind, -SPULSE_ERROR_IO);
			assert_int_equal(errnum, ENOSPC);
			assert_int_equal(output.failures, 1);
			assert_int_equal(output.bytes.len, room);
		}
		assert_int_equal(output.closes, 1);
		check_readable(&output, header_len, done);
		strbuf_release(&output.bytes);
	}
}

static void test_nth_write_fails(void **state)
{
	size_t header_len = header_length();
	int kind = -1, errnum;

	(void)state;
	for (unsigned int n = 1; kind < 0; n++) {
		struct spool_output output = { .fail_call = n, .error = EIO, .piece = 11,
					       .interrupt = 4 };
		uint64_t done = write_until_failure(&output, 60, &kind, &errnum);

		if (kind < 0) {
			assert_int_equal(kind, -SPULSE_ERROR_IO);
			assert_int_equal(errnum, EIO);
			assert_int_equal(output.failures, 1);
		}
		check_readable(&output, header_len, done);
		strbuf_release(&output.bytes);
	}
}

/* Writes `events` events to a new file. */
static void make_spool(struct spool_file *file, uint64_t events)
{
	struct spool_output output = { 0 };
	int kind, errnum;

	assert_int_equal(write_until_failure(&output, events, &kind, &errnum), events);
	spool_file_make(file, output.bytes.data, output.bytes.len);
	strbuf_release(&output.bytes);
}

/* Goes on with a walk until it fails or ends; returns the last result. */
static int walk_on(struct spulse_samples *samples, struct spulse_error **err)
{
	struct spulse_sample sample;
	int r;

	while ((r = spulse_samples_next(samples, &sample, err)) > 0)
		;
	return r;
}

static int replay_after(void (*change)(struct spool_file *file), char *message, size_t size)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(samples) samples = NULL;
	struct spulse_error *err = NULL;
	struct spool_file file;
	int r;

	make_spool(&file, 200000);
	assert_int_equal(spulse_replay_open(file.path, &replay, NULL), 0);
	change(&file);
	assert_int_equal(spulse_replay_samples(replay, &samples, NULL), 0);
	r = walk_on(samples, &err);
	snprintf(message, size, "%s", spulse_error_message(err));
	spulse_error_free(err);
	spool_file_close(&file);
	return r;
}

static void cut_in_half(struct spool_file *file)
{
	assert_int_equal(ftruncate(file->fd, lseek(file->fd, 0, SEEK_END) / 2), 0);
}

static void change_one_byte(struct spool_file *file)
{
	off_t at = lseek(file->fd, 0, SEEK_END) - 2;
	unsigned char byte;

	assert_int_equal(pread(file->fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(file->fd, &byte, 1, at), 1);
}

static void grow(struct spool_file *file)
{
	assert_int_equal(pwrite(file->fd, "\xff", 1, lseek(file->fd, 0, SEEK_END)), 1);
}

static void test_replay_of_a_changed_file(void **state)
{
	char message[256];

	(void)state;
	assert_int_equal(replay_after(cut_in_half, message, sizeof(message)),
			 -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "became shorter"));
	assert_int_equal(replay_after(change_one_byte, message, sizeof(message)),
			 -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "was changed while it was open"));
	/* A recording that goes on is no harm: what was there is still there. */
	assert_int_equal(replay_after(grow, message, sizeof(message)), 0);
}

static int tail_after(void (*change)(struct spool_file *file), char *message, size_t size)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	const struct spulse_batch *batch;
	struct spulse_error *err = NULL;
	struct spool_file file;
	int r;

	make_spool(&file, 100);
	assert_int_equal(spulse_tail_open(file.path, &tail, NULL), 0);
	assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
	change(&file);
	r = spulse_tail_poll(tail, &batch, &err);
	/* And it stays so. */
	assert_int_equal(spulse_tail_poll(tail, &batch, NULL), r);
	snprintf(message, size, "%s", spulse_error_message(err));
	spulse_error_free(err);
	spool_file_close(&file);
	return r;
}

/* Another recording in the same file: longer, and other from byte `from` on. */
static void rewrite_longer(struct spool_file *file, size_t from, size_t to)
{
	struct spool_file other;
	char bytes[8192];
	ssize_t n;

	make_spool(&other, 300);
	assert_int_equal(ftruncate(file->fd, 0), 0);
	n = pread(other.fd, bytes, sizeof(bytes), 0);
	for (size_t i = from; i < to && i < (size_t)n; i++)
		bytes[i] ^= 1;
	assert_int_equal(pwrite(file->fd, bytes, n, 0), n);
	spool_file_close(&other);
}

static void rewrite_header(struct spool_file *file)
{
	rewrite_longer(file, 9, 11);
}

static void rewrite_records(struct spool_file *file)
{
	rewrite_longer(file, 100, SIZE_MAX);
}

static void test_tail_of_a_changed_file(void **state)
{
	char message[256];

	(void)state;
	assert_int_equal(tail_after(cut_in_half, message, sizeof(message)),
			 -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "became shorter"));
	assert_int_equal(tail_after(rewrite_header, message, sizeof(message)),
			 -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "was rewritten"));
	assert_int_equal(tail_after(rewrite_records, message, sizeof(message)),
			 -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "was rewritten"));
	assert_int_equal(tail_after(grow, message, sizeof(message)), -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(message, "unknown record tag 255"));
}

static void test_not_a_regular_file(void **state)
{
	static const char *const paths[] = { "/", "/dev/null", "/nonexistent/file" };
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(tail) tail = NULL;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(spulse_snapshot_open(paths[i], &snapshot, NULL),
				 -SPULSE_ERROR_IO);
		assert_int_equal(spulse_replay_open(paths[i], &replay, NULL), -SPULSE_ERROR_IO);
		assert_int_equal(spulse_tail_open(paths[i], &tail, NULL), -SPULSE_ERROR_IO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_nth_write_fails),
		cmocka_unit_test(test_replay_of_a_changed_file),
		cmocka_unit_test(test_tail_of_a_changed_file),
		cmocka_unit_test(test_not_a_regular_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

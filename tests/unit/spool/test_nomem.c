/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Memory runs out at any moment, once or for good: the call says so, nothing leaks (the sanitizer's
 * business), what is written stays a spool and what is read later is complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stackpulse/error.h>

#include "base/errors.h"
#include "base/util.h"
#include "failalloc.h"
#include "spool/spool.h"
#include "spool_output.h"

enum { EVENTS = 120, DEPTH = 9 };

static char long_value[5000];

static int write_sample(struct spulse_spool_writer *writer, uint64_t i, struct spulse_error **err)
{
	struct spulse_sample sample = { .timestamp_ns = 1000 + i, .pid = 1 + i % 3, .tid = 1 + i };
	struct spulse_frame frames[DEPTH];

	for (size_t k = 0; k < DEPTH; k++) {
		uint64_t address = 0x1000 + (k + 1) * (i % 11) * 8;

		frames[k] = (struct spulse_frame){ .abs_ip = address, .file_relative_ip = address,
						   .module_id = SPULSE_NO_MODULE };
	}
	return spulse_spool_writer_sample(writer, &sample, frames, DEPTH, err);
}

static int write_module(struct spulse_spool_writer *writer, uint64_t i, struct spulse_error **err)
{
	static const struct spulse_jit_symbol symbols[] = { { 0x1000, 0x1010, "a", 1 },
							    { 0x1010, 0x1020, "b", 1 } };
	char path[32];
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = 1 + i % 3,
		.start = 0x1000,
		.end = 0x1800,
		.path = path,
		.path_len = snprintf(path, sizeof(path), "/lib/m%llu", (unsigned long long)i),
	};
	uint32_t id;

	if (i % 2)
		return spulse_spool_writer_module(writer, &fields, &id, err);
	return spulse_spool_writer_jit_module(writer, &fields, symbols, 2, &id, err);
}

/* Event number i; every kind of record comes. */
static int event(struct spulse_spool_writer *writer, uint64_t i, struct spulse_error **err)
{
	const struct spulse_python_runtime python = { i, 1, 1 };

	switch (i % 12) {
	case 0:
	case 5:
		return write_module(writer, i, err);
	case 3:
		return spool_writer_annotate(writer, i % 24 ? 1 : -1, "cmdline", long_value,
					     sizeof(long_value), err);
	case 7:
		return spulse_spool_writer_retire_process(writer, 1 + i % 3, err);
	case 9:
		return spulse_spool_writer_python_runtime(writer, &python, err);
	default:
		return write_sample(writer, i, err);
	}
}

static bool is_sample(uint64_t i)
{
	return i % 12 != 0 && i % 12 != 5 && i % 12 != 3 && i % 12 != 7 && i % 12 != 9;
}

/* Failed for want of memory, and says so even without any. */
static void check_failure(int r, struct spulse_error **err)
{
	assert_int_equal(r, -SPULSE_ERROR_NO_MEMORY);
	assert_int_equal(spulse_error_kind(*err), SPULSE_ERROR_NO_MEMORY);
	spulse_error_free(*err);
	*err = NULL;
}

/* So that the output itself needs no memory. */
static void reserve(struct strbuf *bytes)
{
	for (int i = 0; i < 1 << 16; i++)
		strbuf_putc(bytes, 0);
	strbuf_reset(bytes);
}

static const struct spulse_spool_header header = { .size = sizeof(header), .format = 4 };

/* Writes all events, some of which fail; returns the number of samples that went well. */
static uint64_t write_events(struct spulse_spool_writer *writer)
{
	struct spulse_error *err = NULL;
	uint64_t samples = 0;
	int r;

	for (uint64_t i = 0; i < EVENTS; i++) {
		r = event(writer, i, &err);
		if (r < 0)
			check_failure(r, &err);
		else
			samples += is_sample(i);
	}
	return samples;
}

static uint64_t count_samples(const struct strbuf *bytes)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	struct spulse_error *err = NULL;
	struct spool_file file;
	size_t count = 0;

	spool_file_make(&file, bytes->data, bytes->len);
	if (spulse_snapshot_open(file.path, &snapshot, &err) < 0)
		fail_msg("what was written is corrupt: %s", spulse_error_message(err));
	assert_false(spulse_source_recovered_from_truncated_tail(spulse_snapshot_source(snapshot)));
	spulse_snapshot_samples(snapshot, &count);
	spool_file_close(&file);
	return count;
}

/* The nth allocation fails, and with `all` those until the events are over. Whether it did. */
static bool write_failing(long nth, bool all)
{
	struct spool_output output = { 0 };
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spulse_error *err = NULL;
	uint64_t samples = 0;
	bool hit;
	int r;

	reserve(&output.bytes);
	failalloc_set(nth, all);
	r = spulse_spool_writer_new(&spool_output_functions, &output, &header, &writer, &err);
	if (r == 0)
		samples = write_events(writer);
	hit = failalloc_hit();
	failalloc_set(0, false);
	if (r < 0) {
		check_failure(r, &err);
	} else {
		assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
		assert_int_equal(count_samples(&output.bytes), samples);
	}
	strbuf_release(&output.bytes);
	return hit;
}

static void make_file(struct spool_file *file, struct strbuf *bytes)
{
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_output output = { 0 };

	assert_int_equal(spulse_spool_writer_new(&spool_output_functions, &output, &header, &writer,
						 NULL), 0);
	write_events(writer);
	assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
	spool_file_make(file, output.bytes.data, output.bytes.len);
	*bytes = output.bytes;
}

/* All that a source defines, in one number. */
static uint64_t definitions(const struct spulse_source *source)
{
	uint64_t sum = spulse_source_raw_module_count(source);
	size_t count;

	spulse_source_frames(source, &count);
	sum = sum * 1000 + count;
	spulse_source_stack_nodes(source, &count);
	sum = sum * 1000 + count;
	spulse_source_threads(source, &count);
	sum = sum * 1000 + count;
	spulse_source_python_runtimes(source, &count);
	sum = sum * 1000 + count;
	spulse_source_annotations(source, &count);
	return sum * 1000 + count;
}

static int walk_stacks(struct spulse_stacks *stacks, uint64_t *sum, struct spulse_error **err)
{
	const struct spulse_stack *stack;
	struct spulse_frame_context context;
	int r;

	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);
		const uint32_t *ids;
		size_t depth;

		r = spulse_stacks_frame_ids(stacks, &ids, &depth, err);
		if (r < 0)
			return r;
		while (spulse_frame_iter_next_context(&iter, &context))
			;
		++*sum;
	}
	return r;
}

static int read_snapshot(const char *path, uint64_t *sum, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	int r = spulse_snapshot_open(path, &snapshot, err);
	size_t count;

	if (r == 0)
		r = spulse_snapshot_stacks(snapshot, &stacks, err);
	if (r < 0)
		return r;
	/* An array that is made when asked for; without memory it is not there. */
	if (!spulse_snapshot_samples(snapshot, &count)) {
		assert_int_equal(count, 0);
		return err_no_memory(err);
	}
	*sum = count * 7 + definitions(spulse_snapshot_source(snapshot));
	return walk_stacks(stacks, sum, err);
}

static int read_replay(const char *path, uint64_t *sum, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	SPULSE_CLEANUP(samples) walk = NULL;
	SPULSE_CLEANUP(records) records = NULL;
	struct spulse_record record = { .size = sizeof(record) };
	struct spulse_sample sample;
	int r = spulse_replay_open(path, &replay, err);

	if (r == 0)
		r = spulse_replay_stacks(replay, &stacks, err);
	if (r == 0)
		r = spulse_replay_samples(replay, &walk, err);
	while (r == 0 && (r = spulse_samples_next(walk, &sample, err)) > 0)
		r = 0;
	if (r == 0)
		r = spulse_replay_records(replay, &records, err);
	while (r == 0 && (r = spulse_records_next(records, &record, err)) > 0)
		r = 0;
	if (r < 0)
		return r;
	*sum = definitions(spulse_replay_source(replay));
	return walk_stacks(stacks, sum, err);
}

static int poll_all(struct spulse_tail *tail, uint64_t *sum, struct spulse_error **err)
{
	const struct spulse_batch *batch;
	int r;

	do {
		SPULSE_CLEANUP(stacks) stacks = NULL;

		r = spulse_tail_poll(tail, &batch, err);
		if (r == 0)
			r = spulse_batch_stacks(batch, &stacks, err);
		if (r == 0)
			r = walk_stacks(stacks, sum, err);
	} while (r == 0 && spulse_batch_has_more(batch));
	*sum += definitions(spulse_tail_source(tail));
	return r;
}

static int read_tail(const char *path, uint64_t *sum, struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	int r = spulse_tail_open(path, &tail, err);

	return r < 0 ? r : poll_all(tail, sum, err);
}

/* A recorder's tail. */
static int read_channel(const char *path, uint64_t *sum, struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spool_channel *channel = NULL;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int r = spool_channel_new(&channel, err);

	if (r == 0) {
		spool_channel_publish(channel, lseek(fd, 0, SEEK_END));
		r = spool_tail_open_channel(fd, path, channel, NULL, false, &tail, err);
	}
	if (r == 0)
		r = poll_all(tail, sum, err);
	spool_channel_unref(channel);
	close(fd);
	return r;
}

static struct strbuf converted[1];

static int convert(const char *path, uint64_t *sum, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	struct spool_output output = { .bytes = *converted };
	int r = spulse_replay_open(path, &replay, err);

	strbuf_reset(&output.bytes);
	if (r == 0)
		r = spulse_spool_convert(replay, SPULSE_SPOOL_FORMAT_3, &spool_output_functions,
					 &output, NULL, err);
	if (r == 0)
		*sum = spulse_replay_sample_count(replay);
	*converted = output.bytes;
	return r;
}

typedef int read_fn(const char *path, uint64_t *sum, struct spulse_error **err);

/* Fails each allocation in turn; returns how many there were. */
static long check_reader(read_fn *reader, const char *path, bool all)
{
	struct spulse_error *err = NULL;
	uint64_t expected = 0, samples;
	long n = 0;
	bool hit;
	int r;

	assert_int_equal(reader(path, &expected, NULL), 0);
	do {
		samples = 0;
		failalloc_set(++n, all);
		r = reader(path, &samples, &err);
		hit = failalloc_hit();
		failalloc_set(0, false);
		if (r < 0)
			check_failure(r, &err);
		else
			assert_int_equal(samples, expected);
	} while (hit);
	return n - 1;
}

static void test_readers(void **state)
{
	static read_fn *const readers[] = { read_snapshot, read_replay, read_tail, convert,
					    read_channel };
	struct strbuf bytes = { 0 };
	struct spool_file file;
	long count;

	(void)state;
	reserve(converted);
	make_file(&file, &bytes);
	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		count = check_reader(readers[i], file.path, false);
		assert_int_equal(check_reader(readers[i], file.path, true), count);
		assert_true(count >= 20);
		print_message("reader %zu: %ld allocations\n", i, count);
	}
	spool_file_close(&file);
	strbuf_release(&bytes);
	strbuf_release(converted);
}

/* A tail whose poll failed reads on from where it was, once there is memory again. */
static void test_tail_goes_on(void **state)
{
	SPULSE_CLEANUP(tail) whole = NULL;
	struct strbuf bytes = { 0 };
	struct spool_file file, growing;
	struct spulse_error *err = NULL;
	const struct spulse_batch *batch;
	size_t frames, expected;
	bool hit;

	(void)state;
	make_file(&file, &bytes);
	assert_int_equal(spulse_tail_open(file.path, &whole, NULL), 0);
	do {
		assert_int_equal(spulse_tail_poll(whole, &batch, NULL), 0);
	} while (spulse_batch_has_more(batch));
	spulse_source_frames(spulse_tail_source(whole), &expected);
	for (long n = 1; ; n++) {
		SPULSE_CLEANUP(tail) tail = NULL;
		int r;

		spool_file_make(&growing, bytes.data, 16);
		assert_int_equal(spulse_tail_open(growing.path, &tail, NULL), 0);
		assert_int_equal(write(growing.fd, bytes.data + 16, bytes.len - 16), bytes.len - 16);
		failalloc_set(n, false);
		do {
			r = spulse_tail_poll(tail, &batch, &err);
			if (r < 0)
				check_failure(r, &err);
		} while (r < 0 || spulse_batch_has_more(batch));
		hit = failalloc_hit();
		failalloc_set(0, false);
		spulse_source_frames(spulse_tail_source(tail), &frames);
		assert_int_equal(frames, expected);
		spool_file_close(&growing);
		if (!hit)
			break;
	}
	spool_file_close(&file);
	strbuf_release(&bytes);
}

static void test_writer(void **state)
{
	long n = 1;

	(void)state;
	while (write_failing(n, false))
		n++;
	print_message("writer: %ld allocations\n", n - 1);
	assert_true(n > 20);
	for (n = 1; write_failing(n, true); n++)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_tail_goes_on),
		cmocka_unit_test(test_writer),
	};

	memset(long_value, 'x', sizeof(long_value));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

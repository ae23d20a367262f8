/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Files that change at any moment of a walk: what is given is what was in the file when it was
 * opened, or there is an error. A file that another is renamed over stays what it was.
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

#include "base/hash.h"
#include "base/util.h"
#include "random.h"
#include "spool/spool.h"

enum { SAMPLES = 60000, ROUNDS = 120 };

static char folder[] = "/tmp/spool-changed-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

struct file {
	char path[64];
	int fd;
	off_t size;
	uint64_t sums[SAMPLES + 1]; /* of the first n stacks */
};

static uint64_t add_stack(uint64_t sum, const struct spulse_stack *stack)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;

	sum = hash_two(sum, spulse_stack_timestamp_ns(stack));
	sum = hash_two(sum, (uint64_t)spulse_stack_pid(stack) << 32 | spulse_stack_tid(stack));
	while (spulse_frame_iter_next_context(&iter, &context))
		sum = hash_two(sum, context.frame->abs_ip);
	return sum;
}

/* Samples of some stacks, with a module or a retirement in between now and then. */
static void write_event(struct spulse_spool_writer *writer, struct random *rng, uint64_t i)
{
	struct spulse_module_fields fields = { .size = sizeof(fields), .pid = 7, .start = i,
					       .end = i + 1, .path = "/lib/a.so", .path_len = 9 };
	struct spulse_sample sample = { .timestamp_ns = i * 1000 + random_below(rng, 900), .pid = 7,
					.tid = 8 + random_below(rng, 300) };
	struct spulse_frame frames[4];
	uint32_t id;

	if (i % 4096 == 0)
		assert_int_equal(spulse_spool_writer_module(writer, &fields, &id, NULL), 0);
	for (size_t k = 0; k < ARRAY_LEN(frames); k++)
		frames[k] = (struct spulse_frame){ .abs_ip = random_below(rng, 30 >> k),
						   .module_id = SPULSE_NO_MODULE };
	for (size_t k = 0; k < ARRAY_LEN(frames); k++)
		frames[k].file_relative_ip = frames[k].abs_ip;
	assert_int_equal(spulse_spool_writer_sample(writer, &sample, frames, ARRAY_LEN(frames),
						    NULL), 0);
}

static void note_sums(struct file *file)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;

	assert_int_equal(spulse_snapshot_open(file->path, &snapshot, NULL), 0);
	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, NULL), 0);
	for (size_t i = 0; i < SAMPLES; i++) {
		assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
		file->sums[i + 1] = add_stack(file->sums[i], stack);
	}
}

static struct file *make_file(const char *name, uint64_t seed)
{
	const struct spulse_spool_header header = { .size = sizeof(header), .format = 4 };
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct file *file = calloc(1, sizeof(*file));
	struct random rng = { .state = seed };
	int *fd = malloc(sizeof(*fd));

	snprintf(file->path, sizeof(file->path), "%s/%s", folder, name);
	*fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	file->fd = dup(*fd);
	assert_int_equal(spulse_spool_writer_new(&spool_fd_output, fd, &header, &writer, NULL), 0);
	for (uint64_t i = 0; i < SAMPLES; i++)
		write_event(writer, &rng, i);
	assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
	file->size = lseek(file->fd, 0, SEEK_END);
	note_sums(file);
	return file;
}

static void free_file(struct file *file)
{
	close(file->fd);
	unlink(file->path);
	free(file);
}

/* Walks at most `count` stacks; every one must be the original. */
static int walk(const struct file *file, struct spulse_stacks *stacks, uint64_t *at,
		uint64_t count, struct spulse_error **err)
{
	const struct spulse_stack *stack;
	uint64_t sum = file->sums[*at];
	int r = 0;

	while (count-- && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		sum = add_stack(sum, stack);
		assert_in_range(*at, 0, SAMPLES - 1);
		assert_int_equal(sum, file->sums[++*at]);
	}
	return r;
}

static void put_byte(const struct file *file, off_t at, uint8_t byte)
{
	assert_int_equal(pwrite(file->fd, &byte, 1, at), 1);
}

/* Changes a byte somewhere, or cuts; gives what undoes it. */
static void change(const struct file *file, struct random *rng, off_t *at, uint8_t *byte, bool cut)
{
	*at = random_below(rng, file->size);
	assert_int_equal(pread(file->fd, byte, 1, *at), 1);
	if (cut)
		assert_int_equal(ftruncate(file->fd, *at), 0);
	else
		put_byte(file, *at, *byte ^ (1 << random_below(rng, 8)));
}

static void check_error(int r, struct spulse_error *err, const struct file *file, bool cut)
{
	struct spulse_spool_position position = { .tag = 0 };

	assert_int_equal(r, -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_non_null(strstr(spulse_error_message(err), file->path));
	assert_non_null(strstr(spulse_error_message(err),
			       cut ? "became shorter" : "was changed while it was open"));
	assert_true(spulse_error_spool_position(err, &position));
	assert_in_range(position.offset, 0, file->size);
	assert_in_range(position.tag + 1, 0, SPULSE_RECORD_JIT_MODULE + 1);
	spulse_error_free(err);
}

/* A copy of all bytes, as a cut is not undone by growing. */
static void restore(const struct file *file, const uint8_t *bytes)
{
	assert_int_equal(pwrite(file->fd, bytes, file->size, 0), file->size);
}

static void test_replay_at_any_moment(void **state)
{
	struct file *file = make_file("replay", 1);
	uint8_t *bytes = malloc(file->size);
	struct random rng = { .state = 2 };
	unsigned int errors = 0;

	(void)state;
	assert_int_equal(pread(file->fd, bytes, file->size, 0), file->size);
	for (int round = 0; round < ROUNDS; round++) {
		SPULSE_CLEANUP(replay) replay = NULL;
		SPULSE_CLEANUP(stacks) stacks = NULL;
		struct spulse_error *err = NULL;
		bool cut = round % 2;
		uint64_t at = 0;
		uint8_t byte;
		off_t where;
		int r;

		assert_int_equal(spulse_replay_open(file->path, &replay, NULL), 0);
		assert_int_equal(spulse_replay_stacks(replay, &stacks, NULL), 0);
		r = walk(file, stacks, &at, random_below(&rng, SAMPLES / 2), NULL);
		assert_true(r >= 0);
		change(file, &rng, &where, &byte, cut);
		r = walk(file, stacks, &at, UINT64_MAX, &err);
		restore(file, bytes);
		/* What lies before the walk's place was read already. */
		if (r == 0)
			assert_int_equal(at, SAMPLES);
		else
			check_error(r, err, file, cut);
		errors += r < 0;
	}
	print_message("%u errors in %d rounds\n", errors, ROUNDS);
	assert_true(errors >= ROUNDS / 3);
	free(bytes);
	free_file(file);
}

/* It is all in memory: nothing that happens to the file matters. */
static void test_snapshot(void **state)
{
	struct file *file = make_file("snapshot", 3);
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(spulse_snapshot_open(file->path, &snapshot, NULL), 0);
	assert_int_equal(ftruncate(file->fd, 0), 0);
	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, NULL), 0);
	assert_int_equal(walk(file, stacks, &at, UINT64_MAX, NULL), 0);
	assert_int_equal(at, SAMPLES);
	free_file(file);
}

static int poll_all(const struct file *file, struct spulse_tail *tail, uint64_t *at, int batches,
		    struct spulse_error **err)
{
	const struct spulse_batch *batch;
	int r;

	do {
		SPULSE_CLEANUP(stacks) stacks = NULL;

		r = spulse_tail_poll(tail, &batch, err);
		if (r == 0)
			r = spulse_batch_stacks(batch, &stacks, err);
		if (r == 0)
			r = walk(file, stacks, at, UINT64_MAX, err);
	} while (r == 0 && spulse_batch_has_more(batch) && --batches);
	return r;
}

/* After each batch the file is cut somewhere: into what was read, or into what was not. */
static void test_tail_of_a_cut_file(void **state)
{
	struct file *file = make_file("tail", 4);
	uint8_t *bytes = malloc(file->size);
	struct random rng = { .state = 5 };

	(void)state;
	assert_int_equal(pread(file->fd, bytes, file->size, 0), file->size);
	for (int round = 0; round < 40; round++) {
		SPULSE_CLEANUP(tail) tail = NULL;
		struct spulse_error *err = NULL;
		uint64_t at = 0;
		int r;

		assert_int_equal(spulse_tail_open(file->path, &tail, NULL), 0);
		assert_int_equal(poll_all(file, tail, &at, 1 + round % 4, NULL), 0);
		assert_int_equal(ftruncate(file->fd, random_below(&rng, file->size)), 0);
		r = poll_all(file, tail, &at, -1, &err);
		check_error(r, err, file, true);
		restore(file, bytes);
	}
	free(bytes);
	free_file(file);
}

static void test_renamed_over(void **state)
{
	struct file *file = make_file("name", 6), *other = make_file("other", 7);
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(tail) tail = NULL;
	SPULSE_CLEANUP(stacks) in_memory = NULL;
	SPULSE_CLEANUP(stacks) again = NULL;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(spulse_snapshot_open(file->path, &snapshot, NULL), 0);
	assert_int_equal(spulse_replay_open(file->path, &replay, NULL), 0);
	assert_int_equal(spulse_tail_open(file->path, &tail, NULL), 0);
	assert_int_equal(poll_all(file, tail, &at, 1, NULL), 0);
	assert_int_equal(rename(other->path, file->path), 0);
	assert_int_equal(poll_all(file, tail, &at, -1, NULL), 0);
	assert_int_equal(at, SAMPLES);
	at = 0;
	assert_int_equal(spulse_snapshot_stacks(snapshot, &in_memory, NULL), 0);
	assert_int_equal(walk(file, in_memory, &at, UINT64_MAX, NULL), 0);
	assert_int_equal(at, SAMPLES);
	at = 0;
	assert_int_equal(spulse_replay_stacks(replay, &again, NULL), 0);
	assert_int_equal(walk(file, again, &at, UINT64_MAX, NULL), 0);
	assert_int_equal(at, SAMPLES);
	free_file(file);
	free_file(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay_at_any_moment),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_tail_of_a_cut_file),
		cmocka_unit_test(test_renamed_over),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

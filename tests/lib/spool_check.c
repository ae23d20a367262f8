/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stackpulse/error.h>

#include "spool_check.h"

#include <unistd.h>

#include "spool_output.h"

/* The frames of the stack at hand, all at once, are those of a walk over them. */
static void check_frame_ids(struct spulse_stacks *stacks, const struct spulse_stack *stack)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	const struct spulse_frame *frames;
	const uint32_t *ids;
	size_t count;

	frames = spulse_source_frames(spulse_stack_source(stack), &count);
	assert_int_equal(spulse_stacks_frame_ids(stacks, &ids, &count, NULL), 0);
	assert_int_equal(count, spulse_stack_depth(stack));
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(spulse_frame_iter_next(&iter), &frames[ids[i]]);
}

static void check_snapshot(const struct spool_model *model, const char *path)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	const uint32_t *ids;
	size_t count, id_count;

	assert_int_equal(spulse_snapshot_open(path, &snapshot, NULL), 0);
	spool_model_check_source(model, spulse_snapshot_source(snapshot));
	spulse_snapshot_samples(snapshot, &count);
	assert_int_equal(count, model->samples.len);
	for (size_t i = count; i-- > 0;) {
		assert_int_equal(spulse_snapshot_stack(snapshot, i, &stack, NULL), 1);
		spool_model_check_stack(model, i, stack);
	}
	assert_int_equal(spulse_snapshot_stack(snapshot, count, &stack, NULL), 0);
	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, NULL), 0);
	assert_int_equal(spulse_stacks_frame_ids(stacks, &ids, &id_count, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(spulse_stacks_remaining(stacks), count - i);
		assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
		spool_model_check_stack(model, i, stack);
		check_frame_ids(stacks, stack);
	}
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 0);
}

static void check_blocks(const struct spool_model *model, const struct spulse_replay *replay)
{
	SPULSE_CLEANUP(samples) samples = NULL;
	const struct spulse_sample *block;
	struct spulse_sample sample;
	size_t next = 0, count;

	assert_int_equal(spulse_replay_samples(replay, &samples, NULL), 0);
	while (spulse_samples_next_block(samples, &block, &count, NULL) > 0) {
		assert_true(count > 0 && count <= model->samples.len - next);
		for (size_t i = 0; i < count; i++)
			assert_memory_equal(&block[i], &model->samples.data[next + i].sample,
					    sizeof(*block));
		next += count;
		assert_int_equal(spulse_samples_remaining(samples), model->samples.len - next);
		/* One by one and in blocks may be mixed. */
		if (spulse_samples_next(samples, &sample, NULL) > 0)
			assert_memory_equal(&sample, &model->samples.data[next++].sample,
					    sizeof(sample));
	}
	assert_int_equal(next, model->samples.len);
}

static void check_replay(const struct spool_model *model, const char *path)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	SPULSE_CLEANUP(samples) samples = NULL;
	const struct spulse_stack *stack;
	struct spulse_sample sample;

	assert_int_equal(spulse_replay_open(path, &replay, NULL), 0);
	spool_model_check_source(model, spulse_replay_source(replay));
	assert_int_equal(spulse_replay_sample_count(replay), model->samples.len);
	assert_int_equal(spulse_replay_stacks(replay, &stacks, NULL), 0);
	assert_int_equal(spulse_replay_samples(replay, &samples, NULL), 0);
	for (size_t i = 0; i < model->samples.len; i++) {
		assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
		spool_model_check_stack(model, i, stack);
		assert_int_equal(spulse_samples_next(samples, &sample, NULL), 1);
		assert_memory_equal(&sample, &model->samples.data[i].sample, sizeof(sample));
		check_frame_ids(stacks, stack);
	}
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 0);
	assert_int_equal(spulse_samples_next(samples, &sample, NULL), 0);
	check_blocks(model, replay);
}

/* Polls until nothing is left; returns the number of the next sample. */
static size_t check_batches(const struct spool_model *model, struct spulse_tail *tail, size_t next)
{
	const struct spulse_batch *batch;

	do {
		SPULSE_CLEANUP(stacks) stacks = NULL;
		const struct spulse_stack *stack;

		assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
		assert_int_equal(spulse_batch_stacks(batch, &stacks, NULL), 0);
		while (spulse_stacks_next(stacks, &stack, NULL) > 0)
			spool_model_check_stack(model, next++, stack);
	} while (spulse_batch_has_more(batch));
	return next;
}

static void check_tail(struct spool_model *model, const uint8_t *bytes, size_t len,
		       size_t header)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spool_file file;
	size_t visible = header + random_below(&model->rng, len - header + 1), next = 0;

	spool_file_make(&file, bytes, visible);
	assert_int_equal(spulse_tail_open(file.path, &tail, NULL), 0);
	for (;;) {
		size_t more = 1 + random_below(&model->rng, len / 4 + 1);

		next = check_batches(model, tail, next);
		if (visible == len)
			break;
		more = more < len - visible ? more : len - visible;
		assert_int_equal(write(file.fd, bytes + visible, more), more);
		visible += more;
	}
	assert_int_equal(next, model->samples.len);
	spool_model_check_source(model, spulse_tail_source(tail));
	spool_file_close(&file);
}

void spool_check_readers(struct spool_model *model, const void *bytes, size_t len, size_t header)
{
	struct spool_file file;

	spool_file_make(&file, bytes, len);
	check_snapshot(model, file.path);
	check_replay(model, file.path);
	check_tail(model, bytes, len, header);
	spool_file_close(&file);
}

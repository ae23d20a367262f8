/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Random recordings: what a writer was given is what all three readers give back, with every frame
 * bound to the module that was there when its sample was written. SPOOL_SEED and SPOOL_RUNS choose
 * other ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool_model.h"
#include "spool_output.h"

static void check_snapshot(const struct spool_model *model, const char *path)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	size_t count;

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
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(spulse_stacks_remaining(stacks), count - i);
		assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 1);
		spool_model_check_stack(model, i, stack);
	}
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 0);
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
	}
	assert_int_equal(spulse_stacks_next(stacks, &stack, NULL), 0);
	assert_int_equal(spulse_samples_next(samples, &sample, NULL), 0);
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

static void check_tail(struct spool_model *model, const struct strbuf *bytes, size_t header)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spool_file file;
	size_t visible = header + random_below(&model->rng, bytes->len - header + 1), next = 0;

	spool_file_make(&file, bytes->data, visible);
	assert_int_equal(spulse_tail_open(file.path, &tail, NULL), 0);
	for (;;) {
		size_t more = 1 + random_below(&model->rng, bytes->len / 4 + 1);

		next = check_batches(model, tail, next);
		if (visible == bytes->len)
			break;
		more = more < bytes->len - visible ? more : bytes->len - visible;
		assert_int_equal(write(file.fd, bytes->data + visible, more), more);
		visible += more;
	}
	assert_int_equal(next, model->samples.len);
	spool_model_check_source(model, spulse_tail_source(tail));
	spool_file_close(&file);
}

static void run(uint64_t seed, enum spulse_spool_format format)
{
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_output output = { .rng.state = seed };
	struct spool_model model;
	struct spool_file file;
	size_t steps, header;

	spool_model_init(&model, seed, format);
	assert_int_equal(spulse_spool_writer_new(&spool_output_functions, &output, &model.header,
						 &writer, NULL), 0);
	assert_int_equal(spulse_spool_writer_flush(writer, NULL), 0);
	header = output.bytes.len;
	steps = random_below(&model.rng, 20) ? random_below(&model.rng, 120)
					     : random_below(&model.rng, 1500);
	while (steps--)
		spool_model_step(&model, writer);
	assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
	spool_file_make(&file, output.bytes.data, output.bytes.len);
	check_snapshot(&model, file.path);
	check_replay(&model, file.path);
	check_tail(&model, &output.bytes, header);
	spool_file_close(&file);
	strbuf_release(&output.bytes);
	spool_model_release(&model);
}

/* Which run a failure belongs to; told by the teardown. */
static uint64_t current;

static uint64_t number_from(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : fallback;
}

static void test_random_recordings(void **state)
{
	uint64_t seed = number_from("SPOOL_SEED", 1), runs = number_from("SPOOL_RUNS", 1500);

	(void)state;
	for (uint64_t i = 0; i < runs; i++) {
		current = i;
		run(seed * 1000003 + i, i & 1 ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4);
	}
}

static int tell(void **state)
{
	(void)state;
	print_message("last run: %llu\n", (unsigned long long)current);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_random_recordings, tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a spool: all three readers say the same of it, within bounded memory. What fails is
 * corrupt and says where; what does not is equal in Snapshot, Replay and a Tail that sees the file
 * grow.
 */
#include "../driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stackpulse/error.h>
#include <stackpulse/spool.h>

#include "base/hash.h"
#include "livemem.h"
#include "spool_output.h"
#include "spool_seed.h"

enum { MEMORY_PER_BYTE = 16, MEMORY_BASE = 4 << 20, PIECES = 6 };

/* What a reader makes of the input. */
struct answer {
	int kind; /* of the error, or 0 */
	uint64_t offset; /* of the error */
	uint64_t samples, digest;
	bool recovered;
};

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_spool: %s\n", what);
	abort();
}

static void add(struct answer *answer, uint64_t number)
{
	answer->digest = hash_two(answer->digest, number);
}

static void add_bytes(struct answer *answer, const char *bytes, size_t len)
{
	must(bytes[len] == 0, "text is not terminated");
	for (size_t i = 0; i < len; i++)
		add(answer, (uint8_t)bytes[i]);
}

static void add_stack(struct answer *answer, const struct spulse_stack *stack)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;
	uint32_t depth = 0;

	answer->samples++;
	add(answer, spulse_stack_timestamp_ns(stack));
	add(answer, (uint64_t)spulse_stack_pid(stack) << 32 | spulse_stack_tid(stack));
	/* A short spool can hold a very deep stack, many times over. */
	for (; depth < 64 && spulse_frame_iter_next_context(&iter, &context); depth++) {
		add(answer, context.frame->abs_ip);
		add(answer, context.file_relative_ip);
		add(answer, context.module ? spulse_module_id(context.module) : SPULSE_NO_MODULE);
	}
	must(depth == 64 || depth == spulse_stack_depth(stack), "depth is wrong");
}

/* All frames at once are those of the walk. */
static void check_frame_ids(struct spulse_stacks *stacks, const struct spulse_stack *stack)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	const struct spulse_frame *frames, *frame;
	const uint32_t *ids;
	size_t count, known;

	must(spulse_stacks_frame_ids(stacks, &ids, &count, NULL) == 0, "no frame ids");
	must(count == spulse_stack_depth(stack), "frame ids are missing");
	frames = spulse_source_frames(spulse_stack_source(stack), &known);
	for (size_t i = 0; i < count && i < 64; i++) {
		frame = spulse_frame_iter_next(&iter);
		must(ids[i] < known && frame == &frames[ids[i]], "another frame by its id");
	}
}

static int add_stacks(struct answer *answer, struct spulse_stacks *stacks,
		      struct spulse_error **err)
{
	const struct spulse_stack *stack;
	int r;

	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		add_stack(answer, stack);
		/* Each laid out anew when there are many deep ones. */
		if (answer->samples % 16 == 1)
			check_frame_ids(stacks, stack);
	}
	spulse_stacks_free(stacks);
	return r;
}

static void add_module(struct answer *answer, const struct spulse_source *source, uint32_t id)
{
	const struct spulse_module *m = spulse_source_module_by_id(source, id);
	const struct spulse_jit_symbol *symbols;
	size_t count;

	must(spulse_module_id(m) == id, "a module has another id");
	add(answer, spulse_module_start(m));
	add(answer, spulse_module_end(m));
	add(answer, spulse_module_pid(m));
	add_bytes(answer, spulse_module_path(m), spulse_module_path_len(m));
	symbols = spulse_source_jit_symbols(source, id, &count);
	for (size_t i = 0; i < count; i++) {
		add(answer, symbols[i].start);
		add_bytes(answer, symbols[i].name, symbols[i].name_len);
	}
}

/* What the source defines; added last, as a tail knows it at its end only. */
static void add_source(struct answer *answer, const struct spulse_source *source)
{
	const struct spulse_annotation *annotations;
	const struct spulse_python_runtime *pythons;
	const pid_t *pids;
	size_t count;

	for (size_t i = 0; i < spulse_source_raw_module_count(source); i++)
		add_module(answer, source, i);
	annotations = spulse_source_annotations(source, &count);
	for (size_t i = 0; i < count; i++) {
		add_bytes(answer, annotations[i].key, strlen(annotations[i].key));
		add_bytes(answer, annotations[i].value, annotations[i].value_len);
	}
	pythons = spulse_source_python_runtimes(source, &count);
	for (size_t i = 0; i < count; i++)
		add(answer, pythons[i].timestamp_ns + pythons[i].is_python);
	pids = spulse_source_processes(source, &count);
	for (size_t i = 0; i < count; i++)
		add(answer, pids[i]);
}

static struct answer failure(struct spulse_error *err)
{
	struct spulse_spool_position position = {0};
	struct answer answer = {.kind = spulse_error_kind(err)};

	must(answer.kind == SPULSE_ERROR_CORRUPT_SPOOL, spulse_error_message(err));
	must(spulse_error_spool_position(err, &position), "an error without its place");
	must(strlen(spulse_error_message(err)) > 20, "an error without words");
	answer.offset = position.offset;
	spulse_error_free(err);
	return answer;
}

static struct answer snapshot_answer(const char *path)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	struct answer answer = {0};
	struct spulse_stacks *stacks;
	struct spulse_error *err = NULL;
	size_t count;

	if (spulse_snapshot_open(path, &snapshot, &err) < 0)
		return failure(err);
	must(spulse_snapshot_stacks(snapshot, &stacks, NULL) == 0, "no stacks");
	must(add_stacks(&answer, stacks, NULL) == 0, "a snapshot's walk fails");
	spulse_snapshot_samples(snapshot, &count);
	must(count == answer.samples, "a snapshot has another number of samples");
	add_source(&answer, spulse_snapshot_source(snapshot));
	answer.recovered =
		spulse_source_recovered_from_truncated_tail(spulse_snapshot_source(snapshot));
	return answer;
}

static void walk_records(const struct spulse_replay *replay, uint64_t samples)
{
	SPULSE_CLEANUP(records) records = NULL;
	struct spulse_record record = {.size = sizeof(record)};
	int r;

	must(spulse_replay_records(replay, &records, NULL) == 0, "no records");
	while ((r = spulse_records_next(records, &record, NULL)) > 0)
		samples -= record.kind == SPULSE_RECORD_SAMPLE;
	must(r == 0 && samples == 0, "the walk over records misses samples");
}

/* Samples by blocks are the samples of the stacks. */
static void walk_samples(const struct spulse_replay *replay, const struct answer *answer)
{
	SPULSE_CLEANUP(samples) blocks = NULL;
	SPULSE_CLEANUP(samples) singles = NULL;
	const struct spulse_sample *block;
	struct spulse_sample sample;
	uint64_t samples = 0;
	size_t count;
	int r;

	must(spulse_replay_samples(replay, &blocks, NULL) == 0 &&
	     spulse_replay_samples(replay, &singles, NULL) == 0, "no samples");
	while ((r = spulse_samples_next_block(blocks, &block, &count, NULL)) > 0) {
		must(count > 0, "an empty block");
		for (size_t i = 0; i < count; i++)
			must(spulse_samples_next(singles, &sample, NULL) == 1 &&
			     !memcmp(&sample, &block[i], sizeof(sample)), "another sample");
		samples += count;
		must(spulse_samples_remaining(blocks) == answer->samples - samples,
		     "another number of samples is left");
	}
	must(r == 0 && samples == answer->samples, "samples are missing");
}

static struct answer replay_answer(const char *path)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	struct answer answer = {0};
	struct spulse_stacks *stacks;
	struct spulse_error *err = NULL;

	if (spulse_replay_open(path, &replay, &err) < 0)
		return failure(err);
	must(spulse_replay_stacks(replay, &stacks, NULL) == 0, "no stacks");
	must(add_stacks(&answer, stacks, NULL) == 0, "a replay's walk fails");
	must(spulse_replay_sample_count(replay) == answer.samples, "a replay counts otherwise");
	walk_records(replay, answer.samples);
	walk_samples(replay, &answer);
	add_source(&answer, spulse_replay_source(replay));
	answer.recovered =
		spulse_source_recovered_from_truncated_tail(spulse_replay_source(replay));
	return answer;
}

static int poll_all(struct spulse_tail *tail, struct answer *answer, struct spulse_error **err)
{
	const struct spulse_batch *batch;
	struct spulse_stacks *stacks;
	int r;

	do {
		r = spulse_tail_poll(tail, &batch, err);
		if (r == 0)
			r = spulse_batch_stacks(batch, &stacks, err);
		if (r == 0)
			r = add_stacks(answer, stacks, err);
	} while (r == 0 && spulse_batch_has_more(batch));
	return r;
}

/* The file grows in pieces, the first of which is the longest that holds no more than a header. */
static struct answer tail_answer(const uint8_t *data, size_t size)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spulse_tail_stats stats = {.size = sizeof(stats)};
	struct spulse_error *err = NULL;
	struct answer answer = {0};
	struct spool_file file;
	size_t visible = size < 64 ? size : 64, step = size / PIECES + 1;
	int r;

	spool_file_make(&file, data, visible);
	r = spulse_tail_open(file.path, &tail, &err);
	while (r == 0) {
		r = poll_all(tail, &answer, &err);
		if (r < 0 || visible == size)
			break;
		step = step < size - visible ? step : size - visible;
		must(write(file.fd, data + visible, step) == (ssize_t)step, "cannot write");
		visible += step;
	}
	spool_file_close(&file);
	if (r < 0)
		return failure(err);
	add_source(&answer, spulse_tail_source(tail));
	spulse_tail_stats(tail, &stats);
	answer.recovered = stats.consumed_bytes < stats.published_bytes;
	return answer;
}

static void check_memory(const char *who, size_t size)
{
	if (livemem_peak() <= size * MEMORY_PER_BYTE + MEMORY_BASE)
		return;
	fprintf(stderr, "fuzz_spool: %s needs %zu bytes for %zu\n", who, livemem_peak(), size);
	abort();
}

static bool same(const struct answer *a, const struct answer *b)
{
	return a->kind == b->kind && a->offset == b->offset && a->samples == b->samples &&
	       a->digest == b->digest && a->recovered == b->recovered;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer first, other;
	struct spool_file file;

	spool_file_make(&file, data, size);
	livemem_reset();
	first = snapshot_answer(file.path);
	check_memory("Snapshot", size);
	livemem_reset();
	other = replay_answer(file.path);
	check_memory("Replay", size);
	spool_file_close(&file);
	must(same(&first, &other), "Snapshot and Replay differ");
	livemem_reset();
	other = tail_answer(data, size);
	check_memory("Tail", size);
	/* A header that is still cut is an error for a tail as well, but of another place. */
	must(other.kind == first.kind || first.offset > 0, "Tail and Snapshot differ");
	must(other.kind || same(&first, &other), "Tail differs");
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	return i < 12 ? spool_seed(i, len) : NULL;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * No reader takes more than 16 bytes per byte of its file, however dense the file is: half a
 * megabyte and more of each kind of record in its shortest form, through all three.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <stackpulse/error.h>

#include "livemem.h"
#include "spool_bytes.h"
#include "spool_output.h"

enum { SIZE = 1 << 19, MEMORY_PER_BYTE = 16 };

/* Puts the i-th record of a kind. */
typedef void record_fn(struct strbuf *out, uint64_t i);

static void kernel_module(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, 0, 0, 0, "");
}

/* Three letters, another for each i. */
static const char *name(uint64_t i)
{
	static char path[4];

	for (int k = 0; k < 3; k++, i /= 64)
		path[k] = (char)('!' + i % 64);
	return path;
}

/* Each of another process, with a range and a path of its own. */
static void user_module(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, i + 1, 0, 1, name(i));
}

static void one_process_module(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, 1, i % 64, 64 + i % 64, "");
}

static void named_module(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, 0, 0, 1, name(i));
}

static void annotation(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, 0, 0, 0, i % 2 ? "//stackpulse/a=" : "//stackpulse/b=");
}

/* Modules and frames in turn, so that each frame sees another set of them. */
static void module_and_frame(struct strbuf *out, uint64_t i)
{
	bytes_module(out, i, 1, 0, 1, "");
	bytes_numbers(out, 4, 2, i, 1, 0);
}

/* A tail's batch ends after each. */
static void retired_module(struct strbuf *out, uint64_t i)
{
	user_module(out, i);
	bytes_numbers(out, 2, 8, i);
}

static void frame(struct strbuf *out, uint64_t i)
{
	bytes_numbers(out, 4, 2, i, 1, 0);
}

static void node(struct strbuf *out, uint64_t i)
{
	if (i == 0)
		frame(out, 0);
	bytes_numbers(out, 4, 3, i, i ? i - 1 : UINT32_MAX, 0);
}

static void thread(struct strbuf *out, uint64_t i)
{
	bytes_numbers(out, 4, 4, i, 2, 1);
}

static void thread_of_another(struct strbuf *out, uint64_t i)
{
	bytes_numbers(out, 4, 4, i, 2 * (i + 1), 1);
}

static void sample(struct strbuf *out, uint64_t i)
{
	if (i == 0) {
		node(out, 0);
		thread(out, 0);
	}
	bytes_numbers(out, 4, 5, 0, 0, 0);
}

/* Half of the file one chain of nodes, then samples of stacks of all depths. */
static void deep_sample(struct strbuf *out, uint64_t i)
{
	enum { NODES = SIZE / 2 / 9 };

	if (i == 0)
		thread(out, 0);
	if (i < NODES)
		node(out, i);
	else
		bytes_numbers(out, 4, 5, 0, 0, i * 7919 % NODES);
}

/* The worst for an index of where samples are. */
static void sample_and_retirement(struct strbuf *out, uint64_t i)
{
	sample(out, i);
	bytes_numbers(out, 2, 7, 2);
}

static void python(struct strbuf *out, uint64_t i)
{
	(void)i;
	bytes_numbers(out, 4, 6, 0, 2, 0);
}

static void process(struct strbuf *out, uint64_t i)
{
	bytes_numbers(out, 2, 7, 2 * (i + 1));
}

static void retirement(struct strbuf *out, uint64_t i)
{
	if (i == 0)
		kernel_module(out, 0);
	bytes_numbers(out, 2, 8, 0);
}

/* One module with symbols in their shortest form for half of the file, then another. */
static void jit_module(struct strbuf *out, uint64_t i)
{
	enum { SYMBOLS = SIZE / 2 / 3 };

	bytes_numbers(out, 10, 9, i, 2, 0, 2, 0, 0, 0, 0, 0);
	bytes_numbers(out, 3, 0, 0, SYMBOLS);
	for (int k = 0; k < SYMBOLS; k++)
		bytes_numbers(out, 3, 0, 1, 0);
}

static void small_jit_module(struct strbuf *out, uint64_t i)
{
	bytes_numbers(out, 10, 9, i, 2, 0, 2, 0, 0, 0, 0, 0);
	bytes_numbers(out, 6, 0, 0, 1, 0, 1, 0);
}

static const struct kind {
	const char *name;
	record_fn *put;
} kinds[] = {
	{ "kernel modules", kernel_module },
	{ "modules of as many processes", user_module },
	{ "modules of one process", one_process_module },
	{ "modules with names", named_module },
	{ "annotations", annotation },
	{ "modules and frames in turn", module_and_frame },
	{ "modules retired at once", retired_module },
	{ "frames", frame },
	{ "stack nodes", node },
	{ "threads", thread },
	{ "threads of as many processes", thread_of_another },
	{ "samples", sample },
	{ "samples of deep stacks", deep_sample },
	{ "samples and retirements in turn", sample_and_retirement },
	{ "Python records", python },
	{ "retired processes", process },
	{ "retired modules", retirement },
	{ "JIT modules with many symbols", jit_module },
	{ "JIT modules", small_jit_module },
};

/* All frames at once of some stacks: deep ones are laid out anew each time. */
static void walk(struct spulse_stacks *stacks)
{
	const struct spulse_stack *stack;
	const uint32_t *ids;
	size_t count;
	int r;

	for (int i = 0; (r = spulse_stacks_next(stacks, &stack, NULL)) > 0; i++)
		if (i % 64 == 0)
			assert_int_equal(spulse_stacks_frame_ids(stacks, &ids, &count, NULL), 0);
	assert_int_equal(r, 0);
}

static void walk_snapshot(const char *path)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	size_t count;

	assert_int_equal(spulse_snapshot_open(path, &snapshot, NULL), 0);
	spulse_snapshot_samples(snapshot, &count);
	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, NULL), 0);
	walk(stacks);
}

static void walk_replay(const char *path)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;

	assert_int_equal(spulse_replay_open(path, &replay, NULL), 0);
	assert_int_equal(spulse_replay_stacks(replay, &stacks, NULL), 0);
	walk(stacks);
}

static void follow_tail(const char *path)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	const struct spulse_batch *batch;
	size_t count;

	assert_int_equal(spulse_tail_open(path, &tail, NULL), 0);
	do {
		SPULSE_CLEANUP(stacks) stacks = NULL;

		assert_int_equal(spulse_tail_poll(tail, &batch, NULL), 0);
		assert_int_equal(spulse_batch_stacks(batch, &stacks, NULL), 0);
		walk(stacks);
	} while (spulse_batch_has_more(batch));
	spulse_source_processes(spulse_tail_source(tail), &count);
}

static const struct reader {
	const char *name;
	void (*read)(const char *path);
} readers[] = {
	{ "Snapshot", walk_snapshot },
	{ "Replay", walk_replay },
	{ "Tail", follow_tail },
};

static bool measure(const struct kind *kind, const struct reader *reader, const char *path,
		    size_t size)
{
	livemem_reset();
	reader->read(path);
	print_message("%s, %s: %.1f bytes per byte\n", kind->name, reader->name,
		      (double)livemem_peak() / (double)size);
	return livemem_peak() <= size * MEMORY_PER_BYTE;
}

static unsigned int measure_size(const struct kind *kind, size_t size)
{
	struct strbuf bytes = { 0 };
	struct spool_file file;
	unsigned int failed = 0;

	bytes_header(&bytes, 4);
	for (uint64_t i = 0; bytes.len < size; i++)
		kind->put(&bytes, i);
	spool_file_make(&file, bytes.data, bytes.len);
	for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++)
		failed += !measure(kind, &readers[r], file.path, bytes.len);
	spool_file_close(&file);
	strbuf_release(&bytes);
	return failed;
}

/* Several sizes, as what grows by steps has just grown at some. */
static void test_each_kind(void **state)
{
	unsigned int failed = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t size = SIZE; size < 2 * SIZE; size += SIZE / 3)
			failed += measure_size(&kinds[k], size);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

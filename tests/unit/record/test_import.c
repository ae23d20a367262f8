/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Made-up perf.data files through the whole import: what of them is in the spool, and what becomes
 * of files that are cut, bent or full of nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#include "perf/datafile.h"
#include "perf_datafile.h"

#include <stackpulse/stackpulse.h>

static char input[64], output[64];
static struct perf_datafile f;
static struct perf_records w;
static struct spulse_recording_summary summary;
static struct spulse_snapshot *snapshot;
static struct spulse_error *err;

static int setup(void **state)
{
	/* Thousands of files: in memory, where there is such a place. */
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	snprintf(input, sizeof(input), "%s/test-import-%d.data", folder, getpid());
	snprintf(output, sizeof(output), "%s/test-import-%d.spool", folder, getpid());
	(void)state;
	unlink(output);
	perf_records_init(&w, 0);
	memset(&summary, 0, sizeof(summary));
	summary.size = sizeof(summary);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spulse_snapshot_free(snapshot);
	snapshot = NULL;
	spulse_error_free(err);
	err = NULL;
	perf_records_release(&w);
	unlink(input);
	unlink(output);
	return 0;
}

/* ---- writing ---- */

static void store(const uint8_t *bytes, size_t len)
{
	int fd = open(input, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static void begin(bool pipe)
{
	perf_datafile_init(&f, pipe);
	perf_datafile_plain_attr(&f, &w.layout);
}

static void flush_records(void)
{
	perf_datafile_records(&f, w.bytes.data, w.bytes.len);
	w.bytes.len = 0;
}

static void put_sample(uint64_t time, size_t depth)
{
	uint64_t chain[200] = { PERF_CONTEXT_USER };

	assert_true(depth < ARRAY_LEN(chain));
	for (size_t i = 1; i <= depth; i++)
		chain[i] = 0x400000 + 0x10 * i;
	perf_put_sample(&w, &(struct perf_sample_fields){
		.pid = 7, .tid = 8, .time = time, .ip = 0x400010, .misc = PERF_RECORD_MISC_USER,
		.chain = chain, .chain_len = depth + 1,
	});
}

static void put_program(void)
{
	perf_put_comm(&w, 7, 7, 1, true, "app");
	perf_put_mmap2(&w, &(struct perf_mmap_fields){
		.pid = 7, .tid = 7, .time = 2, .start = 0x400000, .len = 0x2000, .inode = 9,
		.dev_major = 1, .prot = PROT_READ | PROT_EXEC, .misc = PERF_RECORD_MISC_USER,
		.path = "/usr/bin/app",
	});
}

static void put_build_id(void)
{
	struct perf_records b = { 0 };
	uint8_t id[24] = { 0 };

	memset(id, 0xab, 20);
	perf_records_begin(&b, FILE_RECORD_BUILD_ID, PERF_RECORD_MISC_USER);
	perf_records_u32(&b, -1);
	perf_records_bytes(&b, id, sizeof(id));
	/* With its NUL, so that the whole has a multiple of 8 bytes. */
	perf_records_bytes(&b, "/usr/bin/app\0\0\0", 16);
	perf_records_bytes(&b, "\0\0\0", 4);
	perf_records_end(&b);
	perf_datafile_feature(&f, FILE_FEATURE_BUILD_ID, b.bytes.data, b.bytes.len);
	perf_records_release(&b);
}

/* A whole one: a program, three samples, and all of the header that is used. */
static uint8_t *make_file(size_t *len)
{
	static const uint32_t cpus[] = { 16, 12 };
	struct perf_records command = { 0 };

	begin(false);
	put_program();
	for (uint64_t time = 10; time < 13; time++)
		put_sample(time, 3);
	flush_records();
	put_build_id();
	perf_datafile_string_feature(&f, FILE_FEATURE_HOSTNAME, "somewhere");
	perf_datafile_string_feature(&f, FILE_FEATURE_OSRELEASE, "6.1.0-x");
	perf_datafile_feature(&f, FILE_FEATURE_NRCPUS, cpus, sizeof(cpus));
	perf_records_u32(&command, 1);
	perf_records_u32(&command, 8);
	perf_records_string(&command, "perf");
	perf_datafile_feature(&f, FILE_FEATURE_CMDLINE, command.bytes.data, command.bytes.len);
	perf_records_release(&command);
	return perf_datafile_take(&f, len);
}

static void store_file(void)
{
	size_t len;
	uint8_t *bytes = perf_datafile_take(&f, &len);

	store(bytes, len);
	free(bytes);
}

/* ---- importing ---- */

static int import(void)
{
	const struct spulse_import_options options = { .size = sizeof(options), .annotate = 1 };

	summary.size = sizeof(summary);
	return spulse_import_perf_data(input, output, &options, &summary, &err);
}

static void import_and_open(void)
{
	int r = import();

	if (r < 0)
		fail_msg("%s", spulse_error_message(err));
	assert_int_equal(spulse_snapshot_open(output, &snapshot, &err), 0);
}

static const char *annotation(const char *key)
{
	const struct spulse_source *source = spulse_snapshot_source(snapshot);
	const struct spulse_annotation *all;
	size_t n;

	all = spulse_source_annotations(source, &n);
	for (size_t i = 0; i < n; i++)
		if (!strncmp(all[i].key, key, strlen(key)))
			return all[i].value;
	return "";
}

static size_t depth_of_first(bool *cut)
{
	const struct spulse_frame *frame;
	const struct spulse_stack *stack;
	struct spulse_stacks *stacks = NULL;
	struct spulse_frame_iter iter;
	size_t n = 0;

	assert_int_equal(spulse_snapshot_stacks(snapshot, &stacks, &err), 0);
	assert_int_equal(spulse_stacks_next(stacks, &stack, &err), 1);
	iter = spulse_stack_frames(stack);
	*cut = false;
	while ((frame = spulse_frame_iter_next(&iter))) {
		*cut |= spulse_frame_is_truncated_marker(frame);
		n++;
	}
	spulse_stacks_free(stacks);
	return n;
}

static void a_file_and_its_header_are_in_the_spool(void **state)
{
	uint8_t *bytes;
	size_t len;
	bool cut;

	(void)state;
	bytes = make_file(&len);
	store(bytes, len);
	free(bytes);
	import_and_open();
	assert_int_equal(summary.samples, 3);
	assert_int_equal(summary.sample_events, 3);
	assert_int_equal(summary.input_cut, 0);
	assert_int_equal(depth_of_first(&cut), 3);
	assert_false(cut);
	assert_string_equal(annotation("host"), "somewhere");
	assert_string_equal(annotation("kernel"), "6.1.0-x");
	assert_string_equal(annotation("cpus"), "12");
	assert_string_equal(annotation("recorded-by"), "perf");
	assert_string_equal(annotation("build-id/"), "abababababababababababababababababababab");
	assert_string_equal(annotation("counter/samples"), "3");
}

static void a_chain_of_the_kernels_limit_is_cut(void **state)
{
	bool cut;

	(void)state;
	begin(false);
	put_sample(1, PERF_MAX_STACK_DEPTH);
	put_sample(2, PERF_MAX_STACK_DEPTH - 1);
	put_sample(3, PERF_MAX_STACK_DEPTH + 1);
	flush_records();
	store_file();
	import_and_open();
	assert_int_equal(depth_of_first(&cut), PERF_MAX_STACK_DEPTH + 1);
	assert_true(cut);
	assert_int_equal(summary.samples, 3);
	assert_int_equal(summary.truncated_frame_markers, 1);
}

static void losses_that_are_told_twice_count_once(void **state)
{
	(void)state;
	begin(false);
	put_sample(1, 3);
	perf_put_lost(&w, 1, 5, 2);
	perf_put_lost(&w, 1, 6, 3);
	perf_put_lost_samples(&w, 11, 4);
	flush_records();
	store_file();
	import_and_open();
	assert_int_equal(summary.lost_events, 11);
}

static void losses_that_older_files_tell_count(void **state)
{
	(void)state;
	begin(true);
	put_sample(1, 3);
	perf_put_lost(&w, 1, 5, 2);
	flush_records();
	store_file();
	import_and_open();
	assert_int_equal(summary.lost_events, 5);
}

static void samples_without_a_process_are_counted(void **state)
{
	(void)state;
	begin(false);
	put_sample(1, 3);
	perf_put_sample(&w, &(struct perf_sample_fields){ .pid = -1, .tid = -1, .time = 2,
							  .ip = 0x400000 });
	perf_put_sample(&w, &(struct perf_sample_fields){ .time = 3, .ip = 0x400000 });
	flush_records();
	store_file();
	import_and_open();
	assert_int_equal(summary.sample_events, 3);
	assert_int_equal(summary.samples, 1);
	assert_int_equal(summary.missing_pid_samples, 1);
	assert_int_equal(summary.idle_tid_samples, 1);
}

static void a_time_that_no_clock_shows_is_refused_with_its_place(void **state)
{
	(void)state;
	begin(false);
	put_sample(1, 3);
	put_sample(1ull << 63, 3);
	flush_records();
	store_file();
	assert_int_equal(import(), -SPULSE_ERROR_INVALID_INPUT);
	assert_non_null(strstr(spulse_error_message(err), "offset"));
	assert_non_null(strstr(spulse_error_message(err), "a time of 9223372036854775808 ns"));
	assert_string_equal(spulse_error_path(err), input);
	assert_int_equal(access(output, F_OK), -1);
}

/* ---- real ones: see tests/data/perf ---- */

static void import_real(const char *name)
{
	const struct spulse_import_options options = { .size = sizeof(options), .annotate = 1 };
	char path[4096];
	int r;

#if !SPULSE_HAVE_ZSTD
	skip();
#endif
	snprintf(path, sizeof(path), "%s/%s", PERF_DATA, name);
	r = spulse_import_perf_data(path, output, &options, &summary, &err);
	if (r < 0)
		fail_msg("%s", spulse_error_message(err));
	assert_int_equal(spulse_snapshot_open(output, &snapshot, &err), 0);
	assert_string_equal(annotation("host"), "example");
	assert_string_equal(annotation("cpus"), "2");
	assert_string_equal(annotation("comm"), "deep");
	assert_int_equal(summary.sample_events, summary.samples);
	assert_int_equal(summary.input_cut, 0);
}

static void call_chains_that_perf_compressed(void **state)
{
	struct spulse_wall_time start;
	bool cut;

	(void)state;
	import_real("chains.bin");
	assert_int_equal(summary.samples, 29);
	/* leaf, twelve levels, run, main and what called it. */
	assert_int_equal(depth_of_first(&cut), 16);
	assert_false(cut);
	assert_int_equal(spulse_source_started_at(spulse_snapshot_source(snapshot), &start), 1);
	assert_int_equal(start.seconds / 86400, 1796073164 / 86400);
	assert_non_null(strstr(annotation("recorded-by"), "--call-graph fp -z"));
}

static void stacks_that_perf_piped(void **state)
{
	bool cut;

	(void)state;
	import_real("stacks-piped.bin");
	assert_int_equal(summary.samples, 28);
	/* As far as this host has the files; the sampled address is there in any case. */
	assert_true(depth_of_first(&cut) >= 1);
	assert_non_null(strstr(annotation("recorded-by"), "--call-graph dwarf"));
}

/* ---- broken ---- */

/* An error names the file and a place in it, or the recording is whole up to the fault. */
static void import_something(const char *what, size_t at)
{
	int r = import();

	if (r == 0) {
		assert_int_equal(access(output, F_OK), 0);
		assert_int_equal(spulse_snapshot_open(output, &snapshot, &err), 0);
		spulse_snapshot_free(snapshot);
		snapshot = NULL;
		unlink(output);
		return;
	}
	if (!err || !spulse_error_path(err) || strcmp(spulse_error_path(err), input) ||
	    (r == -SPULSE_ERROR_INVALID_INPUT && !strstr(spulse_error_message(err), "offset")))
		fail_msg("%s %zu: %s", what, at, spulse_error_message(err));
	if (access(output, F_OK) == 0)
		fail_msg("%s %zu: a spool is left behind", what, at);
	spulse_error_free(err);
	err = NULL;
}

static void a_file_that_is_cut_anywhere_gives_what_is_whole(void **state)
{
	uint64_t before = 0;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_file(&len);
	for (size_t cut = 0; cut <= len; cut++) {
		store(bytes, cut);
		summary.samples = 0;
		import_something("cut at", cut);
		/* More of the file never gives less. */
		assert_true(summary.samples >= before || summary.samples == 0);
		before = MAX(before, summary.samples);
	}
	assert_int_equal(before, 3);
	free(bytes);
}

static void a_file_with_a_wrong_byte_anywhere_is_survived(void **state)
{
	static const uint8_t masks[] = { 0x01, 0xff };
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_file(&len);
	for (size_t at = 0; at < len; at++)
		for (size_t m = 0; m < ARRAY_LEN(masks); m++) {
			bytes[at] ^= masks[m];
			store(bytes, len);
			import_something("wrong byte at", at);
			bytes[at] ^= masks[m];
		}
	free(bytes);
}

/* Every 8-byte word as sizes, offsets and counts go wrong. */
static void sizes_without_measure_are_survived(void **state)
{
	static const uint64_t values[] = { 0, 7, UINT32_MAX, INT64_MAX, UINT64_MAX };
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = make_file(&len);
	for (size_t at = 0; at + 8 <= len; at += 8)
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			uint64_t good;

			memcpy(&good, bytes + at, 8);
			memcpy(bytes + at, &values[v], 8);
			store(bytes, len);
			import_something("size at", at);
			memcpy(bytes + at, &good, 8);
		}
	free(bytes);
}

static void a_pipe_that_is_cut_anywhere_gives_what_is_whole(void **state)
{
	uint8_t *bytes;
	size_t len;

	(void)state;
	begin(true);
	put_program();
	put_sample(10, 3);
	put_sample(11, 3);
	flush_records();
	bytes = perf_datafile_take(&f, &len);
	for (size_t cut = 0; cut <= len; cut++) {
		store(bytes, cut);
		import_something("cut at", cut);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_file_and_its_header_are_in_the_spool),
		TEST(a_chain_of_the_kernels_limit_is_cut),
		TEST(losses_that_are_told_twice_count_once),
		TEST(losses_that_older_files_tell_count),
		TEST(samples_without_a_process_are_counted),
		TEST(a_time_that_no_clock_shows_is_refused_with_its_place),
		TEST(call_chains_that_perf_compressed),
		TEST(stacks_that_perf_piped),
		TEST(a_file_that_is_cut_anywhere_gives_what_is_whole),
		TEST(a_file_with_a_wrong_byte_anywhere_is_survived),
		TEST(sizes_without_measure_are_survived),
		TEST(a_pipe_that_is_cut_anywhere_gives_what_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* perf.data files: made-up ones, and what perf itself writes where it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

#if SPULSE_HAVE_ZSTD
#include <zstd.h>
#endif

#include "perf/datafile.h"
#include "perf/live.h"
#include "perf_datafile.h"

static char path[64];
static struct perf_datafile f;
static struct perf_records w;
static struct perf_source *source;
static const struct perf_file_info *info;
static struct spulse_error *err;

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_datafile.%d", getpid());
	source = NULL;
	info = NULL;
	err = NULL;
	perf_records_init(&w, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (source)
		source->ops->free(source);
	spulse_error_free(err);
	perf_records_release(&w);
	unlink(path);
	return 0;
}

/* ---- writing ---- */

static void store(const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, bytes, len), 0);
	close(fd);
}

static void store_file(void)
{
	size_t len;
	uint8_t *bytes = perf_datafile_take(&f, &len);

	store(bytes, len);
	free(bytes);
}

static void begin(bool pipe)
{
	perf_datafile_init(&f, pipe);
	perf_datafile_plain_attr(&f, &w.layout);
}

static void put_sample(uint64_t time)
{
	static const uint64_t chain[] = { PERF_CONTEXT_USER, 0x1000, 0x2000 };

	perf_put_sample(&w, &(struct perf_sample_fields){
		.pid = 7, .tid = 8, .time = time, .ip = 0x1000, .misc = PERF_RECORD_MISC_USER,
		.chain = chain, .chain_len = 3,
	});
}

/* Hands over what was written so far. */
static void flush_records(void)
{
	perf_datafile_records(&f, w.bytes.data, w.bytes.len);
	w.bytes.len = 0;
}

static void put_sample_now(uint64_t time)
{
	put_sample(time);
	flush_records();
}

/* ---- reading ---- */

static int open_file(void)
{
	return perf_file_open(path, &source, &info, &err);
}

/* The next event, as a reader of a source gets it; NULL at the end. */
static const struct perf_event *next(void)
{
	static bool have;
	const struct perf_event *event;

	if (have)
		source->ops->advance(source, 0);
	have = false;
	assert_int_equal(source->ops->streams(source), 1);
	if (source->ops->front(source, 0, &event, &err) == 0) {
		assert_int_equal(source->ops->snapshot(source, 0, &err), 0);
		if (source->ops->front(source, 0, &event, &err) == 0)
			return NULL;
	}
	have = true;
	return event;
}

static void expect_times(const uint64_t *times, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct perf_event *event = next();

		assert_non_null(event);
		assert_int_equal(event->time, times[i]);
	}
	assert_null(next());
}

/* Reads to the end or an error. */
static int read_all(void)
{
	const struct perf_event *event;
	int r;

	for (;;) {
		r = source->ops->snapshot(source, 0, &err);
		if (r < 0 || source->ops->front(source, 0, &event, &err) == 0)
			return r;
		while (source->ops->front(source, 0, &event, &err) > 0)
			source->ops->advance(source, 0);
	}
}

/* ---- what is in a file ---- */

static void check_sample(const struct perf_event *event)
{
	assert_non_null(event);
	assert_int_equal(event->type, PERF_RECORD_SAMPLE);
	assert_int_equal(event->pid, 7);
	assert_int_equal(event->tid, 8);
	assert_int_equal(event->sample.ip, 0x1000);
	assert_int_equal(event->sample.callchain_len, 3);
	assert_int_equal(event->sample.callchain[2], 0x2000);
	assert_int_equal(event->sample.event_id, PERF_EVENT_SAMPLING);
}

static void test_records_and_features_of(bool pipe)
{
	static const uint32_t cpus[] = { 16, 12 };
	static const uint64_t span[] = { 5, 6 };
	struct perf_records clock = { 0 }, command = { 0 };

	begin(pipe);
	if (!pipe)
		put_sample_now(10);
	perf_datafile_string_feature(&f, FILE_FEATURE_HOSTNAME, "somewhere");
	perf_datafile_string_feature(&f, FILE_FEATURE_OSRELEASE, "6.1.0-x");
	perf_datafile_string_feature(&f, FILE_FEATURE_ARCH, "aarch64");
	perf_datafile_feature(&f, FILE_FEATURE_NRCPUS, cpus, sizeof(cpus));
	perf_records_u32(&command, 2);
	perf_records_u32(&command, 8);
	perf_records_string(&command, "perf");
	perf_records_u32(&command, 8);
	perf_records_string(&command, "record");
	perf_datafile_feature(&f, FILE_FEATURE_CMDLINE, command.bytes.data, command.bytes.len);
	perf_datafile_feature(&f, FILE_FEATURE_SAMPLE_TIME, span, sizeof(span));
	perf_records_u32(&clock, 1);
	perf_records_u32(&clock, 1);
	perf_records_u64(&clock, 1700000000000000000);
	perf_records_u64(&clock, 42);
	perf_datafile_feature(&f, FILE_FEATURE_CLOCK_DATA, clock.bytes.data, clock.bytes.len);
	if (pipe)
		put_sample_now(10);
	store_file();
	perf_records_release(&clock);
	perf_records_release(&command);
	assert_int_equal(open_file(), 0);
	assert_string_equal(info->hostname, "somewhere");
	assert_string_equal(info->kernel, "6.1.0-x");
	assert_string_equal(info->cmdline, "perf record");
	assert_int_equal(info->cpus_online, 12);
	assert_int_equal(info->first_ns, 5);
	assert_int_equal(info->last_ns, 6);
	assert_true(info->has_clock);
	assert_int_equal(info->clock_wall_ns, 1700000000000000000);
	assert_int_equal(info->clock_ns, 42);
	assert_int_equal(info->frequency, 997);
	assert_true(info->callchain_only);
	assert_int_equal(source->arch, PERF_ARCH_AARCH64);
	check_sample(next());
	assert_null(next());
	assert_null(next());
	assert_false(info->truncated);
}

static void test_file_tells_of_its_recording(void **state)
{
	(void)state;
	test_records_and_features_of(false);
}

static void test_pipe_tells_of_its_recording(void **state)
{
	(void)state;
	test_records_and_features_of(true);
}

static void test_registers_and_used_stack_are_kept(void **state)
{
	static const uint64_t regs[3] = { 1, 2, 3 };
	uint8_t stack[64];
	const struct perf_event *event;

	(void)state;
	memset(stack, 0xab, sizeof(stack));
	perf_records_init(&w, 7);
	begin(false);
	perf_put_sample(&w, &(struct perf_sample_fields){
		.pid = 7, .tid = 8, .time = 3, .ip = 0x1000, .abi = PERF_SAMPLE_REGS_ABI_64,
		.regs = regs, .stack = stack, .stack_used = 40, .stack_size = 64,
	});
	flush_records();
	store_file();
	assert_int_equal(open_file(), 0);
	assert_false(info->callchain_only);
	event = next();
	assert_non_null(event);
	assert_int_equal(event->sample.regs_mask, 7);
	assert_int_equal(event->sample.regs[2], 3);
	assert_true(event->sample.has_stack);
	assert_int_equal(event->sample.stack_len, 40);
	assert_memory_equal(event->sample.stack, stack, 40);
	assert_null(next());
}

static void put_exec_map(const char *name)
{
	perf_put_mmap2(&w, &(struct perf_mmap_fields){
		.pid = 7, .tid = 7, .time = 1, .start = 0x1000, .len = 0x1000, .prot = 5,
		.path = name,
	});
}

static void put_build_id(struct perf_records *b, const char *name, uint8_t byte)
{
	uint8_t id[24];

	memset(id, byte, 20);
	memset(id + 20, 0, 4);
	perf_records_begin(b, FILE_RECORD_BUILD_ID, PERF_RECORD_MISC_USER);
	perf_records_u32(b, -1);
	perf_records_bytes(b, id, 24);
	/* So that the whole has a multiple of 8 bytes. */
	perf_records_bytes(b, name, strlen(name));
	perf_records_bytes(b, "\0\0\0\0\0\0\0", 8 - (b->bytes.len - b->start) % 8);
	perf_records_end(b);
}

static void test_mappings_get_the_build_ids_of_the_header(void **state)
{
	struct perf_records b = { 0 };
	const struct perf_event *event;

	(void)state;
	begin(false);
	put_exec_map("/bin/first");
	put_exec_map("/bin/second");
	put_exec_map("/bin/other");
	flush_records();
	put_build_id(&b, "/bin/first", 0x11);
	put_build_id(&b, "/bin/second", 0x22);
	perf_datafile_feature(&f, FILE_FEATURE_BUILD_ID, b.bytes.data, b.bytes.len);
	perf_records_release(&b);
	store_file();
	assert_int_equal(open_file(), 0);
	assert_int_equal(info->build_id_count, 2);
	assert_string_equal(info->build_ids[1].path, "/bin/second");
	event = next();
	assert_int_equal(event->mmap.build_id_len, 20);
	assert_int_equal(event->mmap.build_id[0], 0x11);
	event = next();
	assert_int_equal(event->mmap.build_id[19], 0x22);
	event = next();
	assert_string_equal(event->mmap.path, "/bin/other");
	assert_int_equal(event->mmap.build_id_len, 0);
	assert_null(next());
}

/* ---- order ---- */

static void test_rounds_come_out_in_the_order_of_time(void **state)
{
	static const uint64_t in[][4] = { { 5, 9, 4, 8 }, { 12, 10, 7, 15 }, { 14, 20, 13, 16 } };
	static const uint64_t out[] = { 4, 5, 7, 8, 9, 10, 12, 13, 14, 15, 16, 20 };

	(void)state;
	begin(false);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			put_sample_now(in[round][i]);
		perf_datafile_round(&f);
	}
	store_file();
	assert_int_equal(open_file(), 0);
	expect_times(out, 12);
}

/* What is ready is shown as soon as it is known that nothing older follows. */
static void test_a_round_goes_out_when_the_next_one_ended(void **state)
{
	const struct perf_event *event;

	(void)state;
	begin(false);
	for (uint64_t round = 0; round < 1000; round++) {
		for (int i = 9; i >= 0; i--)
			put_sample_now(round * 10 + i + 1);
		perf_datafile_round(&f);
	}
	store_file();
	assert_int_equal(open_file(), 0);
	for (uint64_t time = 1; time <= 10000; time++) {
		event = next();
		assert_non_null(event);
		assert_int_equal(event->time, time);
		assert_true(((struct perf_file *)source)->queue.len <= 20);
	}
	assert_null(next());
}

static void test_equal_times_keep_the_order_of_the_file(void **state)
{
	(void)state;
	begin(false);
	for (int i = 0; i < 200; i++)
		perf_put_comm(&w, i + 1, i + 1, 77, false, "name");
	flush_records();
	store_file();
	assert_int_equal(open_file(), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(next()->pid, i + 1);
	assert_null(next());
}

static void test_file_without_rounds_stays_within_the_limit(void **state)
{
	size_t limit = perf_file_queue_limit;
	uint64_t count = 0;

	(void)state;
	begin(false);
	for (uint64_t i = 0; i < 20000; i++)
		put_sample_now(i);
	store_file();
	perf_file_queue_limit = 64 << 10;
	assert_int_equal(open_file(), 0);
	for (; next(); count++)
		assert_true(((struct perf_file *)source)->queue_bytes <= 128 << 10);
	perf_file_queue_limit = limit;
	assert_int_equal(count, 20000);
}

/* ---- several events ---- */

static void put_identified(uint64_t id, uint64_t time, bool with_period)
{
	perf_records_begin(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	perf_records_u64(&w, id);
	perf_records_u64(&w, 0x1000);
	perf_records_u32(&w, 7);
	perf_records_u32(&w, 8);
	perf_records_u64(&w, time);
	if (with_period)
		perf_records_u64(&w, 4000);
	perf_records_end(&w);
}

static void test_each_event_has_its_own_layout_of(bool pipe)
{
	static const uint64_t dummy_ids[] = { 90 }, clock_ids[] = { 101, 102 },
			      fault_ids[] = { 201 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME,
		.sample_id_all = 1,
	};
	const struct perf_event *event;

	perf_datafile_init(&f, pipe);
	perf_datafile_attr(&f, &attr, dummy_ids, 1);
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	perf_datafile_attr(&f, &attr, clock_ids, 2);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_type |= PERF_SAMPLE_PERIOD;
	perf_datafile_attr(&f, &attr, fault_ids, 1);
	put_identified(102, 1, false);
	put_identified(201, 2, true);
	put_identified(101, 3, false);
	put_identified(999, 4, false);
	flush_records();
	store_file();
	assert_int_equal(open_file(), 0);
	event = next();
	assert_int_equal(event->time, 1);
	assert_int_equal(event->sample.event_id, PERF_EVENT_SAMPLING);
	event = next();
	assert_int_equal(event->time, 2);
	assert_int_equal(event->sample.event_id, PERF_EVENT_OTHER);
	assert_int_equal(event->sample.period, 4000);
	event = next();
	assert_int_equal(event->time, 3);
	assert_int_equal(event->sample.event_id, PERF_EVENT_SAMPLING);
	assert_null(next());
	assert_int_equal(info->skipped, 1);
}

static void test_each_event_has_its_own_layout(void **state)
{
	(void)state;
	test_each_event_has_its_own_layout_of(false);
	source->ops->free(source);
	source = NULL;
	test_each_event_has_its_own_layout_of(true);
}

/* ---- compressed ---- */

#if SPULSE_HAVE_ZSTD
/* The records in w as one zstd stream, cut into records of `part` bytes. */
static void put_compressed(uint32_t type, size_t part)
{
	size_t bound = ZSTD_compressBound(w.bytes.len), len;
	uint8_t *packed = malloc(bound);

	len = ZSTD_compress(packed, bound, w.bytes.data, w.bytes.len, 3);
	assert_false(ZSTD_isError(len));
	w.bytes.len = 0;
	for (size_t at = 0; at < len; at += part) {
		size_t n = MIN(part, len - at);

		perf_records_begin(&f.data, type, 0);
		if (type == FILE_RECORD_COMPRESSED2)
			perf_records_u64(&f.data, n);
		perf_records_bytes(&f.data, packed + at, n);
		if (type == FILE_RECORD_COMPRESSED2)
			perf_records_bytes(&f.data, "\0\0\0\0\0\0\0", (8 - n % 8) % 8);
		perf_records_end(&f.data);
	}
	free(packed);
}

static void test_compressed_records_are_unpacked(void **state)
{
	static const uint32_t types[] = { FILE_RECORD_COMPRESSED, FILE_RECORD_COMPRESSED2 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t count = 0;

		begin(false);
		for (uint64_t time = 1; time <= 5000; time++)
			put_sample(time);
		/* An odd size: contents are cut anywhere, and records are not aligned. */
		put_compressed(types[i], 777);
		perf_datafile_round(&f);
		store_file();
		assert_int_equal(open_file(), 0);
		for (const struct perf_event *event; (event = next()); count++)
			assert_int_equal(event->time, count + 1);
		assert_int_equal(count, 5000);
		source->ops->free(source);
		source = NULL;
	}
}

static void test_broken_compression_is_refused(void **state)
{
	(void)state;
	begin(false);
	perf_records_begin(&f.data, FILE_RECORD_COMPRESSED, 0);
	perf_records_bytes(&f.data, "not zstd", 8);
	perf_records_end(&f.data);
	store_file();
	assert_int_equal(open_file(), 0);
	assert_int_equal(read_all(), -SPULSE_ERROR_INVALID_INPUT);
	assert_non_null(strstr(spulse_error_message(err), "offset"));
}

static void test_compressed_record_in_a_compressed_one_is_refused(void **state)
{
	(void)state;
	begin(false);
	perf_records_begin(&w, FILE_RECORD_COMPRESSED, 0);
	perf_records_u64(&w, 0);
	perf_records_end(&w);
	put_compressed(FILE_RECORD_COMPRESSED, 4096);
	store_file();
	assert_int_equal(open_file(), 0);
	assert_int_equal(read_all(), -SPULSE_ERROR_INVALID_INPUT);
}
#endif

/* ---- broken files ---- */

static void test_no_perf_data_is_refused(void **state)
{
	static const char *const texts[] = { "", "PERFILE", "PERFILE1........", "2ELIFREP........",
					     "PERFILE2\x11\0\0\0\0\0\0\0" };
	static const size_t lens[] = { 0, 7, 16, 16, 16 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		store((const uint8_t *)texts[i], lens[i]);
		assert_int_equal(open_file(), i == 3 ? -SPULSE_ERROR_UNSUPPORTED :
						       -SPULSE_ERROR_INVALID_INPUT);
		assert_non_null(strstr(spulse_error_path(err), path));
		spulse_error_free(err);
		err = NULL;
	}
	unlink(path);
	assert_int_equal(open_file(), -SPULSE_ERROR_IO);
}

/* Cut anywhere, a file is refused, or shows the records before the cut and says that it is cut. */
static void test_file_cut_anywhere(void **state)
{
	uint8_t *bytes;
	size_t len;

	(void)state;
	begin(false);
	for (uint64_t time = 1; time <= 4; time++)
		put_sample_now(time);
	bytes = perf_datafile_take(&f, &len);
	for (size_t cut = 0; cut < len; cut++) {
		store(bytes, cut);
		if (open_file() < 0) {
			assert_true(cut < len - 4 * 64);
			spulse_error_free(err);
			err = NULL;
			continue;
		}
		assert_int_equal(read_all(), 0);
		assert_true(info->truncated);
		source->ops->free(source);
		source = NULL;
	}
	free(bytes);
}

static void test_record_that_breaks_its_layout_is_refused(void **state)
{
	(void)state;
	begin(false);
	put_sample_now(1);
	perf_records_begin(&w, PERF_RECORD_SAMPLE, 0);
	perf_records_u64(&w, 1);
	perf_records_end(&w);
	flush_records();
	store_file();
	assert_int_equal(open_file(), 0);
	assert_int_equal(read_all(), -SPULSE_ERROR_INVALID_INPUT);
	assert_non_null(strstr(spulse_error_message(err), "a record of type 9 and 16 bytes"));
}

static void test_record_without_a_length_is_refused(void **state)
{
	(void)state;
	begin(false);
	perf_records_u64(&f.data, 0);
	store_file();
	assert_int_equal(open_file(), 0);
	assert_int_equal(read_all(), -SPULSE_ERROR_INVALID_INPUT);
}

static void test_unfinished_file_is_read_to_its_end(void **state)
{
	uint8_t *bytes;
	size_t len;

	(void)state;
	begin(false);
	put_sample_now(1);
	put_sample_now(2);
	bytes = perf_datafile_take(&f, &len);
	/* The size of the data, which perf writes last. */
	memset(bytes + 48, 0, 8);
	store(bytes, len);
	free(bytes);
	assert_int_equal(open_file(), 0);
	expect_times((const uint64_t[]){ 1, 2 }, 2);
	assert_true(info->truncated);
}

/* ---- real ones ---- */

struct seen {
	size_t samples, with_stack, with_chain, maps, others;
	uint64_t newest;
	bool ordered;
};

static struct seen look_at_all(void)
{
	struct seen seen = { .ordered = true };
	const struct perf_event *event;

	while ((event = next())) {
		seen.ordered &= event->time >= seen.newest || event->time == 0;
		seen.newest = MAX(seen.newest, event->time);
		seen.maps += event->type == PERF_RECORD_MMAP2;
		if (event->type != PERF_RECORD_SAMPLE)
			continue;
		if (event->sample.event_id != PERF_EVENT_SAMPLING) {
			seen.others++;
			continue;
		}
		seen.samples++;
		seen.with_stack += event->sample.stack_len > 0 && event->sample.regs;
		seen.with_chain += event->sample.callchain_len > 1;
	}
	return seen;
}

/* Records a busy shell; skips the test where perf is missing or may not. */
static struct seen record_with_perf(const char *options, bool piped)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "perf record -q -F 500 %s -o %s -- sh -c "
		 "'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done' %s%s 2>/dev/null",
		 options, piped ? "-" : path, piped ? ">" : "", piped ? path : "");
	if (system("perf record -q -e cpu-clock -o /dev/null true >/dev/null 2>&1") ||
	    system(command)) {
		print_message("perf cannot record here\n");
		skip();
	}
	assert_int_equal(open_file(), 0);
	return look_at_all();
}

static void test_perf_record_with_stacks(void **state)
{
	struct seen seen = record_with_perf("-e cpu-clock --call-graph dwarf,8192", false);

	(void)state;
	assert_true(seen.samples > 5);
	assert_true(seen.with_stack > seen.samples / 2);
	assert_true(seen.maps > 2);
	assert_true(seen.ordered);
	assert_false(info->callchain_only);
	assert_non_null(info->hostname);
	assert_non_null(info->kernel);
	assert_non_null(strstr(info->cmdline, "--call-graph"));
	assert_true(info->cpus_online > 0);
	assert_int_equal(info->frequency, 500);
	assert_true(info->build_id_count > 0);
	assert_true(info->last_ns > info->first_ns);
}

static void test_perf_record_with_call_chains_compressed(void **state)
{
	struct seen seen = record_with_perf("-e cpu-clock --call-graph fp -z", false);

	(void)state;
	assert_true(info->callchain_only);
	assert_true(seen.samples > 5);
	assert_true(seen.with_chain > seen.samples / 2);
	assert_true(seen.ordered);
}

static void test_perf_record_of_two_events_piped(void **state)
{
	struct seen seen = record_with_perf("-e cpu-clock,page-faults --call-graph dwarf,8192",
					    true);

	(void)state;
	assert_true(seen.samples > 5);
	assert_true(seen.others > 0);
	assert_true(seen.maps > 2);
	assert_true(seen.ordered);
	assert_non_null(info->hostname);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_file_tells_of_its_recording),
		CASE(test_pipe_tells_of_its_recording),
		CASE(test_registers_and_used_stack_are_kept),
		CASE(test_mappings_get_the_build_ids_of_the_header),
		CASE(test_rounds_come_out_in_the_order_of_time),
		CASE(test_a_round_goes_out_when_the_next_one_ended),
		CASE(test_equal_times_keep_the_order_of_the_file),
		CASE(test_file_without_rounds_stays_within_the_limit),
		CASE(test_each_event_has_its_own_layout),
#if SPULSE_HAVE_ZSTD
		CASE(test_compressed_records_are_unpacked),
		CASE(test_broken_compression_is_refused),
		CASE(test_compressed_record_in_a_compressed_one_is_refused),
#endif
		CASE(test_no_perf_data_is_refused),
		CASE(test_file_cut_anywhere),
		CASE(test_record_that_breaks_its_layout_is_refused),
		CASE(test_record_without_a_length_is_refused),
		CASE(test_unfinished_file_is_read_to_its_end),
		CASE(test_perf_record_with_stacks),
		CASE(test_perf_record_with_call_chains_compressed),
		CASE(test_perf_record_of_two_events_piped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

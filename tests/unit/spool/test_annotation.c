/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Annotations: encoded into module records that hold no address, and back, in both versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <stackpulse/error.h>

#include "base/util.h"
#include "spool/spool.h"
#include "spool_bytes.h"
#include "spool_output.h"

static struct spulse_spool_writer *new_writer(struct spool_output *output, uint32_t format)
{
	struct spulse_spool_header header = { .size = sizeof(header), .format = format };
	struct spulse_spool_writer *writer;

	*output = (struct spool_output){ 0 };
	assert_int_equal(spulse_spool_writer_new(&spool_output_functions, output, &header, &writer,
						 NULL), 0);
	return writer;
}

static struct spulse_snapshot *open_bytes(const struct strbuf *bytes)
{
	struct spulse_snapshot *snapshot;
	struct spool_file file;

	spool_file_make(&file, bytes->data, bytes->len);
	assert_int_equal(spulse_snapshot_open(file.path, &snapshot, NULL), 0);
	spool_file_close(&file);
	return snapshot;
}

/* Finishes the writer and reads what it wrote. */
static struct spulse_snapshot *read_back(struct spulse_spool_writer *writer,
					 struct spool_output *output)
{
	struct spulse_snapshot *snapshot;

	assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
	snapshot = open_bytes(&output->bytes);
	spulse_spool_writer_free(writer);
	strbuf_release(&output->bytes);
	return snapshot;
}

static void check_annotation(const struct spulse_source *source, size_t index, pid_t pid,
			     const char *key, const char *value, size_t len)
{
	const struct spulse_annotation *found;
	size_t count;

	found = spulse_source_annotations(source, &count);
	assert_true(index < count);
	assert_int_equal(found[index].pid, pid);
	assert_string_equal(found[index].key, key);
	assert_int_equal(found[index].value_len, len);
	assert_memory_equal(found[index].value, value, len);
	assert_int_equal(found[index].value[len], 0);
}

/* Every byte, in a value and (but NUL) in a key. */
static void test_any_bytes(void **state)
{
	char every[256], key[256];

	(void)state;
	for (int i = 0; i < 256; i++)
		every[i] = (char)i;
	memcpy(key, every + 1, 255);
	key[255] = '\0';
	for (uint32_t format = 3; format <= 4; format++) {
		struct spool_output output;
		struct spulse_spool_writer *writer = new_writer(&output, format);
		SPULSE_CLEANUP(snapshot) snapshot = NULL;

		assert_int_equal(spool_writer_annotate(writer, 5, key, every, 256, NULL), 0);
		assert_int_equal(spool_writer_annotate(writer, -1, "a", "", 0, NULL), 0);
		snapshot = read_back(writer, &output);
		check_annotation(spulse_snapshot_source(snapshot), 0, 5, key, every, 256);
		check_annotation(spulse_snapshot_source(snapshot), 1, -1, "a", "", 0);
	}
}

/* What other readers see: a module without addresses whose path is ASCII without `_`. */
static void test_record(void **state)
{
	struct spool_output output;
	struct spulse_spool_writer *writer = new_writer(&output, 3);
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	const struct spulse_module *m;

	(void)state;
	assert_int_equal(spool_writer_annotate(writer, -1, "build-id/3", "a_b=%\xff\n", 7, NULL), 0);
	assert_int_equal(spool_writer_annotate(writer, 9, "comm", "sh -c", 5, NULL), 0);
	snapshot = read_back(writer, &output);
	m = spulse_source_module_by_id(spulse_snapshot_source(snapshot), 0);
	assert_string_equal(spulse_module_path(m), "//stackpulse/build-id/3=a%5fb%3d%25%ff%0a");
	assert_true(spulse_module_is_kernel(m));
	assert_int_equal(spulse_module_start(m), 0);
	assert_int_equal(spulse_module_end(m), 0);
	assert_int_equal(spulse_module_inode(m), 0);
	m = spulse_source_module_by_id(spulse_snapshot_source(snapshot), 1);
	assert_string_equal(spulse_module_path(m), "//stackpulse/comm=sh -c");
	assert_false(spulse_module_is_kernel(m));
	assert_int_equal(spulse_module_pid(m), 9);
	assert_int_equal(spulse_source_module_count(spulse_snapshot_source(snapshot)), 0);
	assert_int_equal(spulse_source_raw_module_count(spulse_snapshot_source(snapshot)), 2);
}

/* Long values, of bytes that take one and three characters, take several records. */
static void test_long_values(void **state)
{
	static const size_t lengths[] = { 3799, 3800, 3801, 7600, 100000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths) * 4; i++) {
		size_t len = lengths[i / 4];
		struct spool_output output;
		struct spulse_spool_writer *writer = new_writer(&output, 3 + i % 2);
		SPULSE_CLEANUP(snapshot) snapshot = NULL;
		char *value = malloc(len);
		size_t records;

		memset(value, i % 4 < 2 ? 'x' : '\n', len);
		value[len - 1] = '$';
		assert_int_equal(spool_writer_annotate(writer, 5, "cmdline", value, len, NULL), 0);
		assert_int_equal(spool_writer_annotate(writer, 5, "cmdline", "again", 5, NULL), 0);
		snapshot = read_back(writer, &output);
		check_annotation(spulse_snapshot_source(snapshot), 0, 5, "cmdline", value, len);
		check_annotation(spulse_snapshot_source(snapshot), 1, 5, "cmdline", "again", 5);
		records = spulse_source_raw_module_count(spulse_snapshot_source(snapshot));
		/* No path is longer than other readers expect one to be. */
		for (uint32_t id = 0; id < records; id++)
			assert_true(spulse_module_path_len(spulse_source_module_by_id(
					    spulse_snapshot_source(snapshot), id)) <= 4096);
		free(value);
	}
}

/* Records that no writer of ours makes. */
static void test_foreign_records(void **state)
{
	static const char *const paths[] = {
		"//stackpulse/k=a%4",	  /* a cut escape stands for itself */
		"//stackpulse/k=%zz%41",  /* and so does one that is none */
		"//stackpulse/+=x",	  /* a key of one `+` */
		"//stackpulse/other+=y",  /* goes on with nothing: a value of its own */
		"//stackpulse/other+=z",  /* and this with it */
		"//stackpulse/=x",	  /* no key: a plain module */
		"//stackpulse/novalue",	  /* likewise */
		"//stackpulsE/k=v",
		"//stackpulse/k=A=B=C",
	};
	struct strbuf bytes = { 0 };
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	const struct spulse_source *source;
	size_t count;

	(void)state;
	bytes_header(&bytes, 4);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		bytes_module(&bytes, i, 1, 0, 0, paths[i]);
	/* With a range it is a module, whatever its name. */
	bytes_module(&bytes, ARRAY_LEN(paths), 1, 0, 16, "//stackpulse/k=v");
	snapshot = open_bytes(&bytes);
	source = spulse_snapshot_source(snapshot);
	spulse_source_annotations(source, &count);
	assert_int_equal(count, 5);
	check_annotation(source, 0, 1, "k", "a%4", 3);
	check_annotation(source, 1, 1, "k", "%zzA", 4);
	check_annotation(source, 2, 1, "+", "x", 1);
	check_annotation(source, 3, 1, "other", "yz", 2);
	check_annotation(source, 4, 1, "k", "A=B=C", 5);
	assert_int_equal(spulse_source_module_count(source), 4);
	assert_int_equal(spulse_source_raw_module_count(source), ARRAY_LEN(paths) + 1);
	assert_string_equal(spulse_module_path(spulse_source_module(source, 0)), "//stackpulse/=x");
	strbuf_release(&bytes);
}

/* An annotation between two samples makes no frame anew, in either version. */
static void test_frames_stay_cached(void **state)
{
	(void)state;
	for (uint32_t format = 3; format <= 4; format++) {
		struct spulse_frame frames[2] = {
			{ .abs_ip = 5, .file_relative_ip = 5, .module_id = SPULSE_NO_MODULE },
			{ .abs_ip = 6, .file_relative_ip = 6, .module_id = SPULSE_NO_MODULE,
			  .mode = SPULSE_FRAME_KERNEL },
		};
		struct spulse_sample sample = { 1, 2, 3 };
		struct spool_output output;
		struct spulse_spool_writer *writer = new_writer(&output, format);
		SPULSE_CLEANUP(snapshot) snapshot = NULL;
		size_t count;

		for (int i = 0; i < 3; i++) {
			assert_int_equal(spulse_spool_writer_sample(writer, &sample, frames, 2,
								    NULL), 0);
			assert_int_equal(spool_writer_annotate(writer, i - 1 ? 2 : -1, "k", "v", 1,
							       NULL), 0);
		}
		snapshot = read_back(writer, &output);
		spulse_source_frames(spulse_snapshot_source(snapshot), &count);
		assert_int_equal(count, 2);
	}
}

static void test_needs_a_key(void **state)
{
	struct spool_output output;
	struct spulse_spool_writer *writer = new_writer(&output, 4);

	(void)state;
	assert_int_equal(spool_writer_annotate(writer, 5, "", "v", 1, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spool_writer_annotate(writer, 0, "k", "v", 1, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	spulse_spool_writer_free(writer);
	strbuf_release(&output.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_long_values),
		cmocka_unit_test(test_foreign_records),
		cmocka_unit_test(test_frames_stay_cached),
		cmocka_unit_test(test_needs_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

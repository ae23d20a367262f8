/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Random recordings from one version to the other: what stays, and what is reported as lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <stackpulse/error.h>

#include "base/util.h"
#include "spool/codec.h"
#include "spool_bytes.h"
#include "spool_model.h"
#include "spool_output.h"

enum { RUNS = 200 };

static struct spulse_replay *open_bytes(const struct strbuf *bytes)
{
	struct spulse_replay *replay;
	struct spool_file file;

	spool_file_make(&file, bytes->data, bytes->len);
	assert_int_equal(spulse_replay_open(file.path, &replay, NULL), 0);
	spool_file_close(&file);
	return replay;
}

static struct spulse_convert_report convert(const struct strbuf *from, int format,
					    struct strbuf *to)
{
	struct spulse_convert_report report = { .size = sizeof(report) };
	struct spool_output output = { .calls = 0 };
	SPULSE_CLEANUP(replay) replay = NULL;
	struct spool_file file;

	spool_file_make(&file, from->data, from->len);
	assert_int_equal(spulse_replay_open(file.path, &replay, NULL), 0);
	assert_int_equal(spulse_spool_convert(replay, format, &spool_output_functions, &output,
					      &report, NULL), 0);
	assert_int_equal(output.closes, 0);
	spool_file_close(&file);
	*to = output.bytes;
	return report;
}

static void write_model(struct spool_model *model, uint64_t seed, enum spulse_spool_format format,
			struct strbuf *bytes)
{
	struct spool_output output = { .calls = 0 };
	SPULSE_CLEANUP(spool_writer) writer = NULL;

	spool_model_init(model, seed, format);
	/* What fits into nanoseconds comes back from them. */
	if (format == SPULSE_SPOOL_FORMAT_3)
		model->header.interval >>= 10;
	assert_int_equal(spulse_spool_writer_new(&spool_output_functions, &output, &model->header,
						 &writer, NULL), 0);
	for (uint64_t steps = random_below(&model->rng, 150); steps; steps--)
		spool_model_step(model, writer);
	assert_int_equal(spulse_spool_writer_finish(writer, NULL), 0);
	*bytes = output.bytes;
}

static void check_same_stacks(const struct spool_model *model, const struct strbuf *bytes)
{
	SPULSE_CLEANUP(replay) replay = open_bytes(bytes);
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;

	assert_int_equal(spulse_replay_sample_count(replay), model->samples.len);
	assert_int_equal(spulse_replay_stacks(replay, &stacks, NULL), 0);
	for (size_t i = 0; spulse_stacks_next(stacks, &stack, NULL) > 0; i++)
		spool_model_check_stack(model, i, stack);
}

static void test_version_3_there_and_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct strbuf three = { 0 }, four = { 0 }, again = { 0 };
		struct spulse_convert_report report;
		struct spool_model model;

		write_model(&model, seed, SPULSE_SPOOL_FORMAT_3, &three);
		report = convert(&three, 4, &four);
		assert_int_equal(report.samples, model.samples.len);
		assert_int_equal(report.jit_modules + report.paths_changed + report.time_reduced +
				 report.interval_rounded + report.time_lost, 0);
		check_same_stacks(&model, &four);
		convert(&four, 3, &again);
		assert_int_equal(again.len, three.len);
		assert_memory_equal(again.data, three.data, three.len);
		strbuf_release(&three);
		strbuf_release(&four);
		strbuf_release(&again);
		spool_model_release(&model);
	}
}

/* What version 3 cannot hold of a model. */
static struct spulse_convert_report losses(const struct spool_model *model)
{
	struct spulse_convert_report report = {
		.time_reduced = model->header.has_clock_origin,
		.interval_rounded = model->header.interval % 1000 != 0,
	};

	for (size_t i = 0; i < model->modules.len; i++) {
		const struct model_module *m = &model->modules.data[i];

		report.jit_modules += m->is_jit;
		report.jit_symbols += m->symbol_count;
		report.paths_changed +=
			!m->is_annotation &&
			!utf8_valid((const uint8_t *)m->path, m->fields.path_len);
	}
	return report;
}

static void test_version_4_to_3(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct strbuf four = { 0 }, three = { 0 }, same = { 0 };
		struct spulse_convert_report found, expected;
		struct spool_model model;

		write_model(&model, seed, SPULSE_SPOOL_FORMAT_4, &four);
		found = convert(&four, 3, &three);
		expected = losses(&model);
		assert_int_equal(found.samples, model.samples.len);
		assert_int_equal(found.jit_modules, expected.jit_modules);
		assert_int_equal(found.jit_symbols, expected.jit_symbols);
		assert_int_equal(found.paths_changed, expected.paths_changed);
		/* The model's clocks are anywhere. */
		assert_int_equal(found.time_reduced + found.time_lost, expected.time_reduced);
		assert_int_equal(found.interval_rounded, expected.interval_rounded);
		check_same_stacks(&model, &three);
		/* To its own version nothing changes. */
		found = convert(&four, 4, &same);
		assert_int_equal(found.jit_modules + found.time_reduced, 0);
		assert_int_equal(same.len, four.len);
		assert_memory_equal(same.data, four.data, four.len);
		strbuf_release(&four);
		strbuf_release(&three);
		strbuf_release(&same);
		spool_model_release(&model);
	}
}

static void test_changed_paths(void **state)
{
	static const char *const paths[][2] = {
		{ "/plain", "/plain" },
		{ "/\xd0\xba", "/\xd0\xba" },
		{ "/a\xff" "b", "/a\xef\xbf\xbd" "b" },
		{ "\xd0", "\xef\xbf\xbd" },
		{ "\xe2\x82/\xd0\xba", "\xef\xbf\xbd\xef\xbf\xbd/\xd0\xba" },
	};
	SPULSE_CLEANUP(replay) replay = NULL;
	struct strbuf four = { 0 }, three = { 0 };

	(void)state;
	bytes_header(&four, 4);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		bytes_module(&four, i, 1, i, i + 1, paths[i][0]);
	assert_int_equal(convert(&four, 3, &three).paths_changed, 3);
	replay = open_bytes(&three);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_string_equal(spulse_module_path(spulse_source_module(
					    spulse_replay_source(replay), i)), paths[i][1]);
	strbuf_release(&four);
	strbuf_release(&three);
}

static void check_time(const struct strbuf *bytes, uint64_t us)
{
	SPULSE_CLEANUP(replay) replay = open_bytes(bytes);
	SPULSE_CLEANUP(samples) samples = NULL;
	struct spulse_sample sample;
	uint64_t found;

	assert_int_equal(spulse_replay_samples(replay, &samples, NULL), 0);
	assert_int_equal(spulse_samples_next(samples, &sample, NULL), 1);
	assert_int_equal(spulse_source_timestamp_us(spulse_replay_source(replay), &sample, &found),
			 1);
	assert_int_equal(found, us);
}

/* The first sample's wall time is the anchor of version 3, and the other way round. */
static void test_times(void **state)
{
	static const char header[] = "SPULSE4\0\0\x92\xc2\xe8\x04\x01\x80\x94\xeb\xdc\x03\x02"
				     "\x80\xe2\xcf\xaa\x06\x05";
	struct strbuf four = { 0 }, three = { 0 }, again = { 0 };
	struct spulse_convert_report report;

	(void)state;
	strbuf_add(&four, header, sizeof(header) - 1);
	bytes_numbers(&four, 12, 2, 0, 1, 5, 3, 0, UINT32_MAX, 0, 4, 0, 14, 8);
	bytes_numbers(&four, 4, 5, 2 * (uint64_t)1000002000, 0, 0);
	check_time(&four, 1700000000000002);
	report = convert(&four, 3, &three);
	assert_int_equal(report.time_reduced, 1);
	assert_int_equal(report.interval_rounded, 1);
	check_time(&three, 1700000000000002);
	convert(&three, 4, &again);
	check_time(&again, 1700000000000002);
	strbuf_release(&four);
	strbuf_release(&three);
	strbuf_release(&again);
}

static struct spulse_convert_report convert_wall(uint64_t sign, uint64_t seconds, uint64_t nanos,
						bool sample)
{
	struct strbuf four = { 0 }, three = { 0 };
	struct spulse_convert_report report;

	strbuf_add(&four, "SPULSE4", 8);
	bytes_numbers(&four, 7, 0, 0, 1, 1000, sign, seconds, nanos);
	bytes_numbers(&four, 12, 2, 0, 1, 5, 3, 0, UINT32_MAX, 0, 4, 0, 14, 8);
	/* 2 us after the origin. */
	if (sample)
		bytes_numbers(&four, 4, 5, 2 * (uint64_t)3000, 0, 0);
	report = convert(&four, 3, &three);
	/* What is said to be lost is lost, and nothing else. */
	{
		SPULSE_CLEANUP(replay) replay = open_bytes(&three);

		assert_int_equal(!spulse_source_start_timestamp_us(spulse_replay_source(replay)),
				 report.time_lost);
	}
	strbuf_release(&four);
	strbuf_release(&three);
	return report;
}

static void test_times_that_version_3_lacks(void **state)
{
	static const struct {
		uint64_t sign, seconds, nanos;
		bool sample, lost;
	} cases[] = {
		{ 2, 1700000000, 0, true, false },
		{ 2, 0, 0, true, false },
		{ 2, 0, 0, false, true },
		{ 1, 0, 2000, true, true },
		{ 1, 0, 1000, true, false },
		{ 1, 5, 0, true, true },
		{ 2, UINT64_MAX / 1000000, 551613000, true, false },
		{ 2, UINT64_MAX / 1000000, 551614000, true, true },
		{ 2, INT64_MAX, 0, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct spulse_convert_report report = convert_wall(
			cases[i].sign, cases[i].seconds, cases[i].nanos, cases[i].sample);

		assert_int_equal(report.time_lost, cases[i].lost);
		assert_int_equal(report.time_reduced, !cases[i].lost);
	}
}

static void test_interval_that_version_4_lacks(void **state)
{
	(void)state;
	for (int over = 0; over < 2; over++) {
		struct strbuf three = { 0 }, four = { 0 };

		strbuf_add(&three, "SPULSE3", 8);
		bytes_numbers(&three, 2, 0, UINT64_MAX / 1000 + over);
		assert_int_equal(convert(&three, 4, &four).interval_limited, over);
		strbuf_release(&three);
		strbuf_release(&four);
	}
}

static void test_cut_tail_is_gone(void **state)
{
	struct strbuf bytes = { 0 }, whole = { 0 };
	SPULSE_CLEANUP(replay) replay = NULL;

	(void)state;
	bytes_header(&bytes, 4);
	bytes_module(&bytes, 0, 1, 0, 1, "/a");
	strbuf_add(&bytes, "\x02\x00", 2);
	assert_int_equal(convert(&bytes, 4, &whole).records, 1);
	assert_int_equal(whole.len, bytes.len - 2);
	replay = open_bytes(&whole);
	assert_false(spulse_source_recovered_from_truncated_tail(spulse_replay_source(replay)));
	strbuf_release(&bytes);
	strbuf_release(&whole);
}

static void test_refusals(void **state)
{
	struct spool_output output = { .fail_call = 1, .error = 28 };
	SPULSE_CLEANUP(replay) replay = NULL;
	struct strbuf bytes = { 0 };
	struct spulse_error *err = NULL;

	(void)state;
	bytes_header(&bytes, 4);
	replay = open_bytes(&bytes);
	assert_int_equal(spulse_spool_convert(replay, (enum spulse_spool_format)5,
					      &spool_output_functions, &output, NULL, &err),
			 -SPULSE_ERROR_UNSUPPORTED);
	assert_string_equal(spulse_error_message(err), "version 5 of the spool format cannot be "
			    "written, only 3 and 4");
	spulse_error_free(err);
	err = NULL;
	assert_int_equal(spulse_spool_convert(replay, 3, &spool_output_functions, &output, NULL,
					      &err), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), 28);
	spulse_error_free(err);
	strbuf_release(&bytes);
	strbuf_release(&output.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_3_there_and_back),
		cmocka_unit_test(test_version_4_to_3),
		cmocka_unit_test(test_changed_paths),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_times_that_version_3_lacks),
		cmocka_unit_test(test_interval_that_version_4_lacks),
		cmocka_unit_test(test_cut_tail_is_gone),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

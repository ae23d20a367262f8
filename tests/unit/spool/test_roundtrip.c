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

#include "spool_check.h"
#include "spool_output.h"

static void run(uint64_t seed, enum spulse_spool_format format)
{
	struct spool_output output = { .rng.state = seed };
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_model model;
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
	spool_check_readers(&model, output.bytes.data, output.bytes.len, header);
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

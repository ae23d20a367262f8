/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Recordings by the original recorders, read and given to our writer event by event, must come out
 * byte for byte: the writer interns and orders records as they do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stackpulse/error.h>

#include "base/io.h"
#include "spool_copy.h"
#include "spool_output.h"

static void check_spool(const char *path, size_t piece)
{
	struct spool_output output = { .piece = piece, .interrupt = piece ? 3 : 0 };
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spulse_spool_header header;
	struct spulse_error *err = NULL;
	struct strbuf original = { 0 };

	assert_int_equal(spulse_replay_open(path, &replay, NULL), 0);
	header = spool_copy_header(spulse_replay_source(replay));
	assert_int_equal(spulse_spool_writer_new(&spool_output_functions, &output, &header,
						 &writer, NULL), 0);
	if (spool_copy_events(replay, writer, &err) < 0)
		fail_msg("%s", spulse_error_message(err));
	assert_int_equal(read_file(path, 1 << 20, &original), 0);
	assert_int_equal(output.bytes.len, original.len);
	assert_memory_equal(output.bytes.data, original.data, original.len);
	strbuf_release(&original);
	strbuf_release(&output.bytes);
}

static void test_recordings(void **state)
{
	char pattern[4096];
	glob_t found;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/recordings/*.spool", getenv("SPOOL_VECTORS"));
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 6);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		print_message("%s\n", found.gl_pathv[i]);
		check_spool(found.gl_pathv[i], 0);
		/* An output that takes a few bytes at once changes nothing. */
		check_spool(found.gl_pathv[i], 7);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

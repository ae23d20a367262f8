/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a list of things to record: four bytes choose each. The spool that is written gives
 * them back through all readers, and written again from what was read it is the same file.
 */
#include "../driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spool_check.h"
#include "spool_copy.h"
#include "spool_output.h"

enum { STEPS_MAX = 512, WORD = 4 };

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_roundtrip: %s\n", what);
	abort();
}

/* A writer that follows the same rules gives the same bytes for the same events. */
static void check_copy(const struct strbuf *bytes)
{
	/* Outlives the writer, which closes it. */
	struct spool_output copy = {.calls = 0};
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spulse_spool_header header;
	struct spool_file file;

	spool_file_make(&file, bytes->data, bytes->len);
	must(spulse_replay_open(file.path, &replay, NULL) == 0, "cannot be read");
	header = spool_copy_header(spulse_replay_source(replay));
	must(spulse_spool_writer_new(&spool_output_functions, &copy, &header, &writer, NULL) == 0 &&
	     spool_copy_events(replay, writer, NULL) >= 0 &&
	     spulse_spool_writer_finish(writer, NULL) == 0, "cannot be written again");
	must(copy.bytes.len == bytes->len && !memcmp(copy.bytes.data, bytes->data, bytes->len),
	     "written again it has other bytes");
	strbuf_release(&copy.bytes);
	spool_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_output output = {.calls = 0};
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_model model;
	uint32_t word;
	size_t header;

	if (size < WORD)
		return 0;
	memcpy(&word, data, WORD);
	spool_model_init(&model, word, word & 1 ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4);
	must(spulse_spool_writer_new(&spool_output_functions, &output, &model.header, &writer,
				     NULL) == 0 &&
	     spulse_spool_writer_flush(writer, NULL) == 0, "no writer");
	header = output.bytes.len;
	for (size_t i = WORD; i + WORD <= size && i <= STEPS_MAX * WORD; i += WORD) {
		memcpy(&word, data + i, WORD);
		model.rng.state = word;
		spool_model_step(&model, writer);
	}
	must(spulse_spool_writer_finish(writer, NULL) == 0, "cannot finish");
	spool_check_readers(&model, output.bytes.data, output.bytes.len, header);
	check_copy(&output.bytes);
	strbuf_release(&output.bytes);
	spool_model_release(&model);
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	struct random rng = {.state = i};
	uint8_t *bytes;

	if (i >= 8)
		return NULL;
	*len = WORD * (2 + 12 * i);
	bytes = malloc(*len);
	for (size_t k = 0; bytes && k < *len; k++)
		bytes[k] = random_u64(&rng);
	return bytes;
}

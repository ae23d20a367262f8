/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Random recordings for other readers of the format.
 *	spool_models FIRST COUNT FOLDER	writes FOLDER/SEED.spool and, without its annotations,
 *					FOLDER/SEED.plain; prints the samples that they must give
 *	spool_models --strip FILE FILE	copies a spool without its annotations
 * A sample is one line of JSON, "end" follows those of one spool.
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
#include <unistd.h>

#include <stackpulse/error.h>

#include "spool/spool.h"
#include "spool_copy.h"
#include "spool_model.h"

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "spool_models: %s: %s\n", what, spulse_error_kind_name(-result));
	exit(1);
}

static struct spulse_spool_writer *new_writer(const char *path,
					      const struct spulse_spool_header *header)
{
	struct spulse_spool_writer *writer;
	int *fd = malloc(sizeof(*fd));

	if (!fd)
		abort();
	*fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(*fd, path);
	must(spulse_spool_writer_new(&spool_fd_output, fd, header, &writer, NULL), path);
	return writer;
}

static void strip(const char *from, const char *to)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spulse_spool_header header;

	must(spulse_replay_open(from, &replay, NULL), from);
	header = spool_copy_header(spulse_replay_source(replay));
	writer = new_writer(to, &header);
	must(spool_copy_plain_events(replay, writer, NULL), to);
}

static void print_frame(const struct spool_model *model, const struct model_frame *frame)
{
	static const char *const modes[] = { "user", "kernel" };
	const struct model_module *m;

	if (frame->frame.mode == SPULSE_FRAME_TRUNCATED) {
		printf("{\"mode\":\"truncated\",\"ip\":\"0x0\"}");
		return;
	}
	printf("{\"mode\":\"%s\",\"ip\":\"0x%" PRIx64 "\"", modes[frame->frame.mode],
	       frame->frame.abs_ip);
	if (frame->module != SPULSE_NO_MODULE) {
		m = &model->modules.data[frame->module];
		printf(",\"path_hex\":\"");
		for (size_t i = 0; i < m->fields.path_len; i++)
			printf("%02x", (unsigned char)m->path[i]);
		printf("\",\"rel\":\"0x%" PRIx64 "\"",
		       frame->frame.abs_ip - m->fields.start + m->fields.file_offset);
	}
	printf("}");
}

static void print_samples(const struct spool_model *model)
{
	for (size_t i = 0; i < model->samples.len; i++) {
		const struct model_sample *s = &model->samples.data[i];

		printf("{\"timestamp_ns\":%" PRIu64 ",\"pid\":%d,\"tid\":%d,\"frames\":[",
		       s->sample.timestamp_ns, (int)s->sample.pid, (int)s->sample.tid);
		for (size_t k = 0; k < s->frame_count; k++) {
			printf("%s", k ? "," : "");
			print_frame(model, &model->frames.data[s->first_frame + k]);
		}
		printf("]}\n");
	}
	printf("end\n");
}

static void make(uint64_t seed, const char *folder)
{
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_model model;
	char path[4096], plain[4096];
	uint64_t steps;

	snprintf(path, sizeof(path), "%s/%" PRIu64 ".spool", folder, seed);
	snprintf(plain, sizeof(plain), "%s/%" PRIu64 ".plain", folder, seed);
	spool_model_init(&model, seed, seed & 1 ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4);
	writer = new_writer(path, &model.header);
	for (steps = random_below(&model.rng, 100); steps; steps--)
		spool_model_step(&model, writer);
	must(spulse_spool_writer_finish(writer, NULL), path);
	strip(path, plain);
	print_samples(&model);
	spool_model_release(&model);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (strcmp(argv[1], "--strip") == 0) {
		strip(argv[2], argv[3]);
		return 0;
	}
	for (uint64_t i = 0; i < strtoull(argv[2], NULL, 0); i++)
		make(strtoull(argv[1], NULL, 0) + i, argv[3]);
	return 0;
}

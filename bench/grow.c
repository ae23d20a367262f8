/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writes the samples of a spool several times over, so that reading it takes long enough to be
 * measured. usage: grow IN OUT TIMES
 */
#include <stackpulse/stackpulse.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_FRAMES = 65536 };

struct copy {
	struct spulse_spool_writer *writer;
	uint32_t *module_ids; /* by id in the input */
	size_t module_ids_len;
	struct spulse_frame *frames;
	uint64_t shift_ns;
};

static ssize_t write_some(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

static int copy_module(struct copy *copy, const struct spulse_module *module,
		       struct spulse_error **err)
{
	const struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = spulse_module_pid(module),
		.is_kernel = spulse_module_is_kernel(module),
		.start = spulse_module_start(module),
		.end = spulse_module_end(module),
		.file_offset = spulse_module_file_offset(module),
		.inode = spulse_module_inode(module),
		.inode_generation = spulse_module_inode_generation(module),
		.device_major = spulse_module_device_major(module),
		.device_minor = spulse_module_device_minor(module),
		.path = spulse_module_path(module),
		.path_len = spulse_module_path_len(module),
	};
	uint32_t id = spulse_module_id(module);

	if (id >= copy->module_ids_len) {
		uint32_t *grown = realloc(copy->module_ids, (id + 1ul) * sizeof(*grown));

		if (!grown)
			return -SPULSE_ERROR_NO_MEMORY;
		copy->module_ids = grown;
		copy->module_ids_len = id + 1ul;
	}
	return spulse_spool_writer_module(copy->writer, &fields, &copy->module_ids[id], err);
}

static int copy_stack(struct copy *copy, const struct spulse_stack *stack,
		      struct spulse_error **err)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_sample sample = *spulse_stack_sample(stack);
	const struct spulse_frame *frame;
	size_t count = 0;

	while ((frame = spulse_frame_iter_next(&iter)) && count < MAX_FRAMES) {
		copy->frames[count] = *frame;
		if (frame->module_id < copy->module_ids_len)
			copy->frames[count].module_id = copy->module_ids[frame->module_id];
		count++;
	}
	sample.timestamp_ns += copy->shift_ns;
	return spulse_spool_writer_sample(copy->writer, &sample, copy->frames, count, err);
}

static int copy_all(struct copy *copy, const char *in, long times, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	const struct spulse_source *source;
	const struct spulse_stack *stack;
	uint64_t last = 0;
	int r = spulse_replay_open(in, &replay, err);

	if (r < 0)
		return r;
	source = spulse_replay_source(replay);
	for (size_t i = 0; i < spulse_source_module_count(source); i++) {
		r = copy_module(copy, spulse_source_module(source, i), err);
		if (r < 0)
			return r;
	}
	for (long round = 0; round < times; round++) {
		SPULSE_CLEANUP(stacks) stacks = NULL;

		r = spulse_replay_stacks(replay, &stacks, err);
		while (r >= 0 && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
			last = spulse_stack_timestamp_ns(stack);
			r = copy_stack(copy, stack, err);
		}
		if (r < 0)
			return r;
		copy->shift_ns += last / 1000 + 1;
	}
	return spulse_spool_writer_finish(copy->writer, err);
}

int main(int argc, char **argv)
{
	const struct spulse_output output = { .size = sizeof(output), .write = write_some };
	const struct spulse_spool_header header = {
		.size = sizeof(header),
		.format = 4,
		.interval = 1000000,
	};
	SPULSE_CLEANUP(error) err = NULL;
	struct copy copy = { 0 };
	int fd, r;

	if (argc != 4) {
		fprintf(stderr, "usage: grow IN OUT TIMES\n");
		return 2;
	}
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	copy.frames = malloc(MAX_FRAMES * sizeof(*copy.frames));
	r = copy.frames ? spulse_spool_writer_new(&output, &fd, &header, &copy.writer, &err)
			: -SPULSE_ERROR_NO_MEMORY;
	if (r >= 0)
		r = copy_all(&copy, argv[1], atol(argv[3]), &err);
	if (r < 0)
		fprintf(stderr, "grow: %s\n", spulse_error_message(err));
	spulse_spool_writer_free(copy.writer);
	free(copy.module_ids);
	free(copy.frames);
	return r < 0 || close(fd) < 0;
}

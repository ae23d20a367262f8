/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spool_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct spulse_spool_header spool_copy_header(const struct spulse_source *source)
{
	struct spulse_spool_header header = { .size = sizeof(header) };

	header.format = spulse_source_format(source);
	spulse_source_raw_header(source, &header.start_timestamp_us, &header.interval);
	header.has_clock_origin =
		spulse_source_clock_origin(source, &header.monotonic_ns, &header.wall);
	return header;
}

/* Modules get other ids when some are left out. */
struct copy {
	const struct spulse_source *source;
	struct spulse_spool_writer *writer;
	bool plain; /* without annotations */
	VEC(uint32_t) ids; /* in the copy; SPULSE_NO_MODULE = left out */
};

static bool is_annotation(const struct spulse_module *m)
{
	static const char prefix[] = "//stackpulse/";

	return !spulse_module_start(m) && !spulse_module_end(m) &&
	       strncmp(spulse_module_path(m), prefix, sizeof(prefix) - 1) == 0;
}

static int copy_module(struct copy *copy, uint32_t id, int kind, struct spulse_error **err)
{
	const struct spulse_source *source = copy->source;
	struct spulse_spool_writer *writer = copy->writer;
	const struct spulse_module *m = spulse_source_module_by_id(source, id);
	const struct spulse_jit_symbol *symbols;
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = spulse_module_pid(m),
		.is_kernel = spulse_module_is_kernel(m),
		.start = spulse_module_start(m),
		.end = spulse_module_end(m),
		.file_offset = spulse_module_file_offset(m),
		.inode = spulse_module_inode(m),
		.inode_generation = spulse_module_inode_generation(m),
		.device_major = spulse_module_device_major(m),
		.device_minor = spulse_module_device_minor(m),
		.path = spulse_module_path(m),
		.path_len = spulse_module_path_len(m),
	};
	uint32_t written = SPULSE_NO_MODULE;
	size_t count;
	int r = 0;

	symbols = spulse_source_jit_symbols(source, id, &count);
	if (kind != SPULSE_RECORD_MODULE)
		r = spulse_spool_writer_jit_module(writer, &fields, symbols, count, &written, err);
	else if (!copy->plain || !is_annotation(m))
		r = spulse_spool_writer_module(writer, &fields, &written, err);
	if (r == 0 && !vec_push(&copy->ids, written))
		abort();
	return r;
}

static int copy_sample(const struct copy *copy, const struct spulse_stack *stack,
		       struct spulse_error **err)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	size_t depth = spulse_stack_depth(stack), count = 0;
	struct spulse_frame *frames = calloc(depth, sizeof(*frames));
	const struct spulse_frame *frame;
	int r;

	while ((frame = spulse_frame_iter_next(&iter)) && count < depth) {
		frames[count] = *frame;
		if (frame->module_id != SPULSE_NO_MODULE)
			frames[count].module_id = copy->ids.data[frame->module_id];
		count++;
	}
	r = spulse_spool_writer_sample(copy->writer, spulse_stack_sample(stack), frames, count, err);
	free(frames);
	return r;
}

static int retire_module(const struct copy *copy, uint32_t id, struct spulse_error **err)
{
	if (copy->ids.data[id] == SPULSE_NO_MODULE)
		return 0;
	return spulse_spool_writer_retire_module(copy->writer, copy->ids.data[id], err);
}

static int copy_event(struct copy *copy, const struct spulse_record *record,
		      struct spulse_error **err)
{
	size_t count;

	switch (record->kind) {
	case SPULSE_RECORD_MODULE:
	case SPULSE_RECORD_JIT_MODULE:
		return copy_module(copy, record->id, record->kind, err);
	case SPULSE_RECORD_RETIRE_MODULE:
		return retire_module(copy, record->id, err);
	case SPULSE_RECORD_RETIRE_PROCESS:
		return spulse_spool_writer_retire_process(copy->writer, record->pid, err);
	case SPULSE_RECORD_PYTHON_RUNTIME:
		return spulse_spool_writer_python_runtime(
			copy->writer,
			&spulse_source_python_runtimes(copy->source, &count)[record->id], err);
	case SPULSE_RECORD_SAMPLE:
		return copy_sample(copy, record->stack, err);
	default:
		return 0;
	}
}

static int copy_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
		       bool plain, struct spulse_error **err)
{
	SPULSE_CLEANUP(records) records = NULL;
	struct spulse_record record = { .size = sizeof(record) };
	struct copy copy = { .source = spulse_replay_source(replay), .writer = writer,
			     .plain = plain };
	int r = spulse_replay_records(replay, &records, err);

	while (r == 0 && (r = spulse_records_next(records, &record, err)) > 0)
		r = copy_event(&copy, &record, err);
	vec_free(&copy.ids);
	return r < 0 ? r : spulse_spool_writer_finish(writer, err);
}

int spool_copy_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
		      struct spulse_error **err)
{
	return copy_events(replay, writer, false, err);
}

int spool_copy_plain_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
			    struct spulse_error **err)
{
	return copy_events(replay, writer, true, err);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spool_copy.h"

#include <stdlib.h>

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

static int copy_module(const struct spulse_source *source, uint32_t id, int kind,
		       struct spulse_spool_writer *writer, struct spulse_error **err)
{
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
	uint32_t written;
	size_t count;

	if (kind == SPULSE_RECORD_MODULE)
		return spulse_spool_writer_module(writer, &fields, &written, err);
	symbols = spulse_source_jit_symbols(source, id, &count);
	return spulse_spool_writer_jit_module(writer, &fields, symbols, count, &written, err);
}

static int copy_sample(const struct spulse_stack *stack, struct spulse_spool_writer *writer,
		       struct spulse_error **err)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	size_t depth = spulse_stack_depth(stack), count = 0;
	struct spulse_frame *frames = calloc(depth, sizeof(*frames));
	const struct spulse_frame *frame;
	int r;

	while ((frame = spulse_frame_iter_next(&iter)) && count < depth)
		frames[count++] = *frame;
	r = spulse_spool_writer_sample(writer, spulse_stack_sample(stack), frames, count, err);
	free(frames);
	return r;
}

static int copy_event(const struct spulse_source *source, const struct spulse_record *record,
		      struct spulse_spool_writer *writer, struct spulse_error **err)
{
	size_t count;

	switch (record->kind) {
	case SPULSE_RECORD_MODULE:
	case SPULSE_RECORD_JIT_MODULE:
		return copy_module(source, record->id, record->kind, writer, err);
	case SPULSE_RECORD_RETIRE_MODULE:
		return spulse_spool_writer_retire_module(writer, record->id, err);
	case SPULSE_RECORD_RETIRE_PROCESS:
		return spulse_spool_writer_retire_process(writer, record->pid, err);
	case SPULSE_RECORD_PYTHON_RUNTIME:
		return spulse_spool_writer_python_runtime(
			writer, &spulse_source_python_runtimes(source, &count)[record->id], err);
	case SPULSE_RECORD_SAMPLE:
		return copy_sample(record->stack, writer, err);
	default:
		return 0;
	}
}

int spool_copy_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
		      struct spulse_error **err)
{
	SPULSE_CLEANUP(records) records = NULL;
	struct spulse_record record = { .size = sizeof(record) };
	int r = spulse_replay_records(replay, &records, err);

	while (r == 0 && (r = spulse_records_next(records, &record, err)) > 0)
		r = copy_event(spulse_replay_source(replay), &record, writer, err);
	return r < 0 ? r : spulse_spool_writer_finish(writer, err);
}

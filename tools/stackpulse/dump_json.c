/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "dump_json.h"

#include "text.h"

static const char *class_name(enum spulse_error_kind kind)
{
	static const char *const names[] = {
		[SPULSE_ERROR_IO] = "Io",
		[SPULSE_ERROR_INVALID_INPUT] = "InvalidInput",
		[SPULSE_ERROR_PERMISSION] = "Permission",
		[SPULSE_ERROR_CORRUPT_SPOOL] = "CorruptSpool",
		[SPULSE_ERROR_UNSUPPORTED] = "Unsupported",
		[SPULSE_ERROR_NO_MEMORY] = "OutOfMemory",
	};
	const char *name = NULL;

	if ((unsigned int)kind < sizeof(names) / sizeof(names[0]))
		name = names[kind];
	return name ? name : "Other";
}

void dump_json_error(struct json *json, const struct spulse_error *error)
{
	struct spulse_spool_position position;
	bool located = spulse_error_spool_position(error, &position) && position.tag >= 0;

	json_key(json, "error");
	json_begin_object(json);
	json_field_text(json, "class", class_name(spulse_error_kind(error)));
	json_field_text(json, "reason", spulse_error_message(error));
	json_key(json, "record_offset");
	if (located)
		json_uint(json, position.offset);
	else
		json_null(json);
	json_key(json, "record_tag");
	if (located)
		json_int(json, position.tag);
	else
		json_null(json);
	json_end_object(json);
}

static void json_wall(struct json *json, const struct spulse_wall_time *wall)
{
	json_begin_object(json);
	json_field_int(json, "secs", wall->seconds);
	json_field_uint(json, "nanos", wall->nanoseconds);
	json_end_object(json);
}

static void json_header(struct json *json, const struct spulse_source *source)
{
	struct spulse_wall_time wall;
	uint64_t start, interval, monotonic;
	int format = (int)spulse_source_format(source);

	spulse_source_raw_header(source, &start, &interval);
	json_key(json, "header");
	json_begin_object(json);
	json_field_int(json, "format", format);
	json_field_uint(json, "start_timestamp_us", start);
	json_field_uint(json, format == 3 ? "sample_interval_us" : "nominal_interval_ns", interval);
	if (format != 3) {
		json_key(json, "clock_origin");
		if (spulse_source_clock_origin(source, &monotonic, &wall)) {
			json_begin_object(json);
			json_field_uint(json, "monotonic_ns", monotonic);
			json_key(json, "wall");
			json_wall(json, &wall);
			json_end_object(json);
		} else {
			json_null(json);
		}
	}
	json_end_object(json);
}

static void json_path(struct json *json, const struct spulse_module *module)
{
	const char *path = spulse_module_path(module);
	size_t len = spulse_module_path_len(module);

	if (text_is_utf8(path, len)) {
		json_field_string(json, "path", path, len);
		return;
	}
	json_key(json, "path_hex");
	json_hex_bytes(json, path, len);
}

static void json_jit_symbols(struct json *json, const struct spulse_source *source, uint32_t id)
{
	const struct spulse_jit_symbol *symbols;
	size_t count;

	symbols = spulse_source_jit_symbols(source, id, &count);
	if (!symbols)
		return;
	json_key(json, "jit_symbols");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_field_hex(json, "start", symbols[i].start);
		json_field_hex(json, "end", symbols[i].end);
		json_field_string(json, "name", symbols[i].name, symbols[i].name_len);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_module(struct json *json, const struct spulse_source *source, uint32_t id)
{
	const struct spulse_module *module = spulse_source_module_by_id(source, id);

	json_begin_object(json);
	json_field_uint(json, "id", id);
	json_key(json, "pid");
	if (spulse_module_is_kernel(module))
		json_null(json);
	else
		json_int(json, spulse_module_pid(module));
	json_field_bool(json, "kernel", spulse_module_is_kernel(module));
	json_field_hex(json, "start", spulse_module_start(module));
	json_field_hex(json, "end", spulse_module_end(module));
	json_field_hex(json, "file_offset", spulse_module_file_offset(module));
	json_field_uint(json, "inode", spulse_module_inode(module));
	json_field_uint(json, "dev_major", spulse_module_device_major(module));
	json_field_uint(json, "dev_minor", spulse_module_device_minor(module));
	json_field_uint(json, "inode_generation", spulse_module_inode_generation(module));
	json_path(json, module);
	json_jit_symbols(json, source, id);
	json_end_object(json);
}

static void json_optional_id(struct json *json, const char *key, uint32_t id)
{
	json_key(json, key);
	if (id == UINT32_MAX)
		json_null(json);
	else
		json_uint(json, id);
}

static const char *mode_name(uint32_t mode)
{
	return mode == SPULSE_FRAME_USER     ? "user"
	       : mode == SPULSE_FRAME_KERNEL ? "kernel"
					     : "truncated";
}

static void json_frames(struct json *json, const struct spulse_source *source)
{
	const struct spulse_frame *frames;
	size_t count;

	frames = spulse_source_frames(source, &count);
	json_key(json, "frames");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_field_uint(json, "id", i);
		json_field_text(json, "mode", mode_name(frames[i].mode));
		json_optional_id(json, "module", frames[i].module_id);
		json_field_hex(json, "ip", frames[i].abs_ip);
		json_field_hex(json, "rel", frames[i].file_relative_ip);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_nodes(struct json *json, const struct spulse_source *source)
{
	const struct spulse_stack_node *nodes;
	size_t count;

	nodes = spulse_source_stack_nodes(source, &count);
	json_key(json, "stacks");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_field_uint(json, "id", i);
		json_optional_id(json, "prefix", nodes[i].prefix);
		json_field_uint(json, "frame", nodes[i].frame);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_threads(struct json *json, const struct spulse_source *source)
{
	const struct spulse_thread *threads;
	size_t count;

	threads = spulse_source_threads(source, &count);
	json_key(json, "threads");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_field_uint(json, "id", i);
		json_field_int(json, "pid", threads[i].pid);
		json_field_int(json, "tid", threads[i].tid);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_runtimes(struct json *json, const struct spulse_source *source)
{
	const struct spulse_python_runtime *records;
	size_t count;

	records = spulse_source_python_runtimes(source, &count);
	json_key(json, "python_runtime");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_field_uint(json, "timestamp_ns", records[i].timestamp_ns);
		json_field_int(json, "pid", records[i].pid);
		json_field_bool(json, "is_python", records[i].is_python);
		json_end_object(json);
	}
	json_end_array(json);
}

void dump_json_pids(struct json *json, const pid_t *pids, size_t count)
{
	json_key(json, "processes");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		json_int(json, pids[i]);
	json_end_array(json);
}

/* Everything but the samples. */
static void json_definitions(struct json *json, const struct spulse_source *source)
{
	const pid_t *pids;
	size_t count;

	json_header(json, source);
	json_key(json, "modules");
	json_begin_array(json);
	for (size_t id = 0; id < spulse_source_raw_module_count(source); id++)
		json_module(json, source, (uint32_t)id);
	json_end_array(json);
	json_frames(json, source);
	json_nodes(json, source);
	json_threads(json, source);
	json_runtimes(json, source);
	pids = spulse_source_processes(source, &count);
	dump_json_pids(json, pids, count);
}

static void json_sample_time(struct json *json, const struct spulse_source *source,
			     const struct spulse_sample *sample)
{
	struct spulse_wall_time wall;
	uint64_t us;
	int r;

	if (spulse_source_format(source) == SPULSE_SPOOL_FORMAT_3) {
		json_key(json, "timestamp_us");
		if (spulse_source_timestamp_us(source, sample, &us))
			json_uint(json, us);
		else
			json_null(json);
		return;
	}
	json_key(json, "recorded_at");
	r = spulse_source_wall_time(source, sample, &wall, NULL);
	if (r > 0)
		json_wall(json, &wall);
	else if (r < 0)
		json_text(json, "out_of_range");
	else
		json_null(json);
}

static void json_context(struct json *json, const struct spulse_frame_context *context)
{
	json_begin_object(json);
	json_field_hex(json, "ip", context->frame->abs_ip);
	json_field_text(json, "mode", mode_name(context->frame->mode));
	json_key(json, "module");
	if (context->module) {
		json_uint(json, spulse_module_id(context->module));
		json_field_hex(json, "rel", context->file_relative_ip);
		json_path(json, context->module);
	} else {
		json_null(json);
	}
	json_end_object(json);
}

static void json_begin_sample(struct json *json, const struct spulse_source *source,
			      const struct spulse_sample *sample)
{
	json_begin_object(json);
	json_field_uint(json, "timestamp_ns", sample->timestamp_ns);
	json_field_int(json, "pid", sample->pid);
	json_field_int(json, "tid", sample->tid);
	json_sample_time(json, source, sample);
	json_key(json, "frames");
	json_begin_array(json);
}

static void json_end_sample(struct json *json)
{
	json_end_array(json);
	json_end_object(json);
}

int dump_json_stacks(struct json *json, const struct spulse_source *source,
		       struct spulse_stacks *stacks, struct spulse_error **err)
{
	const struct spulse_stack *stack;
	struct spulse_frame_context context;
	int r;

	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);

		json_begin_sample(json, source, spulse_stack_sample(stack));
		while (spulse_frame_iter_next_context(&iter, &context))
			json_context(json, &context);
		json_end_sample(json);
	}
	return r;
}

void dump_json_kept(struct json *json, const struct spulse_source *source,
		      const struct kept_stack *kept)
{
	const struct spulse_stack_node *nodes;
	struct spulse_frame_context context;
	size_t count;

	nodes = spulse_source_stack_nodes(source, &count);
	json_begin_sample(json, source, &kept->sample);
	for (uint32_t node = kept->node; node != UINT32_MAX; node = nodes[node].prefix) {
		spulse_source_bind(source, kept->sample.pid, nodes[node].frame, &context);
		json_context(json, &context);
	}
	json_end_sample(json);
}

void dump_json_begin_document(struct json *json, const struct spulse_source *source,
				bool recovered)
{
	json_begin_object(json);
	json_field_text(json, "outcome", recovered ? "recovered" : "valid");
	json_key(json, "document");
	json_begin_object(json);
	json_definitions(json, source);
	json_field_bool(json, "recovered", recovered);
	json_key(json, "samples");
	json_begin_array(json);
}

void dump_json_end_document(struct json *json)
{
	json_end_array(json);
	json_end_object(json);
	json_end_object(json);
	json_end_line(json);
}

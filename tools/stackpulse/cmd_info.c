/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli.h"
#include "json.h"
#include "mem.h"
#include "symopts.h"
#include "text.h"
#include "tool.h"

/* What the command line asks for. */
struct request {
	struct symopts symopts;
	bool json;
	bool symbols;
};

/* What the samples say as a whole: one pass over the file. */
struct facts {
	uint64_t samples;
	uint64_t file_bytes;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t kernel_frames;
	bool has_time;
};

static int gather(const struct spulse_replay *replay, const char *path, struct facts *facts,
		  struct spulse_error **err)
{
	SPULSE_CLEANUP(samples) samples = NULL;
	const struct spulse_frame *frames;
	struct spulse_sample sample;
	struct stat st;
	size_t count;
	int r;

	facts->samples = spulse_replay_sample_count(replay);
	if (stat(path, &st) == 0)
		facts->file_bytes = (uint64_t)st.st_size;
	frames = spulse_source_frames(spulse_replay_source(replay), &count);
	for (size_t i = 0; i < count; i++)
		facts->kernel_frames += frames[i].mode == SPULSE_FRAME_KERNEL;
	r = spulse_replay_samples(replay, &samples, err);
	if (r < 0)
		return r;
	while ((r = spulse_samples_next(samples, &sample, err)) > 0) {
		if (!facts->has_time || sample.timestamp_ns < facts->first_ns)
			facts->first_ns = sample.timestamp_ns;
		if (!facts->has_time || sample.timestamp_ns > facts->last_ns)
			facts->last_ns = sample.timestamp_ns;
		facts->has_time = true;
	}
	return r;
}

/* "2025-03-01T12:00:00.000000000Z"; years beyond what gmtime can hold stay seconds. */
static void wall_text(const struct spulse_wall_time *wall, char *buf, size_t size)
{
	time_t seconds = (time_t)wall->seconds;
	struct tm tm;
	size_t used;

	if (!gmtime_r(&seconds, &tm)) {
		snprintf(buf, size, "%" PRId64 ".%09" PRIu32 " s after the epoch", wall->seconds,
			 wall->nanoseconds);
		return;
	}
	used = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + used, size - used, ".%09" PRIu32 "Z", wall->nanoseconds);
}

static int json_modules(struct json *json, const struct spulse_source *source,
			const struct request *request, struct spulse_error **err)
{
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	int r = request->symbols ? symopts_open(&request->symopts, source, &symbolizer, err) : 0;

	json_key(json, "modules");
	json_begin_array(json);
	for (size_t i = 0; r >= 0 && i < spulse_source_module_count(source); i++) {
		const struct spulse_module *module = spulse_source_module(source, i);
		const char *report;

		json_begin_object(json);
		json_field_uint(json, "id", spulse_module_id(module));
		json_field_bool(json, "kernel", spulse_module_is_kernel(module));
		json_field_int(json, "pid", spulse_module_pid(module));
		json_field_hex(json, "start", spulse_module_start(module));
		json_field_hex(json, "end", spulse_module_end(module));
		json_field_hex(json, "file_offset", spulse_module_file_offset(module));
		json_field_uint(json, "device_major", spulse_module_device_major(module));
		json_field_uint(json, "device_minor", spulse_module_device_minor(module));
		json_field_uint(json, "inode", spulse_module_inode(module));
		json_field_uint(json, "inode_generation", spulse_module_inode_generation(module));
		json_field_bytes(json, "path", spulse_module_path(module),
				 spulse_module_path_len(module));
		if (request->symbols) {
			r = spulse_symbolizer_module_report(symbolizer, i, &report, err);
			if (r >= 0)
				json_field_text(json, "symbols", report);
		}
		json_end_object(json);
	}
	json_end_array(json);
	return r;
}

static void json_annotations(struct json *json, const struct spulse_source *source)
{
	const struct spulse_annotation *annotations;
	size_t count;

	annotations = spulse_source_annotations(source, &count);
	json_key(json, "annotations");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		if (annotations[i].pid >= 0)
			json_field_int(json, "pid", annotations[i].pid);
		json_field_text(json, "key", annotations[i].key);
		json_field_bytes(json, "value", annotations[i].value, annotations[i].value_len);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_header(struct json *json, const struct spulse_source *source)
{
	struct spulse_wall_time wall;
	char started[64];

	json_field_int(json, "format", spulse_source_format(source));
	json_field_bool(json, "recovered", spulse_source_recovered_from_truncated_tail(source));
	json_key(json, "started_at");
	if (spulse_source_started_at(source, &wall)) {
		wall_text(&wall, started, sizeof(started));
		json_text(json, started);
	} else {
		json_null(json);
	}
	json_field_uint(json, "interval_ns", spulse_source_interval_ns(source));
}

static void json_counts(struct json *json, const struct spulse_source *source,
			const struct facts *facts)
{
	size_t frames, nodes, threads, processes, runtimes;

	spulse_source_frames(source, &frames);
	spulse_source_stack_nodes(source, &nodes);
	spulse_source_threads(source, &threads);
	spulse_source_processes(source, &processes);
	spulse_source_python_runtimes(source, &runtimes);
	json_field_uint(json, "file_bytes", facts->file_bytes);
	json_field_uint(json, "samples", facts->samples);
	if (facts->has_time) {
		json_field_uint(json, "first_timestamp_ns", facts->first_ns);
		json_field_uint(json, "last_timestamp_ns", facts->last_ns);
	}
	json_field_uint(json, "processes", processes);
	json_field_uint(json, "threads", threads);
	json_field_uint(json, "frames", frames);
	json_field_uint(json, "kernel_frames", facts->kernel_frames);
	json_field_uint(json, "stack_nodes", nodes);
	json_field_uint(json, "python_runtimes", runtimes);
}

static int print_json(struct out *out, const struct spulse_source *source,
		      const struct facts *facts, const struct request *request,
		      struct spulse_error **err)
{
	struct json json;
	int r;

	json_init(&json, out);
	json_begin_object(&json);
	json_header(&json, source);
	json_counts(&json, source, facts);
	r = json_modules(&json, source, request, err);
	json_annotations(&json, source);
	json_end_object(&json);
	json_end_line(&json);
	return r;
}

static void print_header(struct out *out, const struct spulse_source *source,
			 const struct facts *facts)
{
	uint64_t interval = spulse_source_interval_ns(source);
	struct spulse_wall_time wall;
	char text[64];

	out_printf(out, "format       SPULSE%d, %s\n", (int)spulse_source_format(source),
		   spulse_source_recovered_from_truncated_tail(source)
			   ? "recovered: the file ends inside a record, which was left out"
			   : "complete");
	out_printf(out, "size         %s\n", text_bytes(text, facts->file_bytes));
	if (spulse_source_started_at(source, &wall)) {
		wall_text(&wall, text, sizeof(text));
		out_printf(out, "started      %s\n", text);
	}
	if (interval)
		out_printf(out, "interval     %s%s (%.0f samples per second of CPU time)\n",
			   interval == UINT64_MAX ? "at least " : "",
			   text_duration(text, interval), 1e9 / (double)interval);
	if (facts->has_time)
		out_printf(out, "duration     %s from first to last sample\n",
			   text_duration(text, facts->last_ns - facts->first_ns));
}

static void print_counts(struct out *out, const struct spulse_source *source,
			 const struct facts *facts)
{
	size_t frames, nodes, threads, processes, runtimes;
	char text[32];

	spulse_source_frames(source, &frames);
	spulse_source_stack_nodes(source, &nodes);
	spulse_source_threads(source, &threads);
	spulse_source_processes(source, &processes);
	spulse_source_python_runtimes(source, &runtimes);
	out_printf(out, "samples      %s\n", text_count(text, facts->samples));
	out_printf(out, "processes    %s\n", text_count(text, processes));
	out_printf(out, "threads      %s\n", text_count(text, threads));
	out_printf(out, "frames       %s distinct", text_count(text, frames));
	out_printf(out, ", %s of the kernel\n", text_count(text, facts->kernel_frames));
	out_printf(out, "stack nodes  %s\n", text_count(text, nodes));
	if (runtimes)
		out_printf(out, "python       %s records of runtimes with perf maps\n",
			   text_count(text, runtimes));
}

static void print_annotations(struct out *out, const struct spulse_source *source)
{
	const struct spulse_annotation *annotations;
	size_t count;

	annotations = spulse_source_annotations(source, &count);
	if (count)
		out_puts(out, "\nannotations\n");
	for (size_t i = 0; i < count; i++) {
		const struct spulse_annotation *annotation = &annotations[i];

		if (annotation->pid >= 0)
			out_printf(out, "  %-10d ", (int)annotation->pid);
		else
			out_puts(out, "  recording  ");
		out_line(out, annotation->key, strlen(annotation->key));
		out_puts(out, " = ");
		out_line(out, annotation->value, annotation->value_len);
		out_puts(out, "\n");
	}
}

static void print_modules(struct out *out, const struct spulse_source *source)
{
	size_t count = spulse_source_module_count(source);

	out_printf(out, "\nmodules      %zu\n", count);
	for (size_t i = 0; i < count; i++) {
		const struct spulse_module *module = spulse_source_module(source, i);

		if (spulse_module_is_kernel(module))
			out_puts(out, "  kernel     ");
		else
			out_printf(out, "  %-10d ", (int)spulse_module_pid(module));
		out_printf(out, "%12" PRIx64 "-%-16" PRIx64 " +%-8" PRIx64 " ",
			   spulse_module_start(module), spulse_module_end(module),
			   spulse_module_file_offset(module));
		out_line(out, spulse_module_path(module), spulse_module_path_len(module));
		out_puts(out, "\n");
	}
}

static bool same_file(const struct spulse_module *a, const struct spulse_module *b)
{
	return spulse_module_inode(a) == spulse_module_inode(b) &&
	       spulse_module_device_major(a) == spulse_module_device_major(b) &&
	       spulse_module_device_minor(a) == spulse_module_device_minor(b) &&
	       spulse_module_is_kernel(a) == spulse_module_is_kernel(b) &&
	       !strcmp(spulse_module_path(a), spulse_module_path(b));
}

/* Whether a module's file was met before; remembers it. */
static bool told_before(struct idmap *told, const struct spulse_source *source, size_t index)
{
	const struct spulse_module *module = spulse_source_module(source, index);
	uint64_t hash = text_hash(spulse_module_path(module), spulse_module_path_len(module));
	uint32_t first;
	int is_new;

	for (hash += spulse_module_inode(module);; hash++) {
		first = idmap_intern(told, hash, (uint32_t)index, &is_new);
		if (is_new)
			return false;
		if (same_file(spulse_source_module(source, first), module))
			return true;
	}
}

static void print_indented(struct out *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		out_puts(out, "    ");
		out_line(out, text, len);
		out_puts(out, "\n");
		text += len + (text[len] == '\n');
	}
}

/* How the names of every file are found; a file that several processes map is told once. */
static int print_symbols(struct out *out, const struct spulse_source *source,
			 const struct symopts *symopts, struct spulse_error **err)
{
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	size_t count = spulse_source_module_count(source);
	struct idmap told = {0};
	int r = symopts_open(symopts, source, &symbolizer, err);

	out_puts(out, "\nsymbols\n");
	for (size_t i = 0; r >= 0 && i < count && !out_stopped(out); i++) {
		const struct spulse_module *module = spulse_source_module(source, i);
		const char *text = NULL;

		if (told_before(&told, source, i))
			continue;
		r = spulse_symbolizer_module_report(symbolizer, i, &text, err);
		if (r < 0)
			break;
		out_puts(out, "  ");
		out_line(out, spulse_module_path(module), spulse_module_path_len(module));
		out_puts(out, "\n");
		print_indented(out, text);
	}
	idmap_release(&told);
	return r;
}

static int print_text(struct out *out, const struct spulse_source *source,
		      const struct facts *facts, const struct request *request,
		      struct spulse_error **err)
{
	print_header(out, source, facts);
	print_counts(out, source, facts);
	print_annotations(out, source);
	print_modules(out, source);
	return request->symbols ? print_symbols(out, source, &request->symopts, err) : 0;
}

static int show(const char *path, const struct request *request)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	struct spulse_error *err = NULL;
	const struct spulse_source *source;
	struct facts facts = {0};
	struct out *out;
	int r;

	if (spulse_replay_open(path, &replay, &err) < 0 || gather(replay, path, &facts, &err) < 0)
		return tool_fail(err);
	source = spulse_replay_source(replay);
	out = out_stdout();
	if (request->json)
		r = print_json(out, source, &facts, request, &err);
	else
		r = print_text(out, source, &facts, request, &err);
	return out_close(out, r < 0 ? tool_fail(err) : TOOL_DONE);
}

int cmd_info(int argc, char **argv)
{
	struct request request = {0};
	struct cli_option symbols[SYMOPTS_COUNT];
	const struct cli_option options[] = {
		{0, "json", CLI_FLAG, &request.json, NULL, .help = "One JSON object."},
		{0, "symbols", CLI_FLAG, &request.symbols, NULL,
		 .help = "Also say for each file how its names are found: which file and debug "
			 "file are used, what was tried and why it was refused."},
	};
	const struct cli_group groups[] = {
		CLI_GROUP("Options", options),
		CLI_GROUP("Names, for --symbols", symbols),
	};
	const struct cli_spec spec = {
		.command = "info",
		.usage = "[OPTION...] [FILE]",
		.about = "Shows what a recording holds: format, time, counts, what was recorded "
			 "and how, and modules. FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 2,
		.maximum_arguments = 1,
	};
	int status;

	symopts_options(&request.symopts, symbols);
	status = cli_parse(&spec, &argc, &argv);
	if (status != CLI_GO_ON)
		return status;
	return show(argc ? argv[0] : TOOL_DEFAULT_SPOOL, &request);
}

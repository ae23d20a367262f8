/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * From one version to the other. Records are the same in both but for modules: those that need no
 * change are copied as they are, so that every id and binding stays.
 */
#include "replay.h"
#include "writer.h"

struct converter {
	const struct spulse_source *source;
	struct sink sink;
	uint32_t format;
	uint32_t next_module;
	struct spulse_convert_report report;
	struct strbuf path; /* scratch */
};

/* Version 3 anchors its times at the first sample. */
static void header_to_3(struct converter *c, struct header *header)
{
	struct spulse_sample first = { .timestamp_ns = c->source->first_sample_ns };

	*header = (struct header){ .format = 3, .interval = c->source->header.interval / 1000 };
	c->report.interval_rounded = c->source->header.interval % 1000 != 0;
	if (!c->source->has_first_sample)
		header->start = spulse_source_start_timestamp_us(c->source);
	else if (!spulse_source_timestamp_us(c->source, &first, &header->start))
		header->start = 0;
	/* An anchor of 0 is none. */
	c->report.time_reduced = header->start != 0;
	c->report.time_lost = c->source->header.has_origin && !header->start;
}

static void header_to_4(struct converter *c, struct header *header)
{
	*header = (struct header){
		.format = 4,
		.interval = spulse_source_interval_ns(c->source),
		.monotonic_ns = c->source->first_sample_ns,
	};
	header->has_origin = spulse_source_started_at(c->source, &header->wall);
	c->report.interval_limited = header->interval / 1000 != c->source->header.interval;
}

static int convert_header(struct converter *c, struct spulse_error **err)
{
	struct header header = c->source->header;
	uint8_t bytes[HEADER_MAX];

	if (c->format == 3 && header.format == 4)
		header_to_3(c, &header);
	else if (c->format == 4 && header.format == 3)
		header_to_4(c, &header);
	return sink_put(&c->sink, bytes, put_header(bytes, &header) - bytes, err);
}

void spool_mend_path(struct strbuf *out, const char *path, size_t len)
{
	size_t i = 0, n;

	strbuf_reset(out);
	while (i < len) {
		for (n = MIN((size_t)4, len - i); n && !utf8_valid((const uint8_t *)path + i, n);)
			n--;
		if (n)
			strbuf_add(out, path + i, n);
		else
			strbuf_puts(out, "\xef\xbf\xbd");
		i += MAX(n, (size_t)1);
	}
}

/* A module of version 4 as version 3 can hold it. */
static int reduce_module(struct converter *c, const struct spulse_module *m,
			 struct spulse_error **err)
{
	struct spulse_module_fields fields = {
		.pid = m->pid,
		.is_kernel = m->is_kernel,
		.start = m->start,
		.end = m->end,
		.file_offset = m->file_offset,
		.inode = m->inode,
		.inode_generation = m->inode_generation,
		.device_major = m->device_major,
		.device_minor = m->device_minor,
		.path = m->path,
		.path_len = m->path_len,
	};

	if (!utf8_valid((const uint8_t *)m->path, m->path_len)) {
		spool_mend_path(&c->path, m->path, m->path_len);
		if (c->path.failed)
			return err_no_memory(err);
		fields.path = c->path.data;
		fields.path_len = c->path.len;
		c->report.paths_changed++;
	}
	c->report.jit_modules += m->is_jit;
	c->report.jit_symbols += m->symbol_count;
	return sink_put_module(&c->sink, TAG_MODULE, m->id, &fields, err);
}

static int convert_record(struct converter *c, const struct raw_record *raw,
			  struct spulse_error **err)
{
	const struct spulse_module *module;

	c->report.records++;
	c->report.samples += raw->tag == TAG_SAMPLE;
	if (raw->tag == TAG_MODULE || raw->tag == TAG_JIT_MODULE) {
		module = spulse_source_module_by_id(c->source, c->next_module++);
		if (c->format == 3 && module && c->source->header.format == 4)
			return reduce_module(c, module, err);
	}
	return sink_put(&c->sink, raw->bytes, raw->len, err);
}

static int convert_all(struct converter *c, struct stream *stream, struct spulse_error **err)
{
	struct raw_record raw;
	int r = convert_header(c, err);

	while (r == 0 && (r = stream_next_record(stream, &raw, err)) > 0)
		r = convert_record(c, &raw, err);
	return r < 0 ? r : sink_flush(&c->sink, err);
}

static int check_arguments(enum spulse_spool_format format, const struct spulse_output *output,
			   struct spulse_error **err)
{
	if (format != SPULSE_SPOOL_FORMAT_3 && format != SPULSE_SPOOL_FORMAT_4)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED,
			       "version %d of the spool format cannot be written, only 3 and 4",
			       (int)format);
	return sink_check_output(output, err);
}

int spulse_spool_convert(const struct spulse_replay *replay, enum spulse_spool_format format,
			 const struct spulse_output *output, void *data,
			 struct spulse_convert_report *report_out, struct spulse_error **err)
{
	struct converter c = { .source = &replay->source };
	struct stream *stream = NULL;
	int r;

	c.format = format == SPULSE_SPOOL_FORMAT_DEFAULT ? SPULSE_SPOOL_FORMAT_4 : format;
	r = check_arguments(c.format, output, err);
	if (r == 0)
		r = replay_all_records(replay, &stream, err);
	if (r == 0)
		r = sink_init(&c.sink, output, data) ? convert_all(&c, stream, err)
						     : err_no_memory(err);
	c.sink.output.close = NULL;
	sink_release(&c.sink);
	stream_free(stream);
	strbuf_release(&c.path);
	if (r == 0 && report_out) {
		c.report.size = MIN(report_out->size, sizeof(c.report));
		memcpy(report_out, &c.report, c.report.size);
	}
	return r;
}

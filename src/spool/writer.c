/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "writer.h"

#include "source.h"

static int invalid(struct spulse_error **err, const char *what)
{
	return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%s", what);
}

static int write_header(struct spulse_spool_writer *w, const struct spulse_spool_header *given,
			struct spulse_error **err)
{
	struct header header = {
		.format = w->format,
		.has_origin = given->has_clock_origin,
		.start = given->start_timestamp_us,
		.interval = given->interval,
		.monotonic_ns = given->monotonic_ns,
		.wall = given->wall,
	};
	uint8_t bytes[HEADER_MAX];

	return sink_put(&w->sink, bytes, put_header(bytes, &header) - bytes, err);
}

static int read_header(const struct spulse_spool_header *given,
		       struct spulse_spool_header *header, struct spulse_error **err)
{
	int r = options_read(header, sizeof(*header), given, "fields of the spool's header", err);

	if (r < 0)
		return r;
	if (header->format && header->format != 3 && header->format != 4)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED,
			       "version %u of the spool format cannot be written, only 3 and 4",
			       header->format);
	if (header->format == 3 && header->has_clock_origin)
		return invalid(err, "version 3 of the spool format has no clock origin");
	if (header->wall.nanoseconds >= 1000000000)
		return invalid(err, "the wall time's nanoseconds must be below a second");
	return 0;
}

int sink_check_output(const struct spulse_output *given, struct spulse_error **err)
{
	struct spulse_output output;
	int r = options_read(&output, sizeof(output), given, "functions of the output", err);

	if (r < 0)
		return r;
	return output.write ? 0 : invalid(err, "an output needs a write function");
}

int spulse_spool_writer_new(const struct spulse_output *output, void *data,
			    const struct spulse_spool_header *given,
			    struct spulse_spool_writer **writer_out, struct spulse_error **err)
{
	struct spulse_spool_header header;
	struct spulse_spool_writer *w;
	int r = sink_check_output(output, err);

	if (r == 0)
		r = read_header(given, &header, err);
	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_no_memory(err);
	w->format = header.format ? header.format : SPULSE_SPOOL_FORMAT_4;
	tree_init(&w->tree);
	if (!memo_init(&w->memo) || !sink_init(&w->sink, output, data))
		r = err_no_memory(err);
	else
		r = write_header(w, &header, err);
	if (r < 0) {
		/* The output stays the caller's when there is no writer. */
		w->sink.output.close = NULL;
		spulse_spool_writer_free(w);
		return r;
	}
	*writer_out = w;
	return 0;
}

void spulse_spool_writer_free(struct spulse_spool_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->thread_states.len; i++) {
		free(w->thread_states.data[i].frames);
		free(w->thread_states.data[i].nodes);
	}
	vec_free(&w->thread_states);
	u64map_release(&w->threads);
	vec_free(&w->modules);
	vec_free(&w->ids);
	vec_free(&w->numbers);
	vec_free(&w->packed);
	vec_free(&w->keys);
	frame_table_release(&w->frames);
	tree_release(&w->tree);
	memo_release(&w->memo);
	sink_release(&w->sink);
	free(w);
}

void spool_writer_limit_memo(struct spulse_spool_writer *w, size_t words)
{
	memo_limit(&w->memo, words);
}

uint64_t spool_writer_written(const struct spulse_spool_writer *w)
{
	return w->sink.written;
}

/* Unpinned frames capture which modules there are; version 4 tells kernel from user changes. */
static void forget(struct spulse_spool_writer *w, bool kernel)
{
	frame_table_forget(&w->frames, kernel || w->format == 3);
}

static int read_module(const struct spulse_spool_writer *w,
			const struct spulse_module_fields *given,
			struct spulse_module_fields *fields, struct spulse_error **err)
{
	int r = options_read(fields, sizeof(*fields), given, "fields of the module", err);

	if (r < 0)
		return r;
	if (!fields->is_kernel && fields->pid < 1)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process id %d is not positive",
			       (int)fields->pid);
	if (w->format == 3 && !utf8_valid((const uint8_t *)fields->path, fields->path_len))
		return invalid(err, "version 3 of the spool format holds UTF-8 paths only");
	if (w->modules.len >= UINT32_MAX)
		return invalid(err, "the spool is full: no module ids are left");
	return 0;
}

/* After the record was written. */
static void note_module(struct spulse_spool_writer *w, const struct spulse_module_fields *m,
			uint32_t *id_out)
{
	*id_out = w->modules.len;
	w->modules.data[w->modules.len++] = (struct written_module){
		.file_offset = m->file_offset,
		.size = m->end > m->start ? m->end - m->start : 0,
		.is_kernel = m->is_kernel,
	};
	if (!annotation_shaped(m->start, m->end, m->file_offset, m->inode, m->path, m->path_len))
		forget(w, m->is_kernel);
}

int spulse_spool_writer_module(struct spulse_spool_writer *w,
			       const struct spulse_module_fields *given, uint32_t *id_out,
			       struct spulse_error **err)
{
	struct spulse_module_fields fields;
	int r = read_module(w, given, &fields, err);

	if (r < 0)
		return r;
	if (!vec_reserve(&w->modules, 1))
		return err_no_memory(err);
	r = sink_put_module(&w->sink, TAG_MODULE, w->modules.len, &fields, err);
	if (r == 0)
		note_module(w, &fields, id_out);
	return r;
}

static int check_symbols(const struct spulse_module_fields *m,
			 const struct spulse_jit_symbol *symbols, size_t count,
			 struct spulse_error **err)
{
	uint64_t previous = 0;

	if (m->is_kernel)
		return invalid(err, "a JIT module cannot be a kernel module");
	if (count > JIT_SYMBOL_MAX)
		return invalid(err, "a JIT module holds at most 1000000 symbols");
	for (size_t i = 0; i < count; i++) {
		const struct spulse_jit_symbol *s = &symbols[i];

		if (s->start >= s->end || s->start < m->start || s->end > m->end ||
		    s->start < previous)
			return invalid(err, "JIT symbols must have ranges within their module, in "
				       "order of their starts");
		if (s->name_len > JIT_NAME_MAX ||
		    !utf8_valid((const uint8_t *)s->name, s->name_len))
			return invalid(err, "a JIT symbol's name must be UTF-8 of at most 1 MiB");
		previous = s->start;
	}
	return 0;
}

static int put_symbols(struct spulse_spool_writer *w, const struct spulse_jit_symbol *symbols,
		       size_t count, struct spulse_error **err)
{
	uint8_t head[3 * VARINT_MAX], *p = varint_put(head, count);
	int r = sink_put(&w->sink, head, p - head, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		p = varint_put(head, symbols[i].start);
		p = varint_put(p, symbols[i].end);
		p = varint_put(p, symbols[i].name_len);
		r = sink_put(&w->sink, head, p - head, err);
		if (r == 0)
			r = sink_put(&w->sink, symbols[i].name, symbols[i].name_len, err);
	}
	return r;
}

int spulse_spool_writer_jit_module(struct spulse_spool_writer *w,
				   const struct spulse_module_fields *given,
				   const struct spulse_jit_symbol *symbols, size_t count,
				   uint32_t *id_out, struct spulse_error **err)
{
	struct spulse_module_fields fields;
	int r = read_module(w, given, &fields, err);

	if (r == 0)
		r = check_symbols(&fields, symbols, count, err);
	if (r < 0)
		return r;
	if (w->format < 4)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED,
			       "version 3 of the spool format has no JIT modules");
	if (!vec_reserve(&w->modules, 1))
		return err_no_memory(err);
	r = sink_put_module(&w->sink, TAG_JIT_MODULE, w->modules.len, &fields, err);
	if (r == 0)
		r = put_symbols(w, symbols, count, err);
	if (r == 0)
		note_module(w, &fields, id_out);
	return r;
}

static int put_retirement(struct spulse_spool_writer *w, uint8_t tag, uint64_t number,
			  struct spulse_error **err)
{
	uint8_t *p = sink_room(&w->sink, err);

	if (!p)
		return -(int)spulse_error_kind(w->sink.failed);
	*p++ = tag;
	sink_used(&w->sink, varint_put(p, number));
	return 0;
}

int spulse_spool_writer_retire_module(struct spulse_spool_writer *w, uint32_t id,
				      struct spulse_error **err)
{
	int r;

	if (id >= w->modules.len)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no module %u", id);
	r = put_retirement(w, TAG_RETIRE_MODULE, id, err);
	if (r < 0)
		return r;
	forget(w, w->modules.data[id].is_kernel && !w->modules.data[id].is_retired);
	w->modules.data[id].is_retired = true;
	return 0;
}

int spulse_spool_writer_retire_process(struct spulse_spool_writer *w, pid_t pid,
				       struct spulse_error **err)
{
	int r;

	if (pid < 1)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process id %d is not positive",
			       (int)pid);
	r = put_retirement(w, TAG_RETIRE_PROCESS, zigzag(pid), err);
	if (r == 0)
		forget(w, false);
	return r;
}

int spulse_spool_writer_python_runtime(struct spulse_spool_writer *w,
				       const struct spulse_python_runtime *record,
				       struct spulse_error **err)
{
	uint8_t *p;

	if (record->pid < 1)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process id %d is not positive",
			       (int)record->pid);
	p = sink_room(&w->sink, err);
	if (!p)
		return -(int)spulse_error_kind(w->sink.failed);
	*p++ = TAG_PYTHON_RUNTIME;
	p = varint_put(p, record->timestamp_ns);
	p = varint_put(p, zigzag(record->pid));
	*p++ = record->is_python != 0;
	sink_used(&w->sink, p);
	return 0;
}

static bool pinned_fits(const struct spulse_spool_writer *w, const struct spulse_frame *frame)
{
	const struct written_module *m;

	if (frame->module_id >= w->modules.len)
		return false;
	m = &w->modules.data[frame->module_id];
	return frame->file_relative_ip >= m->file_offset &&
	       frame->file_relative_ip - m->file_offset < m->size;
}

static struct frame_key key_of(const struct spulse_spool_writer *w,
			       const struct spulse_frame *frame)
{
	if (frame->mode == SPULSE_FRAME_TRUNCATED)
		return (struct frame_key){ FRAME_KIND_MARKER, 0 };
	/* What its module cannot hold goes out by its address alone. */
	if (pinned_fits(w, frame))
		return (struct frame_key){ (uint64_t)frame->module_id << 1,
					   frame->file_relative_ip };
	return (struct frame_key){ frame->mode == SPULSE_FRAME_KERNEL ? FRAME_KIND_KERNEL
								      : FRAME_KIND_USER,
				   frame->abs_ip };
}

uint32_t spool_writer_intern(struct spulse_spool_writer *w, const struct spulse_frame *frame)
{
	return frame_table_intern(&w->frames, key_of(w, frame));
}

int spool_writer_sample(struct spulse_spool_writer *w, const struct spulse_sample *sample,
			const uint32_t *frames, size_t count, struct spulse_error **err)
{
	struct memo_key key = memo_key(frames, count, KEY_NUMBERS);
	int r = writer_put_known(w, sample, &key, err);

	if (r)
		return MIN(r, 0);
	for (size_t i = 0; i < count; i++)
		if (frames[i] >= w->frames.slots.len)
			return invalid(err, "a frame's number was not given out by the writer");
	return writer_put_sample(w, sample, frames, count, &key, err);
}

/*
 * A frame in one word, so that different frames give different words; UINT64_MAX for the rare one
 * that does not fit.
 */
static uint64_t pack_frame(const struct spulse_frame *frame)
{
	enum { MODULE_BITS = 18, ADDRESS_BITS = 62 - MODULE_BITS };
	uint64_t ip = frame->abs_ip;

	if (frame->mode == SPULSE_FRAME_TRUNCATED)
		return (uint64_t)3 << 62;
	if (frame->mode > SPULSE_FRAME_TRUNCATED)
		return UINT64_MAX;
	if (frame->module_id != SPULSE_NO_MODULE)
		return frame->module_id >> MODULE_BITS || frame->file_relative_ip >> ADDRESS_BITS
			       ? UINT64_MAX
			       : (uint64_t)frame->module_id << ADDRESS_BITS |
					 frame->file_relative_ip;
	if (frame->mode == SPULSE_FRAME_KERNEL)
		return ip >> 62 == 3 ? ip ^ (uint64_t)1 << 62 : UINT64_MAX;
	return ip >> 62 ? UINT64_MAX : (uint64_t)1 << 62 | ip;
}

/* The key of a stack, whose words are scratch; false when there is none. */
static bool pack_stack(struct spulse_spool_writer *w, const struct spulse_frame *frames,
		       size_t count, struct memo_key *key)
{
	bool fits = true;

	for (size_t i = 0; i < count; i++) {
		w->packed.data[i] = pack_frame(&frames[i]);
		fits &= w->packed.data[i] != UINT64_MAX;
	}
	if (fits)
		*key = memo_key((const uint32_t *)w->packed.data, 2 * count, KEY_PACKED);
	return fits;
}

static int intern_stack(struct spulse_spool_writer *w, const struct spulse_frame *frames,
			size_t count, struct spulse_error **err)
{
	for (size_t i = 0; i < count; i++) {
		if (frames[i].mode > SPULSE_FRAME_TRUNCATED)
			return invalid(err, "a frame's mode is none of those known");
		if (frames[i].module_id != SPULSE_NO_MODULE && !pinned_fits(w, &frames[i]))
			return invalid(err, "a frame's address is outside of its module");
		w->keys.data[i] = key_of(w, &frames[i]);
	}
	return frame_table_intern_all(&w->frames, w->keys.data, count, w->numbers.data)
		       ? 0
		       : err_no_memory(err);
}

int spulse_spool_writer_sample(struct spulse_spool_writer *w, const struct spulse_sample *sample,
			       const struct spulse_frame *frames, size_t count,
			       struct spulse_error **err)
{
	struct memo_key key;
	bool has_key;
	int r = 0;

	w->numbers.len = w->packed.len = w->keys.len = 0;
	if (!vec_reserve(&w->numbers, count) || !vec_reserve(&w->packed, count) ||
	    !vec_reserve(&w->keys, count))
		return err_no_memory(err);
	has_key = pack_stack(w, frames, count, &key);
	if (has_key)
		r = writer_put_known(w, sample, &key, err);
	if (r)
		return MIN(r, 0);
	r = intern_stack(w, frames, count, err);
	return r < 0 ? r : writer_put_sample(w, sample, w->numbers.data, count,
					     has_key ? &key : NULL, err);
}

int spulse_spool_writer_flush(struct spulse_spool_writer *w, struct spulse_error **err)
{
	return sink_flush(&w->sink, err);
}

int spulse_spool_writer_finish(struct spulse_spool_writer *w, struct spulse_error **err)
{
	return sink_flush(&w->sink, err);
}

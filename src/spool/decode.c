/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "decode.h"

#include <inttypes.h>

/* Checks run field by field in the order of the file: which one fails first decides whether a
 * file that is both bad and cut off counts as corrupt or as cut off. */

enum { NO_MEMORY = -2 };

static int bad_id(struct cursor *c, const char *what, uint64_t found, size_t expected)
{
	return cursor_bad(c, "%s id %" PRIu64 ", expected %zu", what, found, expected);
}

static int get_dense(struct cursor *c, size_t expected, const char *what)
{
	uint64_t id;

	TRY(get_uv(c, &id));
	if (id != expected)
		return bad_id(c, what, id, expected);
	return expected < UINT32_MAX ? FIELD_OK : cursor_bad(c, "more than 2^32-1 %ss", what);
}

static int get_ref(struct cursor *c, size_t count, const char *what, uint32_t *id)
{
	uint64_t value;

	TRY(get_uv(c, &value));
	if (value >= count)
		return cursor_bad(c, "refers to %s %" PRIu64 ", expected less than %zu, which is "
				     "how many there are so far", what, value, count);
	*id = value;
	return FIELD_OK;
}

static int get_u32(struct cursor *c, const char *what, uint32_t *number)
{
	uint64_t value;

	TRY(get_uv(c, &value));
	if (value > UINT32_MAX)
		return cursor_bad(c, "%s %" PRIu64 ", expected at most 4294967295", what, value);
	*number = value;
	return FIELD_OK;
}

static int kept(bool ok)
{
	return ok ? FIELD_OK : NO_MEMORY;
}

static int get_path(struct cursor *c, struct decoder *d, struct spulse_module *m)
{
	const uint8_t *bytes;
	uint64_t len;

	TRY(get_uv(c, &len));
	TRY(get_bytes(c, len, &bytes));
	if (d->source->header.format == 3 && !utf8_valid(bytes, len))
		return cursor_bad(c, "the module's path of %" PRIu64 " bytes is not UTF-8", len);
	m->path = (const char *)bytes;
	m->path_len = len;
	return FIELD_OK;
}

static int get_module(struct cursor *c, struct decoder *d, struct spulse_module *m)
{
	int64_t pid;
	uint8_t flag;

	TRY(get_dense(c, d->source->modules.len, "module"));
	TRY(get_sv(c, &pid));
	if (pid < INT32_MIN || pid > INT32_MAX)
		return cursor_bad(c, "process id %" PRId64 ", expected 32 bits", pid);
	TRY(get_uv(c, &m->start));
	TRY(get_uv(c, &m->end));
	TRY(get_uv(c, &m->file_offset));
	TRY(get_uv(c, &m->inode));
	TRY(get_u32(c, "major device number", &m->device_major));
	TRY(get_u32(c, "minor device number", &m->device_minor));
	TRY(get_uv(c, &m->inode_generation));
	TRY(get_byte(c, &flag));
	m->is_kernel = flag != 0;
	if (!flag && pid < 1)
		return cursor_bad(c, "process id %" PRId64 " of a user module, expected at least 1",
				  pid);
	m->pid = flag ? -1 : (pid_t)pid;
	return get_path(c, d, m);
}

static int decode_module(struct cursor *c, struct decoder *d)
{
	struct spulse_module module = { 0 };

	TRY(get_module(c, d, &module));
	d->pid = module.is_kernel ? 0 : module.pid;
	d->id = d->source->modules.len;
	return kept(source_add_module(d->source, &module));
}

static int get_jit_symbol(struct cursor *c, const struct spulse_module *m, uint64_t previous,
			  struct spulse_jit_symbol *symbol)
{
	const uint8_t *bytes;
	uint64_t len;

	TRY(get_uv(c, &symbol->start));
	TRY(get_uv(c, &symbol->end));
	if (symbol->start >= symbol->end || symbol->start < m->start || symbol->end > m->end)
		return cursor_bad(c, "symbol 0x%" PRIx64 "-0x%" PRIx64 ", expected a range within "
				     "0x%" PRIx64 "-0x%" PRIx64,
				  symbol->start, symbol->end, m->start, m->end);
	TRY(get_uv(c, &len));
	if (len > JIT_NAME_MAX)
		return cursor_bad(c, "symbol name of %" PRIu64 " bytes, expected at most %d", len,
				  JIT_NAME_MAX);
	TRY(get_bytes(c, len, &bytes));
	if (!utf8_valid(bytes, len))
		return cursor_bad(c, "a symbol's name is not UTF-8");
	if (symbol->start < previous)
		return cursor_bad(c, "symbol at 0x%" PRIx64 ", expected 0x%" PRIx64 " or above",
				  symbol->start, previous);
	symbol->name = (const char *)bytes;
	symbol->name_len = len;
	return FIELD_OK;
}

/* Walks the symbols without keeping them: most of a record's bytes may still be missing. */
static int check_jit_symbols(struct cursor *c, const struct spulse_module *m, uint32_t count)
{
	struct spulse_jit_symbol symbol = { 0 };

	for (uint32_t i = 0; i < count; i++)
		TRY(get_jit_symbol(c, m, symbol.start, &symbol));
	return FIELD_OK;
}

static int keep_jit_symbols(struct cursor *c, struct decoder *d, struct spulse_module *m)
{
	struct spulse_jit_symbol *symbol;

	m->symbols = malloc(m->symbol_count * sizeof(*m->symbols));
	if (!m->symbols && m->symbol_count)
		return NO_MEMORY;
	for (uint32_t i = 0; i < m->symbol_count; i++) {
		symbol = &m->symbols[i];
		TRY(get_jit_symbol(c, m, 0, symbol));
		symbol->name = symbol->name_len ? arena_strndup(&d->source->arena, symbol->name,
								symbol->name_len)
						: "";
		if (!symbol->name)
			return NO_MEMORY;
	}
	return FIELD_OK;
}

static int decode_jit_module(struct cursor *c, struct decoder *d)
{
	struct spulse_module module = { .is_jit = true };
	struct cursor again;
	uint64_t count;

	TRY(get_module(c, d, &module));
	TRY(get_uv(c, &count));
	if (count > JIT_SYMBOL_MAX)
		return cursor_bad(c, "%" PRIu64 " symbols, expected at most %d", count,
				  JIT_SYMBOL_MAX);
	if (module.is_kernel)
		return cursor_bad(c, "a JIT module is marked as a kernel module");
	module.symbol_count = count;
	again = *c;
	TRY(check_jit_symbols(c, &module, count));
	d->pid = module.pid;
	d->id = d->source->modules.len;
	if (keep_jit_symbols(&again, d, &module) == FIELD_OK &&
	    source_add_module(d->source, &module))
		return FIELD_OK;
	free(module.symbols);
	return NO_MEMORY;
}

static int get_pinned(struct cursor *c, struct decoder *d, uint64_t id, uint64_t value,
		      struct spulse_frame *frame)
{
	const struct spulse_module *m;

	if (id >= d->source->modules.len)
		return cursor_bad(c, "refers to module %" PRIu64 ", expected less than %zu", id,
				  d->source->modules.len);
	m = d->source->modules.data[id];
	if (!source_pin(m, value, frame))
		return cursor_bad(c, "frame at 0x%" PRIx64 ", expected an address of module %"
				     PRIu64 ", which has 0x%" PRIx64 " bytes from 0x%" PRIx64 " on",
				  value, id, m->end < m->start ? 0 : m->end - m->start,
				  m->file_offset);
	return FIELD_OK;
}

static int decode_frame(struct cursor *c, struct decoder *d)
{
	struct spulse_frame frame;
	uint64_t kind, value;

	TRY(get_dense(c, d->source->frames.len, "frame"));
	TRY(get_uv(c, &kind));
	TRY(get_uv(c, &value));
	if (kind == FRAME_KIND_MARKER) {
		if (value)
			return cursor_bad(c, "a truncation marker has the value %" PRIu64
					     ", expected 0", value);
		frame = spulse_frame_truncated_marker();
	} else if (kind & 1) {
		frame = (struct spulse_frame){
			.file_relative_ip = value,
			.abs_ip = value,
			.module_id = SPULSE_NO_MODULE,
			.mode = kind & 2 ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER,
		};
	} else {
		TRY(get_pinned(c, d, kind >> 1, value, &frame));
	}
	d->id = d->source->frames.len;
	return kept(source_add_frame(d->source, &frame));
}

static int decode_node(struct cursor *c, struct decoder *d)
{
	uint64_t prefix;
	uint32_t frame = 0;

	TRY(get_dense(c, d->source->nodes.len, "stack node"));
	TRY(get_uv(c, &prefix));
	if (prefix != NODE_ROOT && prefix >= d->source->nodes.len)
		return cursor_bad(c, "refers to stack node %" PRIu64 ", expected less than %zu or "
				     "4294967295 for a root", prefix, d->source->nodes.len);
	TRY(get_ref(c, d->source->frames.len, "frame", &frame));
	d->id = d->source->nodes.len;
	return kept(source_add_node(d->source, prefix, frame));
}

static int decode_thread(struct cursor *c, struct decoder *d)
{
	uint64_t tid;
	pid_t pid;

	TRY(get_dense(c, d->source->threads.len, "thread"));
	TRY(get_pid(c, &pid));
	TRY(get_uv(c, &tid));
	if (tid < 1 || tid > INT32_MAX)
		return cursor_bad(c, "thread id %" PRIu64 ", expected 1 to 2147483647", tid);
	d->id = d->source->threads.len;
	return kept(source_add_thread(d->source, (struct spulse_thread){ pid, tid }));
}

static int decode_sample(struct cursor *c, struct decoder *d)
{
	struct raw_sample sample;
	int64_t delta;

	TRY(get_sv(c, &delta));
	if (add_overflows(d->last_ns, delta, &sample.timestamp_ns))
		return cursor_bad(c, "time moves by %" PRId64 " ns from %" PRIu64
				     ", expected to stay within 0 and 2^64-1", delta, d->last_ns);
	TRY(get_ref(c, d->source->threads.len, "thread", &sample.thread));
	TRY(get_ref(c, d->source->nodes.len, "stack node", &sample.node));
	d->sample = sample;
	d->last_ns = sample.timestamp_ns;
	return FIELD_OK;
}

static int decode_python(struct cursor *c, struct decoder *d)
{
	struct spulse_python_runtime record = { 0 };
	uint8_t flag;

	TRY(get_uv(c, &record.timestamp_ns));
	TRY(get_pid(c, &record.pid));
	TRY(get_byte(c, &flag));
	record.is_python = flag != 0;
	d->pid = record.pid;
	d->id = d->source->pythons.len;
	return kept(source_add_python(d->source, &record));
}

static int decode_retire_process(struct cursor *c, struct decoder *d)
{
	TRY(get_pid(c, &d->pid));
	return kept(source_retire_process(d->source, d->pid));
}

static int decode_retire_module(struct cursor *c, struct decoder *d)
{
	const struct spulse_module *module;

	TRY(get_ref(c, d->source->modules.len, "module", &d->id));
	module = d->source->modules.data[d->id];
	d->pid = module->is_kernel ? 0 : module->pid;
	source_retire_module(d->source, d->id);
	return FIELD_OK;
}

static int decode_record(struct cursor *c, struct decoder *d, int tag)
{
	d->pid = 0;
	switch (tag) {
	case TAG_MODULE:
		return decode_module(c, d);
	case TAG_FRAME:
		return decode_frame(c, d);
	case TAG_STACK_NODE:
		return decode_node(c, d);
	case TAG_THREAD:
		return decode_thread(c, d);
	case TAG_SAMPLE:
		return decode_sample(c, d);
	case TAG_PYTHON_RUNTIME:
		return decode_python(c, d);
	case TAG_RETIRE_PROCESS:
		return decode_retire_process(c, d);
	case TAG_RETIRE_MODULE:
		return decode_retire_module(c, d);
	case TAG_JIT_MODULE:
		if (d->source->header.format >= 4)
			return decode_jit_module(c, d);
		break;
	}
	return cursor_bad(c, "unknown record tag %d, expected 1 to %d", tag,
			  d->source->header.format >= 4 ? 9 : 8);
}

static void cursor_at(struct cursor *c, const struct decoder *d)
{
	c->p = d->p;
	c->end = d->end;
	c->end_offset = input_end(&d->in);
	c->limit = d->in.limit;
	c->past_limit = false;
}

/* Reads more of the file, from d->p on. */
static int more(struct decoder *d, struct spulse_error **err)
{
	uint64_t offset = decode_offset(d);
	int tag = offset && d->p < d->end ? *d->p : -1;
	int r = input_more(&d->in, d->p - d->in.buf, err);

	d->p = d->in.buf;
	d->end = input_window_end(&d->in);
	return r < 0 ? err_locate(err, r, tag, offset) : 0;
}

static int corrupt(const struct decoder *d, const struct cursor *c, int tag,
		   struct spulse_error **err)
{
	uint64_t offset = decode_offset(d);

	return err_corrupt(err, d->source->path, tag, offset,
			   "corrupt spool: record with tag %d at offset %" PRIu64 ": %s", tag,
			   offset, c->problem);
}

int decode_slow(struct decoder *d, struct spulse_error **err)
{
	struct cursor c;
	int r, tag;

	d->record_offset = decode_offset(d);
	if (decode_plain(d)) {
		d->pid = 0;
		return TAG_STACK_NODE;
	}
	for (;;) {
		bool complete = input_end(&d->in) == d->in.limit;

		if (d->p == d->end) {
			if (complete)
				return DECODE_END;
		} else {
			tag = *d->p;
			cursor_at(&c, d);
			c.p++;
			r = decode_record(&c, d, tag);
			if (r == FIELD_OK) {
				d->p = c.p;
				return tag;
			}
			if (r == NO_MEMORY)
				return err_no_memory(err);
			if (r == FIELD_BAD)
				return corrupt(d, &c, tag, err);
			if (complete || c.past_limit)
				return DECODE_CUT;
		}
		r = more(d, err);
		if (r < 0)
			return r;
	}
}

static int open_header(struct decoder *d, struct spulse_error **err)
{
	const char *path = d->source->path;
	struct cursor c;
	int r;

	r = more(d, err);
	if (r < 0)
		return r;
	cursor_at(&c, d);
	r = get_header(&c, &d->source->header);
	if (r == FIELD_CUT)
		return err_corrupt(err, path, -1, decode_offset(d),
				   "corrupt spool: the header is cut off after %" PRIu64 " bytes",
				   d->in.limit);
	if (r == FIELD_BAD)
		return err_corrupt(err, path, -1, 0, "corrupt spool: header: %s", c.problem);
	d->p = c.p;
	return 0;
}

int decode_open(struct decoder *d, int fd, uint64_t limit, struct spulse_source *source,
		struct spulse_error **err)
{
	d->in.fd = fd;
	d->in.path = source->path;
	d->in.limit = limit;
	d->source = source;
	return open_header(d, err);
}

void decode_set_limit(struct decoder *d, uint64_t limit)
{
	uint64_t at = decode_offset(d);

	d->in.limit = limit;
	d->in.base = at;
	d->in.len = 0;
	d->p = d->end = d->in.buf;
}

void decode_release(struct decoder *d)
{
	input_release(&d->in);
}

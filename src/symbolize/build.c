/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Resolved frames out of what was found. Every function returns false when memory ran out. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer.h"

static const char off_cpu_path[] = "[off-cpu]";

static bool new_frame(struct spulse_symbolizer *sym, const struct pending *p, uint32_t *first_out,
		      struct spulse_resolved_frame **frame_out)
{
	if (!frame_run_new(sym->frames, 1, first_out))
		return false;
	*frame_out = frame_at(sym->frames, *first_out);
	(*frame_out)->pc = p->frame->abs_ip;
	return true;
}

static bool build_marker(struct spulse_symbolizer *sym, const struct pending *p,
			 uint32_t *first_out)
{
	static const char name[] = "<stack truncated>";
	struct spulse_resolved_frame *frame;

	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->pc = 0;
	frame->flags = SPULSE_FRAME_TRUNCATED_STACK;
	return frame_set_name(frame, name, strlen(name));
}

static bool build_bare(struct spulse_symbolizer *sym, const struct pending *p, uint32_t *first_out)
{
	struct spulse_resolved_frame *frame;

	return new_frame(sym, p, first_out, &frame);
}

/* A text of a backend's answer as one of our strings, with a reference; NULL without memory. */
static const char *pooled(struct spulse_symbolizer *sym, const char *text, size_t len)
{
	struct text_memo *memo = &sym->texts[hash_u64((uintptr_t)text) % TEXT_MEMO];
	const char *found;

	if (memo->from == text && memo->call == sym->texts_call && strpool_len(memo->pooled) == len)
		return strpool_ref(memo->pooled);
	found = strpool_get(&sym->frames->strings, text, len);
	if (found)
		*memo = (struct text_memo){ text, found, sym->texts_call };
	return found;
}

static const char *pooled_text(struct spulse_symbolizer *sym, const char *text)
{
	struct text_memo *memo = &sym->texts[hash_u64((uintptr_t)text) % TEXT_MEMO];

	if (memo->from == text && memo->call == sym->texts_call)
		return strpool_ref(memo->pooled);
	return pooled(sym, text, strlen(text));
}

static bool set_file(struct spulse_resolved_frame *frame, const char *file, size_t len)
{
	frame->file = strpool_get(&frame->store->strings, file, len);
	return frame->file;
}

static bool build_perf_map(struct spulse_symbolizer *sym, const struct pending *p,
			   uint32_t *first_out)
{
	const struct perfmap_entry *entry = &p->entry;
	const char *path = perfmap_path(p->process->map);
	struct spulse_resolved_frame *frame;

	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->origin = SPULSE_ORIGIN_PERF_MAP;
	frame->flags = SPULSE_FRAME_JIT;
	if (entry->python) {
		frame->kind = SPULSE_FRAME_KIND_PYTHON;
		return frame_set_name(frame, entry->function.bytes, entry->function.len) &&
		       set_file(frame, entry->file.bytes, entry->file.len);
	}
	frame->kind = SPULSE_FRAME_KIND_NATIVE;
	frame->offset = p->frame->abs_ip - entry->start;
	return frame_set_name(frame, entry->name.bytes, entry->name.len) &&
	       frame_set_module(frame, path, strlen(path));
}

static bool build_jit(struct spulse_symbolizer *sym, const struct pending *p, uint32_t *first_out)
{
	const char *path = spulse_module_path(p->module);
	struct spulse_resolved_frame *frame;
	char name[32];

	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->kind = SPULSE_FRAME_KIND_NATIVE;
	frame->origin = SPULSE_ORIGIN_JIT;
	frame->flags = SPULSE_FRAME_JIT;
	if (!frame_set_module(frame, path, strlen(path)))
		return false;
	if (p->jit) {
		frame->offset = p->frame->abs_ip - p->jit->start;
		return frame_set_name(frame, p->jit->name, p->jit->name_len);
	}
	snprintf(name, sizeof(name), "<0x%llx>", (unsigned long long)p->frame->abs_ip);
	return frame_set_name(frame, name, strlen(name));
}

/* Path without " (deleted)", its last part, and whether that is a Python interpreter. */
struct module_text {
	const char *path;
	size_t len;
	const char *name;
	size_t name_len;
	bool python;
};

/*
 * A path may be of any length in a recording, but frames repeat it: what is longer than any real
 * one is cut, and only the end of a longer last part is shown.
 */
static void find_name(struct module_text *text)
{
	size_t tail = MIN(text->len, (size_t)NAME_MAX + 1);
	const char *end = text->path + text->len, *slash = memrchr(end - tail, '/', tail);

	text->name = slash ? slash + 1 : end - MIN(tail, (size_t)NAME_MAX);
	text->name_len = end - text->name;
	text->len = MIN(text->len, (size_t)PATH_MAX);
}

static struct module_text module_text_of(const struct spulse_module *module)
{
	static const char deleted[] = " (deleted)";
	struct module_text text = { spulse_module_path(module), spulse_module_path_len(module),
				    NULL, 0, false };

	if (text.len >= sizeof(deleted) - 1 &&
	    !memcmp(text.path + text.len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		text.len -= sizeof(deleted) - 1;
	find_name(&text);
	text.python = codemap_is_python_basename(text.name, text.name_len);
	return text;
}

/* In the file, as the frame's own address is; UINT64_MAX unknown. */
static uint64_t function_start(struct spulse_symbolizer *sym, const struct pending *p)
{
	const struct native_place place = { p->lookup.module, p->lookup.image_address };
	uint64_t start;

	if (!p->has_lookup || !native_is_builtin(sym->backend) || !place.module->image ||
	    !native_store_function_start(sym->store, &place, &start) ||
	    place.image_address - start > p->file_relative_ip)
		return UINT64_MAX;
	return p->file_relative_ip - (place.image_address - start);
}

/* A module without a symbol there: "BASENAME+0xOFFSET". */
static bool build_offset(struct spulse_symbolizer *sym, const struct pending *p,
			 uint32_t *first_out)
{
	struct module_text text = module_text_of(p->module);
	struct spulse_resolved_frame *frame;
	struct strbuf name = { 0 };
	bool done;

	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->kind = SPULSE_FRAME_KIND_NATIVE;
	frame->function_start = function_start(sym, p);
	if (text.python) {
		frame->flags = SPULSE_FRAME_PYTHON_RUNTIME | SPULSE_FRAME_HIDDEN_DEFAULT;
		frame->should_ignore = true;
	}
	strbuf_add(&name, text.name, text.name_len);
	strbuf_printf(&name, "+0x%llx", (unsigned long long)p->file_relative_ip);
	frame->module = pooled(sym, text.path, text.len);
	done = frame->module && !name.failed && frame_set_name(frame, name.data, name.len);
	strbuf_release(&name);
	return done;
}

static int32_t known_or_minus(uint32_t value)
{
	return value && value <= INT32_MAX ? (int32_t)value : -1;
}

static bool fill_native(struct spulse_symbolizer *sym, struct spulse_resolved_frame *frame,
			const struct pending *p, const struct spulse_native_symbol *symbol,
			const struct module_text *text)
{
	frame->pc = p->frame->abs_ip;
	frame->kind = SPULSE_FRAME_KIND_NATIVE;
	frame->origin = SPULSE_ORIGIN_ELF;
	frame->offset = symbol->offset;
	frame->line = known_or_minus(symbol->line);
	frame->column = known_or_minus(symbol->column);
	frame->function_line = known_or_minus(symbol->function_start_line);
	frame->function_column = known_or_minus(symbol->function_start_column);
	if (text->python)
		frame->flags |= SPULSE_FRAME_PYTHON_RUNTIME;
	if (symbol->flags & SPULSE_SYMBOL_HIDDEN) {
		frame->flags |= SPULSE_FRAME_HIDDEN_DEFAULT;
		frame->should_ignore = true;
	}
	frame->name = pooled_text(sym, symbol->name);
	if (symbol->suffix)
		frame->suffix = pooled_text(sym, symbol->suffix);
	if (symbol->file)
		frame->file = pooled_text(sym, symbol->file);
	frame->module = symbol->module ? pooled_text(sym, symbol->module) :
					 pooled(sym, text->name, text->name_len);
	return frame->name && frame->module && !frame->suffix == !symbol->suffix &&
	       !frame->file == !symbol->file;
}

/* One frame for each level; the outermost function has depth 0. */
static bool build_native(struct spulse_symbolizer *sym, const struct pending *p,
			 const struct spulse_native_results *results, uint32_t at,
			 unsigned int levels, uint32_t *first_out)
{
	struct module_text text = module_text_of(p->module);

	levels = MIN(levels, (unsigned int)RUN_MAX);
	if (!frame_run_new(sym->frames, levels, first_out))
		return false;
	for (unsigned int i = 0; i < levels; i++, at = results->entries.data[at].next) {
		struct spulse_resolved_frame *frame = frame_at(sym->frames, *first_out + i);

		frame->inline_depth = levels - 1 - i;
		if (!fill_native(sym, frame, p, &results->entries.data[at].symbol, &text))
			return false;
	}
	return true;
}

static unsigned int count_levels(const struct spulse_native_results *results, uint32_t at)
{
	unsigned int n = 0;

	for (; at != UINT32_MAX && n < RUN_MAX; at = results->entries.data[at].next)
		n++;
	return n;
}

/* With the lines and inlined calls that its image has; its name is the one the kernel tells. */
static bool build_kernel_levels(struct spulse_symbolizer *sym, const struct pending *p,
				const struct kernel_hit *hit,
				const struct spulse_native_results *results, uint32_t *first_out)
{
	const struct module_text text = { .name = hit->module, .name_len = strlen(hit->module) };
	uint32_t at = results->chains[0].first;
	unsigned int levels = count_levels(results, at);

	if (!frame_run_new(sym->frames, levels, first_out))
		return false;
	for (unsigned int i = 0; i < levels; i++, at = results->entries.data[at].next) {
		struct spulse_resolved_frame *frame = frame_at(sym->frames, *first_out + i);
		struct spulse_native_symbol symbol = results->entries.data[at].symbol;

		if (i + 1 == levels) {
			symbol.name = hit->name;
			symbol.suffix = NULL;
		}
		frame->inline_depth = levels - 1 - i;
		if (!fill_native(sym, frame, p, &symbol, &text))
			return false;
		frame->kind = SPULSE_FRAME_KIND_KERNEL;
		frame->origin = SPULSE_ORIGIN_KERNEL_SYMBOLS;
	}
	return true;
}

static bool build_off_cpu(struct spulse_symbolizer *sym, const struct pending *p,
			  uint32_t *first_out)
{
	struct spulse_resolved_frame *frame;

	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->kind = SPULSE_FRAME_KIND_KERNEL;
	return frame_set_name(frame, off_cpu_path, strlen(off_cpu_path)) &&
	       frame_set_module(frame, off_cpu_path, strlen(off_cpu_path));
}

/* The function's own name: its offset is a field, so that one function has one name. */
static bool build_kernel(struct spulse_symbolizer *sym, const struct pending *p,
			 uint32_t *first_out)
{
	const struct spulse_native_results *levels;
	struct spulse_resolved_frame *frame;
	struct kernel_hit hit;
	char name[48];

	if (p->module && !strcmp(spulse_module_path(p->module), off_cpu_path))
		return build_off_cpu(sym, p, first_out);
	if (!symbolizer_kernel(sym, p->frame->abs_ip, &hit)) {
		snprintf(name, sizeof(name), "[kernel]+0x%llx",
			 (unsigned long long)p->frame->abs_ip);
		hit = (struct kernel_hit){ .name = name, .module = "[kernel]" };
	} else {
		levels = vmlinux_lookup(sym, p->frame->abs_ip, &hit);
		if (levels)
			return build_kernel_levels(sym, p, &hit, levels, first_out);
	}
	if (!new_frame(sym, p, first_out, &frame))
		return false;
	frame->kind = SPULSE_FRAME_KIND_KERNEL;
	if (hit.name != name)
		frame->origin = SPULSE_ORIGIN_KERNEL_SYMBOLS;
	frame->offset = hit.offset;
	return frame_set_name(frame, hit.name, strlen(hit.name)) &&
	       frame_set_module(frame, hit.module, strlen(hit.module));
}

static bool build_module(struct spulse_symbolizer *sym, const struct pending *p,
			 const struct spulse_native_results *results, size_t index,
			 uint32_t *first_out)
{
	uint32_t at = p->has_lookup && results ? results->chains[index].first : UINT32_MAX;

	if (at == UINT32_MAX)
		return build_offset(sym, p, first_out);
	return build_native(sym, p, results, at, count_levels(results, at), first_out);
}

static bool build_kind(struct spulse_symbolizer *sym, const struct pending *p,
		       const struct spulse_native_results *results, size_t index,
		       uint32_t *first_out)
{
	switch (p->kind) {
	case PENDING_MARKER:
		return build_marker(sym, p, first_out);
	case PENDING_KERNEL:
		return build_kernel(sym, p, first_out);
	case PENDING_MODULE:
		return build_module(sym, p, results, index, first_out);
	case PENDING_PERF_MAP:
		return build_perf_map(sym, p, first_out);
	case PENDING_JIT:
		return build_jit(sym, p, first_out);
	case PENDING_BARE:
		break;
	}
	return build_bare(sym, p, first_out);
}

bool build_frames(struct spulse_symbolizer *sym, const struct pending *p,
		  const struct spulse_native_results *results, size_t index, uint32_t *first_out)
{
	uint32_t first = UINT32_MAX;

	if (build_kind(sym, p, results, index, &first)) {
		*first_out = first;
		return true;
	}
	if (first != UINT32_MAX)
		frame_run_put(sym->frames, first);
	return false;
}

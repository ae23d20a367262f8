/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The order of resolution: what a raw frame is, before any name is looked for. */
#include <string.h>

#include "symbolizer.h"

static bool is_perf_map_class(const struct spulse_module *module)
{
	return codemap_is_perfmap_path(spulse_module_path(module), spulse_module_path_len(module));
}

const struct spulse_module *symbolizer_module(const struct spulse_symbolizer *sym, size_t index)
{
	if (sym->source)
		return spulse_source_module(sym->source, index);
	return index < sym->module_count ? sym->modules[index] : NULL;
}

static size_t modules_len(const struct spulse_symbolizer *sym)
{
	return sym->source ? spulse_source_module_count(sym->source) : sym->module_count;
}

static bool is_retired(const struct spulse_symbolizer *sym, const struct spulse_module *module)
{
	uint32_t id = spulse_module_id(module);
	const uint64_t *below;

	if (u64map_get(&sym->gone_modules, id))
		return true;
	if (spulse_module_is_kernel(module))
		return false;
	below = u64map_get(&sym->gone_below, spulse_module_pid(module));
	return below && id < *below;
}

/* Without a record to say when: the newest module that fits, minus what was retired. */
static const struct spulse_module *bind_raw(const struct spulse_symbolizer *sym, pid_t pid,
					    const struct spulse_frame *frame)
{
	bool kernel = frame->mode == SPULSE_FRAME_KERNEL;

	for (size_t i = modules_len(sym); i-- > 0;) {
		const struct spulse_module *module = symbolizer_module(sym, i);

		if (spulse_module_is_kernel(module) != kernel ||
		    (!kernel && spulse_module_pid(module) != pid) ||
		    frame->abs_ip < spulse_module_start(module) ||
		    frame->abs_ip >= spulse_module_end(module) || is_retired(sym, module))
			continue;
		return module;
	}
	return NULL;
}

static const struct spulse_module *pinned_module(const struct spulse_symbolizer *sym, uint32_t id)
{
	if (sym->source)
		return spulse_source_module_by_id(sym->source, id);
	for (size_t i = 0; i < sym->module_count; i++)
		if (spulse_module_id(sym->modules[i]) == id)
			return sym->modules[i];
	return NULL;
}

/* Binds the frame late; false when there is no module or its offset does not fit. */
static bool bind_late(const struct spulse_symbolizer *sym, struct pending *p)
{
	struct spulse_frame_context context;
	uint64_t offset;

	p->module = NULL;
	p->file_relative_ip = p->frame->abs_ip;
	if (p->frame_id != UINT32_MAX) {
		if (!spulse_source_bind(sym->source, p->process->pid, p->frame_id, &context))
			return false;
		p->module = context.module;
		p->file_relative_ip = context.file_relative_ip;
		return p->module;
	}
	p->module = bind_raw(sym, p->process->pid, p->frame);
	if (!p->module)
		return false;
	offset = p->frame->abs_ip - spulse_module_start(p->module);
	if (add_overflows(offset, spulse_module_file_offset(p->module), &p->file_relative_ip)) {
		p->module = NULL;
		p->file_relative_ip = p->frame->abs_ip;
	}
	return p->module;
}

/* Symbols that a JIT registered: 1 when the module has such, whether or not one fits. */
static int try_jit(const struct spulse_symbolizer *sym, struct pending *p,
		   struct spulse_error **err)
{
	const struct spulse_jit_symbol *symbols;
	uint32_t id = spulse_module_id(p->module);
	size_t count = 0;
	int r;

	if (!sym->source || spulse_module_pid(p->module) != p->process->pid)
		return 0;
	symbols = spulse_source_jit_symbols(sym->source, id, &count);
	if (!symbols)
		return 0;
	p->kind = PENDING_JIT;
	r = jit_find(p->process, id, symbols, count, p->frame->abs_ip, &p->jit, err);
	return r < 0 ? r : 1;
}

/* A user frame that a perf map may name. Returns 1 when it did, 0 when not, or an error. */
static int try_perf_map(struct spulse_symbolizer *sym, struct pending *p,
			struct spulse_error **err)
{
	const struct spulse_module *pinned = p->module;
	uint64_t pinned_ip = p->file_relative_ip;
	int r;

	p->flags |= FRAME_ON_PERF_MAP;
	if (!p->process->map_tried) {
		r = process_load_map(sym, p->process, err);
		if (r < 0)
			return r;
	}
	if (!p->process->map || !perfmap_find(p->process->map, p->frame->abs_ip, &p->entry))
		return 0;
	if (!pinned)
		bind_late(sym, p);
	if (p->module && !is_perf_map_class(p->module)) {
		p->kind = spulse_module_is_kernel(p->module) ? PENDING_KERNEL : PENDING_MODULE;
		module_lookup(sym, p, p->module);
		return 1;
	}
	p->module = pinned;
	p->file_relative_ip = pinned_ip;
	p->kind = PENDING_PERF_MAP;
	return 1;
}

/* What is left: a module by its record or by its range, or nothing. */
static void settle(struct spulse_symbolizer *sym, struct pending *p, bool is_pinned)
{
	if (!is_pinned)
		bind_late(sym, p);
	if (p->frame->mode == SPULSE_FRAME_KERNEL ||
	    (p->module && spulse_module_is_kernel(p->module))) {
		p->kind = PENDING_KERNEL;
	} else if (p->module) {
		p->kind = PENDING_MODULE;
		module_lookup(sym, p, p->module);
	} else {
		p->kind = PENDING_BARE;
	}
}

int classify_frame(struct spulse_symbolizer *sym, struct pending *p, struct spulse_error **err)
{
	const struct spulse_frame *frame = p->frame;
	bool is_pinned = frame->module_id != SPULSE_NO_MODULE;
	int r;

	p->file_relative_ip = frame->abs_ip;
	if (frame->mode == SPULSE_FRAME_TRUNCATED) {
		p->kind = PENDING_MARKER;
		return 0;
	}
	if (is_pinned) {
		p->file_relative_ip = frame->file_relative_ip;
		p->module = pinned_module(sym, frame->module_id);
		r = p->module ? try_jit(sym, p, err) : 0;
		if (r)
			return MIN(r, 0);
	}
	if ((!p->module || is_perf_map_class(p->module)) && frame->mode == SPULSE_FRAME_USER &&
	    perf_maps_allowed(sym, p->process->pid)) {
		r = try_perf_map(sym, p, err);
		if (r)
			return MIN(r, 0);
	}
	settle(sym, p, is_pinned);
	return 0;
}

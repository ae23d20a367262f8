/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Everything in advance: the frames of the whole source are classified in large blocks, what
 * their images need is read by several threads, and then each process's frames go to the backend
 * in one call.
 */
#include <stdlib.h>
#include <unistd.h>

#include "symbolizer.h"

enum { BLOCK_FRAMES = 1 << 16, READ_AHEAD_MIN = 256 };

/* The process whose stacks hold a frame, as far as the frame itself says; 0: it does not. */
static pid_t frame_pid(const struct spulse_symbolizer *sym, const struct spulse_frame *frame,
		       pid_t any)
{
	const struct spulse_module *module;

	if (frame->mode == SPULSE_FRAME_KERNEL)
		return any;
	if (frame->mode != SPULSE_FRAME_USER || frame->module_id == SPULSE_NO_MODULE)
		return 0;
	module = spulse_source_module_by_id(sym->source, frame->module_id);
	return module && !spulse_module_is_kernel(module) ? spulse_module_pid(module) : 0;
}

static int add_frame(struct spulse_symbolizer *sym, const struct spulse_frame *frame, uint32_t id,
		     pid_t pid, struct spulse_error **err)
{
	struct pending p = { .frame = frame, .frame_id = id, .key = id };
	uint64_t *value;
	bool added;
	int r;

	p.process = symbolizer_process(sym, pid);
	if (!p.process)
		return err_no_memory(err);
	p.cache = frame->mode == SPULSE_FRAME_KERNEL ? &sym->kernel_frames : &p.process->frames;
	value = u64map_add(p.cache, id, &added);
	if (!value)
		return err_no_memory(err);
	if (!added)
		return 0;
	*value = UINT32_MAX;
	r = classify_frame(sym, &p, err);
	if (!r && !vec_push(&sym->pending, p))
		r = err_no_memory(err);
	if (r < 0)
		u64map_remove(p.cache, id);
	return r;
}

/* By process, for one call each; then by place, so that neighbours share what is in cache. */
static int compare_pending(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	if (x->process != y->process)
		return x->process->pid < y->process->pid ? -1 : 1;
	if (x->lookup.module != y->lookup.module)
		return x->lookup.module < y->lookup.module ? -1 : 1;
	if (x->lookup.image_address != y->lookup.image_address)
		return x->lookup.image_address < y->lookup.image_address ? -1 : 1;
	return x->frame_id < y->frame_id ? -1 : x->frame_id > y->frame_id;
}

static unsigned int thread_count(const struct spulse_symbolizer *sym)
{
	long cpus = sym->threads ? (long)sym->threads : sysconf(_SC_NPROCESSORS_ONLN);

	return MAX(cpus, 1);
}

int read_ahead(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	VEC(const struct spulse_native_lookup *) lookups = { 0 };
	int r = 0;

	if (sym->pending.len < READ_AHEAD_MIN || !sym->store || !native_is_builtin(sym->backend))
		return 0;
	for (size_t i = 0; i < sym->pending.len && !r; i++)
		if (sym->pending.data[i].has_lookup &&
		    !vec_push(&lookups, &sym->pending.data[i].lookup))
			r = err_no_memory(err);
	if (lookups.len && !r)
		native_store_prepare(sym->store, lookups.data, lookups.len, thread_count(sym));
	vec_free(&lookups);
	return r;
}

static int resolve_block(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	if (sym->pending.len)
		qsort(sym->pending.data, sym->pending.len, sizeof(*sym->pending.data),
		      compare_pending);
	return resolve_pending(sym, err);
}

int prepare_frames(struct spulse_symbolizer *sym, uint32_t from, uint32_t to,
		   struct spulse_error **err)
{
	size_t count, process_count;
	const struct spulse_frame *frames = spulse_source_frames(sym->source, &count);
	const pid_t *processes = spulse_source_processes(sym->source, &process_count);
	int r = 0;

	to = MIN(to, count);
	for (uint32_t id = from; id < to && !r;) {
		symbolizer_begin(sym);
		for (; id < to && !r && sym->pending.len < BLOCK_FRAMES; id++) {
			pid_t pid = frame_pid(sym, &frames[id],
					      process_count ? processes[0] : 0);

			if (pid > 0)
				r = add_frame(sym, &frames[id], id, pid, err);
		}
		if (r < 0)
			abandon_pending(sym);
		else
			r = resolve_block(sym, err);
		symbolizer_end(sym);
	}
	return r;
}

int spulse_symbolizer_prepare(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	return sym->source ? prepare_frames(sym, 0, UINT32_MAX, err) : 0;
}

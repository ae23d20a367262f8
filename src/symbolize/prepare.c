/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Everything in advance: the frames of the whole source are classified in large blocks, what
 * their images need is read by several threads, and then each process's frames go to the backend
 * in one call.
 */
#include <stdlib.h>
#include <unistd.h>

#include "keysort.h"
#include "symbolizer.h"

/*
 * A group is read ahead with threads: so many modules may be open at once. A block of it is small
 * enough for what it needs in between to stay in the cache.
 */
enum { GROUP_FRAMES = 1 << 18, GROUP_MODULES = 128, BLOCK_FRAMES = 2048, READ_AHEAD_MIN = 256 };

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

static unsigned int thread_count(const struct spulse_symbolizer *sym)
{
	long cpus = sym->threads ? (long)sym->threads : sysconf(_SC_NPROCESSORS_ONLN);

	return MAX(cpus, 1);
}

static bool can_read_ahead(const struct spulse_symbolizer *sym, size_t frames)
{
	return frames >= READ_AHEAD_MIN && sym->store && native_is_builtin(sym->backend);
}

int read_ahead(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	VEC(struct native_place) places = { 0 };
	int r = 0;

	if (!can_read_ahead(sym, sym->pending.len))
		return 0;
	for (size_t i = 0; i < sym->pending.len && !r; i++) {
		const struct spulse_native_lookup *lookup = &sym->pending.data[i].lookup;

		if (sym->pending.data[i].has_lookup &&
		    !vec_push(&places,
			      (struct native_place){ lookup->module, lookup->image_address }))
			r = err_no_memory(err);
	}
	if (places.len && !r)
		native_store_prepare(sym->store, places.data, places.len, thread_count(sym));
	vec_free(&places);
	return r;
}

/* Frames in the order of modules and places, so that neighbours share what is in the cache. */
struct order {
	const struct spulse_frame *frames;
	struct sort_key *keys, *sorted;
	size_t count;
};

/* What most frames are sorted by; that far modules share a key costs only time. */
static uint64_t place_key(const struct spulse_frame *frame)
{
	return frame->mode == SPULSE_FRAME_KERNEL ?
		       frame->abs_ip :
		       (uint64_t)frame->module_id << 40 ^ frame->file_relative_ip;
}

static int make_order(const struct spulse_symbolizer *sym, uint32_t from, uint32_t to, pid_t any,
		      struct order *order, struct spulse_error **err)
{
	order->keys = malloc(((size_t)to - from + 1) * 2 * sizeof(*order->keys));
	if (!order->keys)
		return err_no_memory(err);
	for (uint32_t id = from; id < to; id++)
		if (frame_pid(sym, &order->frames[id], any) > 0)
			order->keys[order->count++] =
				(struct sort_key){ place_key(&order->frames[id]), id };
	order->sorted = sort_keys(order->keys, order->keys + order->count, order->count);
	return 0;
}

/* Frames from `first` on whose images may all be open at once. */
static size_t group_end(const struct order *order, size_t first)
{
	uint32_t module = SPULSE_NO_MODULE;
	size_t modules = 0, i = first;

	for (; i < order->count && i - first < GROUP_FRAMES; i++) {
		const struct spulse_frame *frame = &order->frames[order->sorted[i].index];

		if (frame->module_id == module)
			continue;
		if (++modules > GROUP_MODULES)
			break;
		module = frame->module_id;
	}
	return i;
}

/* Opens the images of a group and has read what its frames will need of them. */
static int read_group(struct spulse_symbolizer *sym, const struct order *order, size_t first,
		      size_t end, struct spulse_error **err)
{
	VEC(struct native_place) places = { 0 };
	const struct spulse_module *module = NULL;
	const struct module_state *state = NULL;
	int r = 0;

	for (size_t i = first; i < end && !r; i++) {
		const struct spulse_frame *frame = &order->frames[order->sorted[i].index];
		const struct spulse_module *its =
			frame->mode == SPULSE_FRAME_USER ?
				spulse_source_module_by_id(sym->source, frame->module_id) :
				NULL;

		if (!its)
			continue;
		if (its != module)
			state = module_open(sym, its);
		module = its;
		if (state && state->native &&
		    !vec_push(&places, (struct native_place){
				state->native, frame->abs_ip - state->native->bias }))
			r = err_no_memory(err);
	}
	if (places.len && !r)
		native_store_prepare(sym->store, places.data, places.len, thread_count(sym));
	vec_free(&places);
	return r;
}

static int resolve_group(struct spulse_symbolizer *sym, const struct order *order, size_t first,
			 size_t end, pid_t any, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = first; i < end && !r;) {
		drop_pending(sym);
		for (; i < end && !r && sym->pending.len < BLOCK_FRAMES; i++) {
			uint32_t id = order->sorted[i].index;
			const struct spulse_frame *frame = &order->frames[id];

			r = add_frame(sym, frame, id, frame_pid(sym, frame, any), err);
		}
		if (r < 0)
			abandon_pending(sym);
		else
			r = resolve_read(sym, err);
	}
	return r;
}

int prepare_frames(struct spulse_symbolizer *sym, uint32_t from, uint32_t to,
		   struct spulse_error **err)
{
	size_t count, process_count;
	struct order order = { .frames = spulse_source_frames(sym->source, &count) };
	const pid_t *processes = spulse_source_processes(sym->source, &process_count);
	pid_t any = process_count ? processes[0] : 0;
	int r;

	to = MIN(to, count);
	if (from >= to)
		return 0;
	r = make_order(sym, from, to, any, &order, err);
	for (size_t first = 0, end; first < order.count && !r; first = end) {
		symbolizer_begin(sym);
		end = group_end(&order, first);
		if (can_read_ahead(sym, end - first))
			r = read_group(sym, &order, first, end, err);
		if (!r)
			r = resolve_group(sym, &order, first, end, any, err);
		symbolizer_end(sym);
	}
	free(order.keys);
	return r;
}

int spulse_symbolizer_prepare(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	return sym->source ? prepare_frames(sym, 0, UINT32_MAX, err) : 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "resolved.h"

#include <stdio.h>
#include <string.h>

struct frame_store *frame_store_new(void)
{
	struct frame_store *store = calloc(1, sizeof(*store));

	if (store)
		store->used_in_slab = SLAB_FRAMES;
	return store;
}

static void frame_store_free(struct frame_store *store)
{
	for (size_t i = 0; i < store->slabs.len; i++)
		free(store->slabs.data[i]);
	vec_free(&store->slabs);
	for (size_t i = 0; i <= RUN_MAX; i++)
		vec_free(&store->free_runs[i]);
	strpool_release(&store->strings);
	free(store);
}

void frame_store_drop(struct frame_store *store)
{
	if (!store)
		return;
	store->orphaned = true;
	if (!store->held_frames)
		frame_store_free(store);
}

static bool frame_store_grow(struct frame_store *store)
{
	struct spulse_resolved_frame *slab;
	unsigned int left = SLAB_FRAMES - store->used_in_slab;

	if (store->slabs.len >= UINT32_MAX / SLAB_FRAMES || !vec_reserve(&store->slabs, 1))
		return false;
	if (left && left <= RUN_MAX) {
		uint32_t first = (store->slabs.len - 1) * SLAB_FRAMES + store->used_in_slab;

		if (!vec_push(&store->free_runs[left], first))
			return false;
	}
	slab = calloc(SLAB_FRAMES, sizeof(*slab));
	if (!slab)
		return false;
	store->slabs.data[store->slabs.len++] = slab;
	store->used_in_slab = 0;
	return true;
}

bool frame_run_new(struct frame_store *store, unsigned int length, uint32_t *first_out)
{
	uint32_t first;

	if (store->free_runs[length].len) {
		first = vec_pop(&store->free_runs[length]);
	} else {
		if (SLAB_FRAMES - store->used_in_slab < length && !frame_store_grow(store))
			return false;
		first = (store->slabs.len - 1) * SLAB_FRAMES + store->used_in_slab;
		store->used_in_slab += length;
	}
	for (unsigned int i = 0; i < length; i++)
		*frame_at(store, first + i) = (struct spulse_resolved_frame){
			.store = store,
			.serial = store->next_serial++,
			.refs = 1,
			.run = first,
			.run_length = length,
			.line = -1,
			.column = -1,
			.function_line = -1,
			.function_column = -1,
		};
	store->live_frames += length;
	*first_out = first;
	return true;
}

/* A run's place is free when none of its frames is referenced. */
static void frame_release(struct spulse_resolved_frame *frame)
{
	struct frame_store *store = frame->store;

	strpool_put(&store->strings, frame->name);
	strpool_put(&store->strings, frame->module);
	strpool_put(&store->strings, frame->file);
	strpool_put(&store->strings, frame->suffix);
	frame->name = frame->module = frame->file = frame->suffix = NULL;
	store->live_frames--;
	for (unsigned int i = 0; i < frame->run_length; i++)
		if (frame_at(store, frame->run + i)->refs)
			return;
	/* Without memory the place stays unused; nothing else depends on it. */
	(void)vec_push(&store->free_runs[frame->run_length], frame->run);
}

static void frame_put(struct spulse_resolved_frame *frame)
{
	if (!--frame->refs)
		frame_release(frame);
}

void frame_run_put(struct frame_store *store, uint32_t first)
{
	unsigned int length = frame_at(store, first)->run_length;

	for (unsigned int i = 0; i < length; i++)
		frame_put(frame_at(store, first + i));
}

const struct spulse_resolved_frame *
spulse_resolved_frame_ref(const struct spulse_resolved_frame *frame)
{
	struct spulse_resolved_frame *f = (struct spulse_resolved_frame *)frame;

	f->refs++;
	f->store->held_frames++;
	return frame;
}

void spulse_resolved_frame_unref(const struct spulse_resolved_frame *frame)
{
	struct spulse_resolved_frame *f = (struct spulse_resolved_frame *)frame;
	struct frame_store *store;

	if (!f)
		return;
	store = f->store;
	store->held_frames--;
	frame_put(f);
	if (store->orphaned && !store->held_frames)
		frame_store_free(store);
}

bool frame_set_name(struct spulse_resolved_frame *frame, const char *name, size_t len)
{
	frame->name = strpool_get(&frame->store->strings, name, len);
	return frame->name;
}

bool frame_set_module(struct spulse_resolved_frame *frame, const char *module, size_t len)
{
	frame->module = strpool_get(&frame->store->strings, module, len);
	return frame->module;
}

size_t spulse_resolved_count(const struct spulse_resolved *resolved)
{
	return resolved->count;
}

const struct spulse_resolved_frame *spulse_resolved_at(const struct spulse_resolved *resolved,
						       size_t index)
{
	return index < resolved->count ? frame_at(resolved->store, resolved->frames[index]) : NULL;
}

struct spulse_frame_id spulse_resolved_id(const struct spulse_resolved *resolved, size_t index)
{
	const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, index);

	return (struct spulse_frame_id){ resolved->owner, frame ? frame->serial : UINT64_MAX };
}

bool spulse_resolved_is_cacheable(const struct spulse_resolved *resolved)
{
	return !resolved->provisional;
}

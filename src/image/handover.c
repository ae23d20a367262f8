/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "elfimage.h"

#include <stdlib.h>

enum { HANDOVER_MODULES = 4096, HANDOVER_IMAGES = 256 };

/* Open images by module id, in the order of their registration: the oldest goes first. */
struct image_handover {
	atomic_uint refs;
	pthread_mutex_t lock;
	struct u64map by_module; /* id -> image */
	struct u64map uses;	 /* image -> number of its modules here */
	VEC(uint32_t) order;
	size_t oldest; /* in order */
};

struct image_handover *image_handover_new(void)
{
	struct image_handover *handover = calloc(1, sizeof(*handover));

	if (!handover)
		return NULL;
	handover->refs = 1;
	pthread_mutex_init(&handover->lock, NULL);
	return handover;
}

struct image_handover *image_handover_ref(struct image_handover *handover)
{
	if (handover)
		atomic_fetch_add_explicit(&handover->refs, 1, memory_order_relaxed);
	return handover;
}

void image_handover_unref(struct image_handover *handover)
{
	struct u64map_slot *slot;
	size_t i = 0;

	if (!handover ||
	    atomic_fetch_sub_explicit(&handover->refs, 1, memory_order_acq_rel) != 1)
		return;
	while ((slot = u64map_next(&handover->by_module, &i)))
		image_unref((struct image *)(uintptr_t)slot->value);
	u64map_release(&handover->by_module);
	u64map_release(&handover->uses);
	vec_free(&handover->order);
	pthread_mutex_destroy(&handover->lock);
	free(handover);
}

static void forget_module(struct image_handover *handover, uint32_t module)
{
	uint64_t *slot = u64map_get(&handover->by_module, module), *uses;
	struct image *image;

	if (!slot)
		return;
	image = (struct image *)(uintptr_t)*slot;
	u64map_remove(&handover->by_module, module);
	uses = u64map_get(&handover->uses, (uintptr_t)image);
	if (uses && !--*uses)
		u64map_remove(&handover->uses, (uintptr_t)image);
	image_unref(image);
}

static void forget_oldest(struct image_handover *handover)
{
	size_t n = handover->order.len - handover->oldest;

	forget_module(handover, handover->order.data[handover->oldest++]);
	if (handover->oldest < HANDOVER_MODULES)
		return;
	memmove(handover->order.data, handover->order.data + handover->oldest,
		(n - 1) * sizeof(*handover->order.data));
	handover->order.len = n - 1;
	handover->oldest = 0;
}

/* Without memory the reader opens the file by its path. */
static void add_locked(struct image_handover *handover, uint32_t module, struct image *image)
{
	uint64_t *uses;
	bool added;

	if (u64map_get(&handover->by_module, module) || !vec_reserve(&handover->order, 1))
		return;
	uses = u64map_add(&handover->uses, (uintptr_t)image, &added);
	if (!uses)
		return;
	if (!u64map_set(&handover->by_module, module, (uintptr_t)image)) {
		if (added)
			u64map_remove(&handover->uses, (uintptr_t)image);
		return;
	}
	++*uses;
	image_ref(image);
	handover->order.data[handover->order.len++] = module;
	while (handover->by_module.count > HANDOVER_MODULES ||
	       handover->uses.count > HANDOVER_IMAGES ||
	       handover->order.len - handover->oldest > 2 * HANDOVER_MODULES)
		forget_oldest(handover);
}

void image_handover_add(struct image_handover *handover, uint32_t module, struct image *image)
{
	if (!handover || !image)
		return;
	pthread_mutex_lock(&handover->lock);
	add_locked(handover, module, image);
	pthread_mutex_unlock(&handover->lock);
}

struct image *image_handover_get(struct image_handover *handover, uint32_t module)
{
	struct image *image = NULL;
	uint64_t *slot;

	if (!handover)
		return NULL;
	pthread_mutex_lock(&handover->lock);
	slot = u64map_get(&handover->by_module, module);
	if (slot)
		image = image_ref((struct image *)(uintptr_t)*slot);
	pthread_mutex_unlock(&handover->lock);
	return image;
}

void image_handover_remove(struct image_handover *handover, uint32_t module)
{
	if (!handover)
		return;
	pthread_mutex_lock(&handover->lock);
	forget_module(handover, module);
	pthread_mutex_unlock(&handover->lock);
}

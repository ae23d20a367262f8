/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which module an unpinned frame belongs to: of those that were defined before the frame, not yet
 * retired by then, of the sample's process (or of the kernel) and holding the address, the newest.
 *
 * All modules with a range stand sorted by (process, start); the kernel is process -1. Beside
 * each is the highest end of those before it of its process, so that a look-up goes backward from
 * the last start that is not above the address and stops where nothing can reach it any more.
 * What a frame binds to never changes, so that a small cache needs no invalidation. Several
 * threads may look up at once: an entry is two words, and one that was torn by a race fails its
 * own check.
 */
#include "source.h"

enum { BIND_CACHE_SIZE = 4096 };

static bool key_less(const struct spulse_module *a, const struct spulse_module *b)
{
	return a->pid != b->pid ? a->pid < b->pid : a->start < b->start;
}

static int compare_modules(const void *a, const void *b, void *arg)
{
	struct spulse_module *const *modules = arg;
	const struct spulse_module *x = modules[*(const uint32_t *)a];
	const struct spulse_module *y = modules[*(const uint32_t *)b];

	if (key_less(x, y))
		return -1;
	return key_less(y, x) ? 1 : (x->id > y->id) - (x->id < y->id);
}

static bool index_reserve(struct bind_index *index, size_t more)
{
	size_t ids_cap = index->cap, reach_cap = index->cap;

	if (index->cap - index->count >= more)
		return true;
	if (!vec_grow((void **)&index->ids, &ids_cap, index->count, more, sizeof(uint32_t)) ||
	    !vec_grow((void **)&index->reach, &reach_cap, index->count, more, sizeof(uint64_t)))
		return false;
	index->cap = ids_cap;
	return true;
}

/* Merges ids [old, count), sorted, into the sorted ones before them, from the back. */
static bool merge_new(struct spulse_source *source, size_t old)
{
	struct bind_index *index = &source->bind;
	size_t added = index->count - old, out = index->count;
	uint32_t *fresh;

	if (!old || !added)
		return true;
	fresh = malloc(added * sizeof(*fresh));
	if (!fresh)
		return false;
	memcpy(fresh, index->ids + old, added * sizeof(*fresh));
	while (added)
		if (old && key_less(source->modules.data[fresh[added - 1]],
				    source->modules.data[index->ids[old - 1]]))
			index->ids[--out] = index->ids[--old];
		else
			index->ids[--out] = fresh[--added];
	free(fresh);
	return true;
}

static void compute_reach(struct spulse_source *source)
{
	struct bind_index *index = &source->bind;
	uint64_t reach = 0;
	pid_t pid = 0;

	for (size_t i = 0; i < index->count; i++) {
		const struct spulse_module *module = source->modules.data[index->ids[i]];

		if (module->pid != pid)
			reach = 0;
		pid = module->pid;
		reach = MAX(reach, module->end);
		index->reach[i] = reach;
	}
}

bool bind_index_update(struct spulse_source *source)
{
	struct bind_index *index = &source->bind;
	size_t old = index->count;

	if (!source->bind_cache) {
		source->bind_cache = calloc(BIND_CACHE_SIZE, sizeof(*source->bind_cache));
		if (!source->bind_cache)
			return false;
	}
	if (index->seen == source->modules.len)
		return true;
	if (!index_reserve(index, source->modules.len - index->seen))
		return false;
	for (; index->seen < source->modules.len; index->seen++) {
		const struct spulse_module *module = source->modules.data[index->seen];

		if (module->start < module->end)
			index->ids[index->count++] = module->id;
	}
	if (index->count > old)
		qsort_r(index->ids + old, index->count - old, sizeof(uint32_t), compare_modules,
			source->modules.data);
	if (!merge_new(source, old))
		return false;
	compute_reach(source);
	return true;
}

void bind_index_release(struct bind_index *index)
{
	free(index->ids);
	free(index->reach);
}

/* Modules that were defined before a frame. */
static uint32_t modules_before(const struct spulse_source *source, uint32_t frame_id)
{
	size_t low = 0, high = source->epochs.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (source->epochs.data[middle].first_frame <= frame_id)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? source->epochs.data[low - 1].modules : 0;
}

/* Entries of the index before the first one that stands after (pid, address). */
static size_t position(const struct spulse_source *source, pid_t pid, uint64_t address)
{
	size_t low = 0, high = source->bind.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spulse_module *m = source->modules.data[source->bind.ids[middle]];

		if (m->pid < pid || (m->pid == pid && m->start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t search(const struct spulse_source *source, pid_t pid, uint32_t frame_id)
{
	uint64_t address = source->frames.data[frame_id].abs_ip, sum;
	uint32_t limit = modules_before(source, frame_id), found = SPULSE_NO_MODULE;
	const struct spulse_module *module;

	for (size_t i = position(source, pid, address); i-- > 0;) {
		module = source->modules.data[source->bind.ids[i]];
		if (module->pid != pid || source->bind.reach[i] <= address)
			break;
		if (address < module->end && module->id < limit && frame_id < module->retired_at &&
		    (found == SPULSE_NO_MODULE || module->id > found))
			found = module->id;
	}
	if (found == SPULSE_NO_MODULE)
		return found;
	/* A file address past 64 bits: no module, and no older one either. */
	module = source->modules.data[found];
	return add_overflows(address - module->start, module->file_offset, &sum) ? SPULSE_NO_MODULE
										 : found;
}

static const struct spulse_module *module_or_null(const struct spulse_source *source, uint32_t id)
{
	return id == SPULSE_NO_MODULE ? NULL : source->modules.data[id];
}

const struct spulse_module *bind_find(const struct spulse_source *source, pid_t pid,
				      uint32_t frame_id)
{
	pid_t owner = source->frames.data[frame_id].mode == SPULSE_FRAME_KERNEL ? -1 : pid;
	uint64_t key = (uint64_t)(uint32_t)owner << 32 | frame_id;
	struct bind_cache_entry *entry = &source->bind_cache[hash_u64(key) % BIND_CACHE_SIZE];
	uint64_t value = atomic_load_explicit(&entry->value, memory_order_relaxed);
	uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
	uint32_t id;

	/* Bit 32 tells a filled entry from an empty one. */
	if (value >> 32 && (check ^ hash_u64(value)) == key)
		return module_or_null(source, (uint32_t)value);
	id = search(source, owner, frame_id);
	value = (uint64_t)1 << 32 | id;
	atomic_store_explicit(&entry->value, value, memory_order_relaxed);
	atomic_store_explicit(&entry->check, key ^ hash_u64(value), memory_order_relaxed);
	return module_or_null(source, id);
}

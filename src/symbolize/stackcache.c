/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What a caller made of stacks, kept by their keys: by process, so that one goes as a whole. */
#include <stdlib.h>

#include "symbolizer.h"

struct kept_stacks {
	struct u64map values; /* node -> value */
};

struct spulse_stack_cache {
	const struct spulse_symbolizer *symbolizer;
	size_t capacity, count;
	spulse_stack_drop_fn drop;
	void *data;
	struct u64map processes; /* pid -> struct kept_stacks * */
};

int spulse_stack_cache_new(const struct spulse_symbolizer *symbolizer, size_t capacity,
			   spulse_stack_drop_fn drop, void *data,
			   struct spulse_stack_cache **cache_out, struct spulse_error **err)
{
	struct spulse_stack_cache *cache;

	if (!symbolizer)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no symbolizer");
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return err_no_memory(err);
	cache->symbolizer = symbolizer;
	cache->capacity = capacity;
	cache->drop = drop;
	cache->data = data;
	*cache_out = cache;
	return 0;
}

static struct kept_stacks *kept_of(const struct spulse_stack_cache *cache, pid_t pid)
{
	const uint64_t *slot = u64map_get(&cache->processes, pid);

	return slot ? (struct kept_stacks *)(uintptr_t)*slot : NULL;
}

static void drop_kept(struct spulse_stack_cache *cache, struct kept_stacks *kept)
{
	struct u64map_slot *slot;
	size_t i = 0;

	cache->count -= kept->values.count;
	while (cache->drop && (slot = u64map_next(&kept->values, &i)))
		cache->drop(cache->data, (void *)(uintptr_t)slot->value);
	u64map_release(&kept->values);
	free(kept);
}

void spulse_stack_cache_clear(struct spulse_stack_cache *cache)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&cache->processes, &i)))
		drop_kept(cache, (struct kept_stacks *)(uintptr_t)slot->value);
	u64map_release(&cache->processes);
}

void spulse_stack_cache_free(struct spulse_stack_cache *cache)
{
	if (!cache)
		return;
	spulse_stack_cache_clear(cache);
	free(cache);
}

size_t spulse_stack_cache_count(const struct spulse_stack_cache *cache)
{
	return cache->count;
}

static bool is_ours(const struct spulse_stack_cache *cache, struct spulse_stack_key key)
{
	return key.source == cache->symbolizer->source_number;
}

bool spulse_stack_cache_lookup(const struct spulse_stack_cache *cache, struct spulse_stack_key key,
			       void **value_out)
{
	const struct kept_stacks *kept = is_ours(cache, key) ? kept_of(cache, key.pid) : NULL;
	const uint64_t *value = kept ? u64map_get(&kept->values, key.node) : NULL;

	if (!value)
		return false;
	*value_out = (void *)(uintptr_t)*value;
	return true;
}

static struct kept_stacks *kept_add(struct spulse_stack_cache *cache, pid_t pid)
{
	struct kept_stacks *kept = kept_of(cache, pid);

	if (kept)
		return kept;
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	if (!u64map_set(&cache->processes, pid, (uintptr_t)kept)) {
		free(kept);
		return NULL;
	}
	return kept;
}

int spulse_stack_cache_insert(struct spulse_stack_cache *cache, struct spulse_stack_key key,
			      const struct spulse_resolved *resolved, void *value,
			      struct spulse_error **err)
{
	struct kept_stacks *kept;
	uint64_t *slot;
	bool added;

	if (!is_ours(cache, key) || resolved->owner != cache->symbolizer->owner)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "the stack belongs to another symbolizer than the cache");
	if (!cache->capacity || !spulse_resolved_is_cacheable(resolved))
		return 0;
	kept = kept_of(cache, key.pid);
	if (cache->count >= cache->capacity && !(kept && u64map_get(&kept->values, key.node)))
		spulse_stack_cache_clear(cache);
	kept = kept_add(cache, key.pid);
	slot = kept ? u64map_add(&kept->values, key.node, &added) : NULL;
	if (!slot)
		return err_no_memory(err);
	if (!added && cache->drop)
		cache->drop(cache->data, (void *)(uintptr_t)*slot);
	cache->count += added;
	*slot = (uintptr_t)value;
	return 1;
}

void spulse_stack_cache_apply(struct spulse_stack_cache *cache,
			      const struct spulse_invalidation *invalidation)
{
	if (invalidation->all) {
		spulse_stack_cache_clear(cache);
		return;
	}
	for (size_t i = 0; i < invalidation->processes.len; i++) {
		pid_t pid = invalidation->processes.data[i];
		struct kept_stacks *kept = kept_of(cache, pid);

		if (!kept)
			continue;
		u64map_remove(&cache->processes, pid);
		drop_kept(cache, kept);
	}
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which module an unpinned frame belongs to: of those that were defined before the frame, not yet
 * retired by then, of the sample's process (or of the kernel) and holding the address, the newest.
 *
 * The modules with a range stand in levels, each sorted by (process, start, id); the kernel is
 * process -1. A level that is no longer than what is new is merged into it, so that a recording
 * that grows costs each module a few sorts, and there are few levels to look in. Over the entries
 * of a level, eight to a leaf, stands a tree of bounds. A look-up leaves out what cannot hold the
 * address, was not defined yet, was retired already or is older than what it has: recordings full
 * of mappings that replaced or hide each other cost it no more than others. Retirement after a
 * level was made only makes its bounds wider than needed.
 *
 * What a frame binds to never changes, so that a small cache needs no invalidation. Several
 * threads may look up at once: an entry is two words, and one that was torn by a race fails its
 * own check.
 */
#include "source.h"

enum { BIND_CACHE_SIZE = 4096, LEAF_ENTRIES = 8 };

/* Bounds of the entries below. The left child is the next node, the right one follows its nodes. */
struct bind_node {
	uint64_t end;
	uint32_t oldest, newest, retired_at;
};

struct bind_level {
	uint32_t *ids;
	struct bind_node *nodes;
	size_t count;
};

struct bind_query {
	const struct spulse_source *source;
	const struct bind_level *level;
	uint64_t address;
	size_t from, to; /* entries of the process that start at or below the address */
	uint32_t frame_id, limit, found;
};

static bool key_less(const struct spulse_module *a, const struct spulse_module *b)
{
	return a->pid != b->pid ? a->pid < b->pid : a->start < b->start;
}

static bool has_range(const struct spulse_module *module)
{
	return module->start < module->end;
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

static size_t leaves_of(size_t entries)
{
	return (entries + LEAF_ENTRIES - 1) / LEAF_ENTRIES;
}

static struct bind_node bounds_of_leaf(const struct spulse_source *source, const uint32_t *ids,
				       size_t count)
{
	struct bind_node node = { .oldest = UINT32_MAX };

	for (size_t i = 0; i < count; i++) {
		const struct spulse_module *module = source->modules.data[ids[i]];

		node.end = MAX(node.end, module->end);
		node.oldest = MIN(node.oldest, module->id);
		node.newest = MAX(node.newest, module->id);
		node.retired_at = MAX(node.retired_at, module->retired_at);
	}
	return node;
}

/* The depth is the logarithm of the number of leaves. */
static void compute_bounds(const struct spulse_source *source, struct bind_node *node,
			   const uint32_t *ids, size_t count)
{
	size_t leaves = leaves_of(count), left = leaves / 2;
	const struct bind_node *low = node + 1, *high = node + 2 * left;

	if (leaves == 1) {
		*node = bounds_of_leaf(source, ids, count);
		return;
	}
	compute_bounds(source, node + 1, ids, left * LEAF_ENTRIES);
	compute_bounds(source, node + 2 * left, ids + left * LEAF_ENTRIES,
		       count - left * LEAF_ENTRIES);
	*node = (struct bind_node){
		.end = MAX(low->end, high->end),
		.oldest = MIN(low->oldest, high->oldest),
		.newest = MAX(low->newest, high->newest),
		.retired_at = MAX(low->retired_at, high->retired_at),
	};
}

static void level_release(struct bind_level *level)
{
	free(level->ids);
	free(level->nodes);
	*level = (struct bind_level){ 0 };
}

/* How many of the last levels are not longer than what joins them; adds their entries to it. */
static size_t levels_to_merge(const struct bind_index *index, size_t *count)
{
	size_t merged = 0;

	while (merged < index->levels.len) {
		size_t length = index->levels.data[index->levels.len - 1 - merged].count;

		if (length > *count)
			break;
		*count += length;
		merged++;
	}
	return merged;
}

static bool level_allocate(struct bind_level *level, size_t count)
{
	*level = (struct bind_level){
		.ids = malloc(count * sizeof(*level->ids)),
		.nodes = malloc((2 * leaves_of(count) - 1) * sizeof(*level->nodes)),
		.count = count,
	};
	if (level->ids && level->nodes)
		return true;
	level_release(level);
	return false;
}

/* Adds a level with what the merged ones hold and the modules that were not looked at yet. */
static bool level_add(struct spulse_source *source, size_t fresh)
{
	struct bind_index *index = &source->bind;
	size_t count = fresh, merged = levels_to_merge(index, &count), used = 0;
	struct bind_level made;

	if (!vec_reserve(&index->levels, 1) || !level_allocate(&made, count))
		return false;
	for (; merged; merged--) {
		struct bind_level *last = &index->levels.data[--index->levels.len];

		memcpy(made.ids + used, last->ids, last->count * sizeof(*last->ids));
		used += last->count;
		level_release(last);
	}
	for (size_t i = index->seen; i < source->modules.len; i++)
		if (has_range(source->modules.data[i]))
			made.ids[used++] = source->modules.data[i]->id;
	qsort_r(made.ids, count, sizeof(*made.ids), compare_modules, source->modules.data);
	compute_bounds(source, made.nodes, made.ids, count);
	index->levels.data[index->levels.len++] = made;
	return true;
}

bool bind_index_update(struct spulse_source *source)
{
	struct bind_index *index = &source->bind;
	size_t fresh = 0;

	if (!source->bind_cache) {
		source->bind_cache = calloc(BIND_CACHE_SIZE, sizeof(*source->bind_cache));
		if (!source->bind_cache)
			return false;
	}
	for (size_t i = index->seen; i < source->modules.len; i++)
		fresh += has_range(source->modules.data[i]);
	if (fresh && !level_add(source, fresh))
		return false;
	index->seen = source->modules.len;
	return true;
}

void bind_index_release(struct bind_index *index)
{
	for (size_t i = 0; i < index->levels.len; i++)
		level_release(&index->levels.data[i]);
	vec_free(&index->levels);
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

/* Entries of the level before the first one that stands after (pid, address). */
static size_t position(const struct bind_query *query, pid_t pid, uint64_t address)
{
	size_t low = 0, high = query->level->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spulse_module *m =
			query->source->modules.data[query->level->ids[middle]];

		if (m->pid < pid || (m->pid == pid && m->start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void search_leaf(struct bind_query *query, size_t first, size_t count)
{
	size_t end = MIN(first + count, query->to);

	for (size_t i = MAX(first, query->from); i < end; i++) {
		const struct spulse_module *module =
			query->source->modules.data[query->level->ids[i]];

		if (query->address < module->end && module->id < query->limit &&
		    query->frame_id < module->retired_at &&
		    (query->found == SPULSE_NO_MODULE || module->id > query->found))
			query->found = module->id;
	}
}

static bool worth_search(const struct bind_query *query, const struct bind_node *node,
			 size_t first, size_t count)
{
	return first < query->to && first + count > query->from && query->address < node->end &&
	       node->oldest < query->limit && query->frame_id < node->retired_at &&
	       (query->found == SPULSE_NO_MODULE || node->newest > query->found);
}

/* The newer half first, as what it gives may make the other one needless. */
static void search_node(struct bind_query *query, const struct bind_node *node, size_t first,
			size_t count)
{
	size_t leaves = leaves_of(count), left = leaves / 2, split = left * LEAF_ENTRIES;
	const struct bind_node *low = node + 1, *high = node + 2 * left;

	if (!worth_search(query, node, first, count))
		return;
	if (leaves == 1) {
		search_leaf(query, first, count);
	} else if (low->newest > high->newest) {
		search_node(query, low, first, split);
		search_node(query, high, first + split, count - split);
	} else {
		search_node(query, high, first + split, count - split);
		search_node(query, low, first, split);
	}
}

static uint32_t search(const struct spulse_source *source, pid_t pid, uint32_t frame_id)
{
	struct bind_query query = {
		.source = source,
		.address = source->frames.data[frame_id].abs_ip,
		.frame_id = frame_id,
		.limit = modules_before(source, frame_id),
		.found = SPULSE_NO_MODULE,
	};
	const struct spulse_module *module;
	uint64_t sum;

	for (size_t i = source->bind.levels.len; i-- > 0;) {
		query.level = &source->bind.levels.data[i];
		query.to = position(&query, pid, query.address);
		query.from = query.to ? position(&query, pid - 1, UINT64_MAX) : 0;
		search_node(&query, query.level->nodes, 0, query.level->count);
	}
	if (query.found == SPULSE_NO_MODULE)
		return query.found;
	/* A file address past 64 bits: no module, and no older one either. */
	module = source->modules.data[query.found];
	if (add_overflows(query.address - module->start, module->file_offset, &sum))
		return SPULSE_NO_MODULE;
	return query.found;
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

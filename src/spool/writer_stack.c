/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writing one sample. One probe tells whether the whole stack, as it was given, is known. If it is
 * not, its frames are turned into the ids that they have in the file, the outermost first. What
 * the thread's previous stack has in common with it is taken over; from there on the tree is
 * descended. Once a node is new all nodes below it are new, and need no search.
 */
#include "writer.h"

static int invalid(struct spulse_error **err, const char *what)
{
	return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%s", what);
}

/* The thread's state; a new one has no id yet. */
static struct thread_state *thread_of(struct spulse_spool_writer *w, pid_t pid, pid_t tid)
{
	struct thread_state *state;
	uint64_t *index;
	bool added;

	if (w->thread_states.len) {
		state = &w->thread_states.data[w->last_thread];
		if (state->pid == pid && state->tid == tid)
			return state;
	}
	if (!vec_reserve(&w->thread_states, 1))
		return NULL;
	index = u64map_add(&w->threads, (uint64_t)pid << 32 | tid, &added);
	if (!index)
		return NULL;
	if (added) {
		*index = w->thread_states.len;
		vec_push(&w->thread_states,
			 (struct thread_state){ .pid = pid, .tid = tid, .id = UINT32_MAX });
	}
	w->last_thread = *index;
	return &w->thread_states.data[*index];
}

static bool thread_reserve(struct thread_state *thread, size_t depth)
{
	size_t frames_cap = thread->cap, nodes_cap = thread->cap;

	if (depth <= thread->cap)
		return true;
	if (!vec_grow((void **)&thread->frames, &frames_cap, 0, depth, sizeof(uint32_t)) ||
	    !vec_grow((void **)&thread->nodes, &nodes_cap, 0, depth, sizeof(uint32_t)))
		return false;
	thread->cap = frames_cap;
	return true;
}

/*
 * Ids of the frames, outermost first, into w->ids. Returns whether they are for ever: those of
 * unpinned frames are lost when the modules change.
 */
static bool resolve(struct spulse_spool_writer *w, const uint32_t *frames, size_t count)
{
	const struct frame_slot *slots = w->frames.slots.data;
	bool lasting = true;

	for (size_t i = 0; i < count; i++) {
		const struct frame_slot *slot = &slots[frames[count - 1 - i]];

		w->ids.data[i] = slot->id;
		lasting &= slot->kind != FRAME_KIND_USER && slot->kind != FRAME_KIND_KERNEL;
	}
	return lasting;
}

static size_t common(const struct thread_state *thread, const uint32_t *ids, size_t count)
{
	size_t limit = MIN(count, (size_t)thread->depth), i = 0;

	while (i < limit && thread->frames[i] == ids[i] && ids[i] != FRAME_UNWRITTEN)
		i++;
	return i;
}

/* A number of up to four bytes without a branch on how many; they are all written to. */
static inline uint8_t *put_number(uint8_t *p, uint64_t value)
{
	unsigned int bytes;
	uint32_t word;

	if (unlikely(value >= 1 << 28))
		return varint_put(p, value);
	bytes = (31 - __builtin_clz((uint32_t)value | 1)) / 7;
	word = (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 |
	       (value & 0xfe00000) << 3;
	word |= 0x808080 & (((uint32_t)1 << 8 * bytes) - 1);
	memcpy(p, &word, sizeof(word));
	return p + bytes + 1;
}

static inline int put_record(struct sink *sink, uint8_t tag, uint64_t a, uint64_t b, uint64_t c,
			     struct spulse_error **err)
{
	uint8_t *p = sink_room(sink, err);

	if (!p)
		return -1;
	*p++ = tag;
	p = put_number(p, a);
	p = put_number(p, b);
	sink_used(sink, put_number(p, c));
	return 0;
}

static int put_frame(struct spulse_spool_writer *w, struct frame_slot *slot,
		     struct spulse_error **err)
{
	frame_table_written(&w->frames, slot);
	return put_record(&w->sink, TAG_FRAME, slot->id, slot->kind, slot->value, err);
}

/* The id of a frame that has none: its record may be there by now, for the same frame twice. */
static uint32_t id_of(struct spulse_spool_writer *w, uint32_t number, struct spulse_error **err)
{
	struct frame_slot *slot = &w->frames.slots.data[number];

	if (slot->id == FRAME_UNWRITTEN && put_frame(w, slot, err) < 0)
		return FRAME_UNWRITTEN;
	return slot->id;
}

/* How many levels from `from` on are there already; leaves their path in the thread. */
static size_t descend(struct spulse_spool_writer *w, struct thread_state *thread, size_t count,
		      size_t from)
{
	uint32_t node = from ? thread->nodes[from - 1] : NODE_NONE;
	size_t i;

	for (i = from; i < count && w->ids.data[i] != FRAME_UNWRITTEN; i++) {
		node = tree_find(&w->tree, node, w->ids.data[i]);
		if (node == NODE_NONE)
			break;
		thread->frames[i] = w->ids.data[i];
		thread->nodes[i] = node;
	}
	return i;
}

/* Writes all levels from `from` on, which are new, and the frames that are. */
static int grow(struct spulse_spool_writer *w, struct thread_state *thread,
		const uint32_t *frames, size_t count, size_t from, struct spulse_error **err)
{
	uint32_t node = from ? thread->nodes[from - 1] : NODE_NONE, prefix;

	for (size_t i = from; i < count; i++) {
		uint32_t id = w->ids.data[i];

		if (id == FRAME_UNWRITTEN)
			id = id_of(w, frames[count - 1 - i], err);
		if (unlikely(id == FRAME_UNWRITTEN))
			return -1;
		prefix = node;
		node = i == from ? tree_add(&w->tree, prefix, id)
				 : tree_extend(&w->tree, id);
		if (put_record(&w->sink, TAG_STACK_NODE, node, prefix, id, err) < 0)
			return -1;
		thread->frames[i] = id;
		thread->nodes[i] = node;
	}
	return 0;
}

/* Follows the previous stack of a thread from its leaf, when only that was noted. */
static void follow_leaf(const struct spulse_spool_writer *w, struct thread_state *thread)
{
	uint32_t node = thread->leaf;

	if (!thread->leaf_only)
		return;
	for (size_t i = thread->depth; i-- > 0; node = tree_prefix(&w->tree, node)) {
		thread->nodes[i] = node;
		thread->frames[i] = w->tree.frames.data[node];
	}
	thread->leaf_only = false;
}

/* Makes a stack known by its key. */
static int put_path(struct spulse_spool_writer *w, struct thread_state *thread,
		    const uint32_t *frames, size_t count, const struct memo_key *key,
		    struct spulse_error **err)
{
	bool lasting = resolve(w, frames, count);
	size_t there;

	follow_leaf(w, thread);
	there = descend(w, thread, count, common(thread, w->ids.data, count));
	thread->depth = count;
	if (grow(w, thread, frames, count, there, err) < 0)
		return -1;
	thread->leaf = thread->nodes[count - 1];
	if (key)
		memo_add(&w->memo, key, thread->leaf, lasting ? MEMO_ALWAYS : w->frames.epoch);
	return 0;
}

/* All memory that a sample can need, so that nothing fails half-way but the output. */
static struct thread_state *prepare(struct spulse_spool_writer *w,
				    const struct spulse_sample *sample, size_t count)
{
	struct thread_state *thread;

	w->ids.len = 0;
	if (!vec_reserve(&w->ids, count) || !tree_reserve(&w->tree, count) ||
	    !frame_table_reserve(&w->frames, count))
		return NULL;
	thread = thread_of(w, sample->pid, sample->tid);
	return thread && thread_reserve(thread, count) ? thread : NULL;
}

static int check(const struct spulse_spool_writer *w, const struct spulse_sample *sample,
		 size_t count, int64_t *delta, struct spulse_error **err)
{
	if (sample->pid < 1 || sample->tid < 1)
		return invalid(err, "a sample's process and thread ids must be positive");
	if (__builtin_sub_overflow(sample->timestamp_ns, w->last_ns, delta))
		return invalid(err, "the time since the previous sample does not fit 64 bits");
	if (count >= TREE_NODES_MAX - w->tree.frames.len ||
	    count >= UINT32_MAX - 1 - (uint64_t)w->frames.next_id)
		return invalid(err, "the spool is full: no ids are left");
	return 0;
}

/* The sample's own record, after that of its thread when that is new. */
static int put_leaf(struct spulse_spool_writer *w, const struct spulse_sample *sample,
		    struct thread_state *thread, int64_t delta, struct spulse_error **err)
{
	if (thread->id == UINT32_MAX) {
		thread->id = w->threads_written++;
		if (put_record(&w->sink, TAG_THREAD, thread->id, zigzag(sample->pid), sample->tid,
			       err) < 0)
			return -(int)spulse_error_kind(w->sink.failed);
	}
	if (put_record(&w->sink, TAG_SAMPLE, zigzag(delta), thread->id, thread->leaf, err) < 0)
		return -(int)spulse_error_kind(w->sink.failed);
	w->last_ns = sample->timestamp_ns;
	return 0;
}

int writer_put_known(struct spulse_spool_writer *w, const struct spulse_sample *sample,
		     const struct memo_key *key, struct spulse_error **err)
{
	uint32_t leaf = key->count ? memo_find(&w->memo, key, w->frames.epoch) : NODE_NONE;
	size_t depth = key->kind == KEY_PACKED ? key->count / 2 : key->count;
	struct thread_state *thread;
	int64_t delta = 0;
	int r;

	if (leaf == NODE_NONE || w->sink.failed)
		return 0;
	r = check(w, sample, depth, &delta, err);
	if (r < 0)
		return r;
	thread = thread_of(w, sample->pid, sample->tid);
	if (!thread || !thread_reserve(thread, depth))
		return err_no_memory(err);
	if (thread->leaf != leaf || !thread->depth) {
		thread->leaf = leaf;
		thread->depth = depth;
		thread->leaf_only = true;
	}
	r = put_leaf(w, sample, thread, delta, err);
	return r < 0 ? r : 1;
}

int writer_put_sample(struct spulse_spool_writer *w, const struct spulse_sample *sample,
		      const uint32_t *frames, size_t count, const struct memo_key *key,
		      struct spulse_error **err)
{
	struct thread_state *thread;
	int64_t delta = 0;
	int r;

	if (w->sink.failed)
		return err_repeat(err, w->sink.failed);
	if (!count)
		return 0;
	r = check(w, sample, count, &delta, err);
	if (r < 0)
		return r;
	thread = prepare(w, sample, count);
	if (!thread)
		return err_no_memory(err);
	if (put_path(w, thread, frames, count, key, err) < 0)
		return -(int)spulse_error_kind(w->sink.failed);
	return put_leaf(w, sample, thread, delta, err);
}

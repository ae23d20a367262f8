/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writing one sample. Its frames are first turned into the ids that they have in the file, the
 * outermost first. What the thread's previous stack has in common with it is taken over; then one
 * probe tells whether the whole stack is known; only then the tree is descended. Once a node is
 * new all nodes below it are new, and need no search.
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

/* Ids of the frames, outermost first, into w->ids; counts those that have none yet. */
static size_t resolve(struct spulse_spool_writer *w, const uint32_t *frames, size_t count,
		      uint32_t *hash)
{
	const struct frame_slot *slots = w->frames.slots.data;
	uint32_t *ids = w->ids.data;
	uint64_t even = 0, odd = 1;
	size_t unwritten = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t id = slots[frames[count - 1 - i]].id;

		ids[i] = id;
		unwritten += id == FRAME_UNWRITTEN;
		/* Two chains of multiplications hide each other's latency. */
		if (i & 1)
			odd = (odd + id) * 0x9e3779b97f4a7c15u;
		else
			even = (even + id) * 0xc2b2ae3d27d4eb4fu;
	}
	*hash = hash_two(even, odd) >> 32;
	return unwritten;
}

static size_t common(const struct thread_state *thread, const uint32_t *ids, size_t count)
{
	size_t limit = MIN(count, (size_t)thread->depth), i = 0;

	while (i < limit && thread->frames[i] == ids[i] && ids[i] != FRAME_UNWRITTEN)
		i++;
	return i;
}

static int put_record(struct sink *sink, uint8_t tag, uint64_t a, uint64_t b, uint64_t c,
		      struct spulse_error **err)
{
	uint8_t *p = sink_room(sink, err);

	if (!p)
		return -1;
	*p++ = tag;
	p = varint_put(p, a);
	p = varint_put(p, b);
	sink_used(sink, varint_put(p, c));
	return 0;
}

static int put_frame(struct spulse_spool_writer *w, struct frame_slot *slot,
		     struct spulse_error **err)
{
	frame_table_written(&w->frames, slot);
	return put_record(&w->sink, TAG_FRAME, slot->id, slot->kind, slot->value, err);
}

static int put_node(struct spulse_spool_writer *w, uint32_t prefix, uint32_t frame,
		    uint32_t *node, struct spulse_error **err)
{
	*node = tree_add(&w->tree, prefix, frame);
	return put_record(&w->sink, TAG_STACK_NODE, *node, prefix, frame, err);
}

/* Descends from level `from` on, writing what is missing; leaves the path in the thread. */
static int descend(struct spulse_spool_writer *w, struct thread_state *thread,
		   const uint32_t *frames, size_t count, size_t from, struct spulse_error **err)
{
	uint32_t node = from ? thread->nodes[from - 1] : NODE_NONE, next;
	bool fresh = false;

	for (size_t i = from; i < count; i++, node = next) {
		uint32_t id = w->ids.data[i];
		struct frame_slot *slot;

		next = NODE_NONE;
		if (id == FRAME_UNWRITTEN) {
			/* Its record may be there by now: the same frame twice in one stack. */
			slot = &w->frames.slots.data[frames[count - 1 - i]];
			if (slot->id == FRAME_UNWRITTEN && put_frame(w, slot, err) < 0)
				return -1;
			id = slot->id;
		}
		if (!fresh)
			next = tree_find(&w->tree, node, id);
		if (next == NODE_NONE) {
			fresh = true;
			if (put_node(w, node, id, &next, err) < 0)
				return -1;
		}
		thread->frames[i] = id;
		thread->nodes[i] = next;
	}
	return 0;
}

/* Takes a remembered stack over as the thread's path. */
static void retrace(struct spulse_spool_writer *w, struct thread_state *thread, size_t count,
		    size_t from, uint32_t leaf)
{
	memcpy(thread->frames + from, w->ids.data + from, (count - from) * sizeof(uint32_t));
	for (size_t i = count; i-- > from; leaf = w->tree.nodes.data[leaf].prefix)
		thread->nodes[i] = leaf;
}

static int put_path(struct spulse_spool_writer *w, struct thread_state *thread,
		    const uint32_t *frames, size_t count, struct spulse_error **err)
{
	size_t unwritten, from;
	uint32_t hash, leaf;

	unwritten = resolve(w, frames, count, &hash);
	from = common(thread, w->ids.data, count);
	thread->depth = count;
	if (from == count)
		return 0;
	if (!unwritten) {
		leaf = tree_recall(&w->tree, hash, w->ids.data, count, from,
				   from ? thread->nodes[from - 1] : NODE_NONE);
		if (leaf != NODE_NONE) {
			retrace(w, thread, count, from, leaf);
			return 0;
		}
	}
	if (descend(w, thread, frames, count, from, err) < 0)
		return -1;
	if (!unwritten)
		tree_remember(&w->tree, hash, thread->nodes[count - 1]);
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
	if (count >= TREE_NODES_MAX - w->tree.nodes.len ||
	    count >= UINT32_MAX - 1 - (uint64_t)w->frames.next_id)
		return invalid(err, "the spool is full: no ids are left");
	return 0;
}

int writer_put_sample(struct spulse_spool_writer *w, const struct spulse_sample *sample,
		      const uint32_t *frames, size_t count, struct spulse_error **err)
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
	if (put_path(w, thread, frames, count, err) < 0)
		return -(int)spulse_error_kind(w->sink.failed);
	if (thread->id == UINT32_MAX) {
		thread->id = w->threads_written++;
		if (put_record(&w->sink, TAG_THREAD, thread->id, zigzag(sample->pid), sample->tid,
			       err) < 0)
			return -(int)spulse_error_kind(w->sink.failed);
	}
	if (put_record(&w->sink, TAG_SAMPLE, zigzag(delta), thread->id,
		       thread->nodes[count - 1], err) < 0)
		return -(int)spulse_error_kind(w->sink.failed);
	w->last_ns = sample->timestamp_ns;
	return 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Resolving stacks. A stack that was seen is one lookup; of another one the frames are looked up
 * one by one; those that are new are classified together, their native ones are given to the
 * backend in one call, and only when all went well is anything kept.
 */
#include <string.h>

#include "symbolizer.h"

static const uint64_t raw_key_bit = 1ull << 63;

/* ---- new frames ---- */

static int call_backend(struct spulse_symbolizer *sym, struct process *process,
			const struct spulse_native_lookup *const *lookups, size_t count,
			struct spulse_error **err)
{
	struct spulse_error *error = NULL;
	int r = process_open_backend(sym, process, err);

	if (r < 0)
		return r;
	if (!results_reset(&sym->results, count))
		return err_no_memory(err);
	sym->texts_call++;
	sym->results.borrows = native_is_builtin(sym->backend);
	if (sym->backend->symbolize(process->backend, lookups, count, &sym->results, &error) >= 0)
		return 0;
	if (!error)
		error = spulse_error_new(SPULSE_ERROR_NATIVE_SYMBOLIZER, 0, NULL, NULL, 0,
					 "it failed without saying why");
	err_prefix(&error, "native backend %s", sym->backend->name ? sym->backend->name : "");
	r = err_retype(&error, SPULSE_ERROR_NATIVE_SYMBOLIZER);
	if (err)
		*err = error;
	else
		spulse_error_free(error);
	return r;
}

static int cache_frames(struct spulse_symbolizer *sym, struct pending *p, size_t index,
			struct spulse_error **err)
{
	uint32_t first;

	if (!build_frames(sym, p, &sym->results, index, &first))
		return err_no_memory(err);
	if (!u64map_set(p->cache, p->key, frame_value(first, p->flags))) {
		frame_run_put(sym->frames, first);
		return err_no_memory(err);
	}
	if (sym->serials)
		for (unsigned int i = 0; i < frame_at(sym->frames, first)->run_length; i++)
			u64map_set(sym->serials, frame_at(sym->frames, first + i)->serial,
				   first + i);
	return 0;
}

/* Forgets the marks of frames that were to be resolved, and those that were. */
void abandon_pending(struct spulse_symbolizer *sym)
{
	for (size_t i = 0; i < sym->pending.len; i++) {
		struct pending *p = &sym->pending.data[i];
		uint64_t *value = u64map_get(p->cache, p->key);

		if (value && (uint32_t)*value != UINT32_MAX)
			frame_run_put(sym->frames, *value);
		u64map_remove(p->cache, p->key);
	}
	sym->pending.len = 0;
}

/* Pending frames of one process, [from, to): one backend call, then the frames are made. */
static int resolve_process(struct spulse_symbolizer *sym, size_t from, size_t to,
			   struct spulse_error **err)
{
	VEC(const struct spulse_native_lookup *) lookups = { 0 };
	size_t index = 0;
	int r = 0;

	for (size_t i = from; i < to; i++)
		if (sym->pending.data[i].has_lookup &&
		    !vec_push(&lookups, &sym->pending.data[i].lookup))
			r = err_no_memory(err);
	if (lookups.len && !r)
		r = call_backend(sym, sym->pending.data[from].process, lookups.data, lookups.len,
				 err);
	for (size_t i = from; i < to && !r; i++) {
		r = cache_frames(sym, &sym->pending.data[i], index, err);
		index += sym->pending.data[i].has_lookup;
	}
	vec_free(&lookups);
	return r;
}

int resolve_read(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	size_t n = sym->pending.len;
	int r = 0;

	sym->texts_call++;
	for (size_t from = 0, to; from < n && !r; from = to) {
		for (to = from + 1; to < n; to++)
			if (sym->pending.data[to].process != sym->pending.data[from].process)
				break;
		r = resolve_process(sym, from, to, err);
	}
	if (r < 0)
		abandon_pending(sym);
	return r;
}

int resolve_pending(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	int r = read_ahead(sym, err);

	if (r < 0) {
		abandon_pending(sym);
		return r;
	}
	return resolve_read(sym, err);
}

/* ---- one stack ---- */

struct stack_walk {
	struct spulse_symbolizer *sym;
	struct process *process;
	bool provisional;
	bool missing;
};

/* Adds a known frame's run to the list, or puts the frame on the list of new ones. */
static int add_frame(struct stack_walk *walk, const struct spulse_frame *frame, uint32_t frame_id,
		     uint64_t key, struct spulse_error **err)
{
	struct spulse_symbolizer *sym = walk->sym;
	struct pending pending = { .process = walk->process, .frame = frame, .frame_id = frame_id,
				   .key = key };
	unsigned int length;
	uint64_t *value;
	bool added;
	int r;

	if (frame_id == UINT32_MAX) {
		pending.flags = FRAME_RAW;
		walk->process->has_raw = true;
	}
	pending.cache = frame->mode == SPULSE_FRAME_KERNEL && frame_id != UINT32_MAX ?
		&sym->kernel_frames : &walk->process->frames;
	value = u64map_add(pending.cache, key, &added);
	if (!value)
		return err_no_memory(err);
	if (added) {
		*value = UINT32_MAX;
		r = classify_frame(sym, &pending, err);
		if (!r && !vec_push(&sym->pending, pending))
			r = err_no_memory(err);
		if (r < 0)
			u64map_remove(pending.cache, key);
		walk->missing = true;
		return r;
	}
	if ((uint32_t)*value == UINT32_MAX || walk->missing) {
		walk->missing = true;
		return 0;
	}
	length = frame_at(sym->frames, *value)->run_length;
	if (!vec_reserve(&sym->scratch, length))
		return err_no_memory(err);
	for (unsigned int i = 0; i < length; i++)
		sym->scratch.data[sym->scratch.len++] = (uint32_t)*value + i;
	walk->provisional |= (*value >> 32 & FRAME_PROVISIONAL) != 0;
	return 0;
}

static int walk_stack(struct stack_walk *walk, const struct spulse_stack *stack,
		      struct spulse_error **err)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	const struct spulse_frame *frames;
	size_t count;
	uint32_t id;
	int r = 0;

	frames = spulse_source_frames(walk->sym->source, &count);
	while (!r && (id = spool_frame_iter_next_id(&iter)) != UINT32_MAX)
		r = add_frame(walk, &frames[id], id, id, err);
	return r;
}

static int walk_raw(struct stack_walk *walk, const struct spulse_frame *frames, size_t count,
		    struct spulse_error **err)
{
	struct spulse_symbolizer *sym = walk->sym;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		uint32_t id = intern(&sym->raw_frames, (const char *)&frames[i], sizeof(*frames));

		r = id == UINT32_MAX ? err_no_memory(err) :
				       add_frame(walk, &frames[i], UINT32_MAX, raw_key_bit | id,
						 err);
	}
	return r;
}

/* A stack for a list of modules: its frames have no ids of ours. */
static int walk_foreign(struct stack_walk *walk, const struct spulse_stack *stack,
			struct spulse_error **err)
{
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	const struct spulse_frame *frame;
	struct spulse_symbolizer *sym = walk->sym;

	sym->foreign.len = 0;
	while ((frame = spulse_frame_iter_next(&iter)))
		if (!vec_push(&sym->foreign, *frame))
			return err_no_memory(err);
	return walk_raw(walk, sym->foreign.data, sym->foreign.len, err);
}

/* What a call asks for: a stack, one frame of the source, or raw frames. */
struct subject {
	const struct spulse_stack *stack;
	const struct spulse_frame *frames;
	size_t count;
	uint32_t id; /* of the one frame; UINT32_MAX: raw ones */
};

static int walk_subject(struct stack_walk *walk, const struct subject *subject,
			struct spulse_error **err)
{
	walk->sym->scratch.len = 0;
	walk->missing = walk->provisional = false;
	if (subject->stack)
		return walk->sym->source ? walk_stack(walk, subject->stack, err) :
					   walk_foreign(walk, subject->stack, err);
	if (subject->id != UINT32_MAX)
		return add_frame(walk, subject->frames, subject->id, subject->id, err);
	return walk_raw(walk, subject->frames, subject->count, err);
}

void drop_pending(struct spulse_symbolizer *sym)
{
	for (size_t i = 0; i < sym->pending.len; i++) {
		struct pending *p = &sym->pending.data[i];
		uint64_t *value = u64map_get(p->cache, p->key);

		if (!value || !(*value >> 32 & FRAME_PROVISIONAL))
			continue;
		frame_run_put(sym->frames, *value);
		u64map_remove(p->cache, p->key);
	}
	sym->pending.len = 0;
}

static void set_result(struct spulse_symbolizer *sym, const uint32_t *frames, uint32_t count,
		       bool provisional)
{
	sym->resolved = (struct spulse_resolved){
		.store = sym->frames,
		.frames = frames,
		.count = count,
		.provisional = provisional,
		.owner = sym->owner,
	};
}

/* What a call starts with: the list of the one before is given up. */
void symbolizer_begin(struct spulse_symbolizer *sym)
{
	drop_pending(sym);
	sym->call++;
}

void symbolizer_end(struct spulse_symbolizer *sym)
{
	modules_trim(sym);
	native_store_trim(sym->store);
}

static void keep_stack(struct spulse_symbolizer *sym, struct process *process, uint32_t node)
{
	size_t n = sym->scratch.len;
	uint64_t offset;

	if (sym->stack_memory + n + 1 > STACK_MEMORY_MAX) {
		struct u64map_slot *slot;
		size_t i = 0;

		while ((slot = u64map_next(&sym->processes, &i)))
			process_drop_stacks(sym, (struct process *)(uintptr_t)slot->value);
	}
	offset = process->lists.len;
	if (n + 1 > STACK_MEMORY_MAX || !vec_reserve(&process->lists, n + 1) ||
	    !u64map_set(&process->stacks, node, offset))
		return;
	process->lists.data[process->lists.len++] = n;
	if (n)
		memcpy(process->lists.data + process->lists.len, sym->scratch.data,
		       n * sizeof(uint32_t));
	process->lists.len += n;
	sym->stack_memory += n + 1;
}

/* ---- calls ---- */

static int check_source(struct spulse_symbolizer *sym, struct spulse_stack_key key,
			struct spulse_error **err)
{
	if (sym->source_number == UINT64_MAX)
		sym->source_number = key.source;
	if (key.source == sym->source_number)
		return 0;
	return err_set(err, SPULSE_ERROR_INVALID_INPUT,
		       "the stack was read by another reader than this symbolizer's");
}

/* Frames that are not known yet are resolved together between two passes. */
static int resolve_new(struct spulse_symbolizer *sym, struct process *process,
		       const struct subject *subject, struct spulse_error **err)
{
	struct stack_walk walk = { .sym = sym, .process = process };
	int r;

	symbolizer_begin(sym);
	for (int pass = 0; pass < 2; pass++) {
		r = walk_subject(&walk, subject, err);
		if (r < 0) {
			abandon_pending(sym);
			return r;
		}
		if (!walk.missing)
			break;
		r = resolve_pending(sym, err);
		if (r < 0)
			return r;
	}
	symbolizer_end(sym);
	set_result(sym, sym->scratch.data, sym->scratch.len, walk.provisional);
	return 0;
}

int spulse_symbolizer_resolve(struct spulse_symbolizer *sym, const struct spulse_stack *stack,
			      const struct spulse_resolved **resolved_out,
			      struct spulse_error **err)
{
	struct spulse_stack_key key = spulse_stack_key(stack);
	struct process *process;
	const uint64_t *known;
	int r;

	r = check_source(sym, key, err);
	if (r < 0)
		return r;
	process = symbolizer_process(sym, key.pid);
	if (!process)
		return err_no_memory(err);
	known = u64map_get(&process->stacks, key.node);
	if (likely(known)) {
		const uint32_t *list = process->lists.data + *known;

		set_result(sym, list + 1, list[0], false);
		*resolved_out = &sym->resolved;
		return 0;
	}
	r = resolve_new(sym, process, &(struct subject){ .stack = stack }, err);
	if (r < 0)
		return r;
	if (sym->cache_stacks && !sym->resolved.provisional)
		keep_stack(sym, process, key.node);
	*resolved_out = &sym->resolved;
	return 0;
}

/* A frame that was resolved for good: no more than a lookup. False when it was not. */
static bool recall_frame(struct spulse_symbolizer *sym, const struct process *process,
			 const struct spulse_frame *frame, uint32_t id)
{
	const struct u64map *cache = frame->mode == SPULSE_FRAME_KERNEL ? &sym->kernel_frames :
									  &process->frames;
	const uint64_t *value = u64map_get(cache, id);
	unsigned int length;

	if (!value || (uint32_t)*value == UINT32_MAX || (*value >> 32 & FRAME_PROVISIONAL))
		return false;
	length = frame_at(sym->frames, *value)->run_length;
	sym->scratch.len = 0;
	if (!vec_reserve(&sym->scratch, length))
		return false;
	for (unsigned int i = 0; i < length; i++)
		sym->scratch.data[sym->scratch.len++] = (uint32_t)*value + i;
	set_result(sym, sym->scratch.data, length, false);
	return true;
}

int spulse_symbolizer_resolve_frame(struct spulse_symbolizer *sym, pid_t pid, uint32_t frame,
				    const struct spulse_resolved **resolved_out,
				    struct spulse_error **err)
{
	struct subject subject = { .id = frame };
	const struct spulse_frame *frames = NULL;
	struct process *process;
	size_t count = 0;
	int r = 0;

	if (sym->source)
		frames = spulse_source_frames(sym->source, &count);
	if (frame >= count || pid <= 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "there is no frame %u of process %d", frame, (int)pid);
	process = symbolizer_process(sym, pid);
	if (!process)
		return err_no_memory(err);
	subject.frames = &frames[frame];
	if (!recall_frame(sym, process, subject.frames, frame))
		r = resolve_new(sym, process, &subject, err);
	if (!r)
		*resolved_out = &sym->resolved;
	return r;
}

static int check_raw(pid_t pid, const struct spulse_frame *frames, size_t count,
		     struct spulse_error **err)
{
	if (pid <= 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process id %d is not above 0",
			       (int)pid);
	for (size_t i = 0; i < count; i++) {
		if (frames[i].mode > SPULSE_FRAME_TRUNCATED)
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "frame %zu has no known mode", i);
		if (frames[i].mode == SPULSE_FRAME_TRUNCATED &&
		    (frames[i].abs_ip || frames[i].file_relative_ip ||
		     frames[i].module_id != SPULSE_NO_MODULE))
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "frame %zu is a truncation marker with an address or a "
				       "module", i);
	}
	return 0;
}

int spulse_symbolizer_resolve_raw(struct spulse_symbolizer *sym, pid_t pid,
				  const struct spulse_frame *frames, size_t count,
				  const struct spulse_resolved **resolved_out,
				  struct spulse_error **err)
{
	const struct subject subject = { .frames = frames, .count = count, .id = UINT32_MAX };
	struct process *process;
	int r = check_raw(pid, frames, count, err);

	if (r < 0)
		return r;
	process = symbolizer_process(sym, pid);
	if (!process)
		return err_no_memory(err);
	r = resolve_new(sym, process, &subject, err);
	if (r < 0)
		return r;
	*resolved_out = &sym->resolved;
	return 0;
}

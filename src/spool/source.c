/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <pthread.h>

int source_init(struct spulse_source *source, const char *path, struct spulse_error **err)
{
	static atomic_uint_fast64_t last_number;

	source->number = atomic_fetch_add(&last_number, 1) + 1;
	source->path = strdup(path ? path : "(spool)");
	return source->path ? 0 : err_no_memory(err);
}

void source_release(struct spulse_source *source)
{
	if (source->attachment)
		source->attachment->unref(source->attachment);
	annotations_release(source);
	bind_index_release(&source->bind);
	free(source->bind_cache);
	for (size_t i = 0; i < source->modules.len; i++)
		free(source->modules.data[i]->symbols);
	vec_free(&source->modules);
	vec_free(&source->plain);
	vec_free(&source->frames);
	vec_free(&source->epochs);
	vec_free(&source->nodes);
	vec_free(&source->depths);
	vec_free(&source->deep);
	vec_free(&source->threads);
	vec_free(&source->pythons);
	vec_free(&source->sorted_processes);
	pidmap_release(&source->processes);
	interner_release(&source->paths);
	arena_release(&source->arena);
	free(source->path);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Whoever comes first sorts, in the room that source_settle() made. */
static void sort_processes(struct spulse_source *source, size_t count)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (atomic_load_explicit(&source->sorted, memory_order_relaxed) != count) {
		memcpy(source->sorted_processes.data, source->processes.pids.data,
		       count * sizeof(pid_t));
		qsort(source->sorted_processes.data, count, sizeof(pid_t), compare_pids);
		atomic_store_explicit(&source->sorted, count, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
}

const pid_t *source_sorted_processes(const struct spulse_source *source, size_t *count_out)
{
	size_t sorted = atomic_load_explicit(&source->sorted, memory_order_acquire);
	size_t count = source->processes.pids.len;

	/* There is room, but after a failure. */
	if (source->sorted_processes.cap < count)
		count = sorted;
	if (sorted != count)
		sort_processes((struct spulse_source *)source, count);
	*count_out = count;
	return source->sorted_processes.data;
}

bool source_settle(struct spulse_source *source)
{
	return bind_index_update(source) &&
	       vec_reserve(&source->sorted_processes, source->processes.pids.len);
}

/* Keeps `plain` equal to all ids but those of annotations. */
static bool note_plain(struct spulse_source *source, const struct spulse_module *module)
{
	if (!module->is_annotation)
		return !source->annotations.len || vec_push(&source->plain, module->id);
	if (source->annotations.len == 0) {
		if (!vec_reserve(&source->plain, module->id))
			return false;
		for (uint32_t id = 0; id < module->id; id++)
			source->plain.data[id] = id;
		source->plain.len = module->id;
	}
	return annotation_add(source, module);
}

bool source_add_module(struct spulse_source *source, const struct spulse_module *module)
{
	struct spulse_module *kept = arena_alloc(&source->arena, sizeof(*kept));
	uint32_t *newest = NULL;

	if (!kept || !vec_reserve(&source->modules, 1))
		return false;
	*kept = *module;
	kept->path = intern_string(&source->paths, module->path, module->path_len);
	kept->id = source->modules.len;
	kept->older = SPULSE_NO_MODULE;
	kept->retired_at = NEVER_RETIRED;
	if (!kept->path)
		return false;
	if (!kept->is_kernel) {
		newest = pidmap_add(&source->processes, kept->pid);
		if (!newest)
			return false;
		kept->older = *newest;
	}
	kept->is_annotation = annotation_shaped(kept->start, kept->end, kept->file_offset,
						kept->inode, kept->path, kept->path_len);
	if (!note_plain(source, kept))
		return false;
	if (newest)
		*newest = kept->id;
	source->modules.data[source->modules.len++] = kept;
	return true;
}

bool source_pin(const struct spulse_module *m, uint64_t value, struct spulse_frame *frame)
{
	if (value < m->file_offset || m->end < m->start ||
	    value - m->file_offset >= m->end - m->start)
		return false;
	*frame = (struct spulse_frame){
		.file_relative_ip = value,
		.abs_ip = m->start + (value - m->file_offset),
		.module_id = m->id,
		.mode = m->is_kernel ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER,
	};
	return true;
}

bool source_add_frame(struct spulse_source *source, const struct spulse_frame *frame)
{
	uint32_t modules = source->modules.len, known = 0;

	if (source->epochs.len)
		known = vec_last(&source->epochs).modules;
	if (modules != known &&
	    !vec_push(&source->epochs, (struct frame_epoch){ source->frames.len, modules }))
		return false;
	return vec_push(&source->frames, *frame);
}

bool source_reserve_nodes(struct spulse_source *source, size_t count)
{
	return vec_reserve(&source->nodes, count) && vec_reserve(&source->depths, count) &&
	       vec_reserve(&source->deep, count);
}

uint32_t source_deep_depth(const struct spulse_source *source, uint32_t node)
{
	const struct deep_node *deep = source->deep.data;
	size_t first = 0, end = source->deep.len;

	while (end - first > 1) {
		size_t middle = first + (end - first) / 2;

		if (deep[middle].id <= node)
			first = middle;
		else
			end = middle;
	}
	return deep[first].depth;
}

bool source_add_node(struct spulse_source *source, uint32_t prefix, uint32_t frame)
{
	if (!source_reserve_nodes(source, 1))
		return false;
	source_push_node(source, prefix, frame);
	return true;
}

bool source_add_thread(struct spulse_source *source, struct spulse_thread thread)
{
	return pidmap_add(&source->processes, thread.pid) && vec_push(&source->threads, thread);
}

bool source_add_python(struct spulse_source *source, const struct spulse_python_runtime *record)
{
	return pidmap_add(&source->processes, record->pid) && vec_push(&source->pythons, *record);
}

void source_retire_module(struct spulse_source *source, uint32_t id)
{
	struct spulse_module *module = source->modules.data[id];

	if (module->retired_at == NEVER_RETIRED)
		module->retired_at = source->frames.len;
}

bool source_retire_process(struct spulse_source *source, pid_t pid)
{
	uint32_t *newest = pidmap_add(&source->processes, pid);
	uint32_t id;

	if (!newest)
		return false;
	for (id = *newest; id != SPULSE_NO_MODULE; id = source->modules.data[id]->older)
		source_retire_module(source, id);
	*newest = SPULSE_NO_MODULE;
	return true;
}

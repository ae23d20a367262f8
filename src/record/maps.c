/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Mappings as /proc shows them. Memory without a name is called as the kernel's own records call
 * it: //anon, with its address as its offset.
 */
#include "recorder.h"

#include <string.h>
#include <unistd.h>

/* Addresses that lie nowhere are no reason to read maps for ever. */
enum { MAX_TRIED_PAGES = 4096 };

static bool is_memory(const struct proc_map *map)
{
	return map->path_len == 0 || !strcmp(map->path, "[heap]") ||
	       !strcmp(map->path, "[stack]") || has_prefix(map->path, "[anon:");
}

static bool is_file(const struct proc_map *map)
{
	return map->inode && map->path[0] == '/' && !has_prefix(map->path, "/anon_hugepage");
}

static bool same_file(const struct proc_map *a, const struct proc_map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->path_len == b->path_len &&
	       !memcmp(a->path, b->path, a->path_len);
}

/* The next mapping of a file before (step -1) or behind one, without a gap on the way. */
static const struct proc_map *file_beside(const struct proc_maps *maps, size_t index, int step)
{
	for (size_t i = index; step < 0 ? i > 0 : i + 1 < maps->maps.len; i += step) {
		const struct proc_map *at = &maps->maps.data[i], *next = at + step;

		if (step < 0 ? next->end != at->start : next->start != at->end)
			return NULL;
		if (is_file(next))
			return next;
	}
	return NULL;
}

/*
 * A program may copy its own code to anonymous memory and move that over the original, to have it
 * in huge pages. What then lies between two pieces of one file, at just the distance that they
 * have in the file, is still that file's code. The file's piece before it, or NULL.
 */
static const struct proc_map *moved_from(const struct proc_maps *maps, size_t index)
{
	const struct proc_map *map = &maps->maps.data[index], *before, *behind;

	if (map->path_len && !has_prefix(map->path, "[anon:") &&
	    !has_prefix(map->path, "/anon_hugepage"))
		return NULL;
	before = file_beside(maps, index, -1);
	behind = before ? file_beside(maps, index, 1) : NULL;
	return behind && same_file(before, behind) &&
			       behind->start - before->start == behind->offset - before->offset ?
		       before : NULL;
}

static struct rec_mapping mapping_of(const struct proc_maps *maps, size_t index)
{
	const struct proc_map *map = &maps->maps.data[index], *file = moved_from(maps, index);
	struct rec_mapping mapping = {
		.start = map->start,
		.end = map->end,
		.offset = is_memory(map) ? map->start : map->offset,
		.inode = map->inode,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.path = map->path,
		.path_len = map->path_len,
	};

	if (file) {
		mapping.offset = file->offset + (map->start - file->start);
		mapping.inode = file->inode;
		mapping.dev_major = file->dev_major;
		mapping.dev_minor = file->dev_minor;
		mapping.path = file->path;
		mapping.path_len = file->path_len;
	} else if (!map->path_len) {
		mapping.path = "//anon";
		mapping.path_len = strlen(mapping.path);
	}
	return mapping;
}

static void do_without(struct rec_process *process, const struct spulse_error *why)
{
	unw_space_set_partial(process->space, true);
	if (!process->warned)
		log_warning("mappings of process %d cannot be read, its addresses are recorded "
			    "as they are: %s",
			    process->pid, spulse_error_message(why));
	process->warned = true;
}

int maps_read(struct spulse_recorder *rec, struct rec_process *process,
	      struct proc_maps *maps, bool *gone, struct spulse_error **err)
{
	struct spulse_error *why = NULL;
	int r, alive;

	*gone = false;
	if (rec->offline)
		return 0;
	r = proc_maps_read(maps, process->pid, &why);
	alive = process_alive(rec, process, r < 0 ? NULL : err);
	*gone = alive == 0;
	if (r < 0 && spulse_error_kind(why) == SPULSE_ERROR_TARGET_GONE) {
		*gone = true;
		r = 0;
	} else if (r < 0 && spulse_error_kind(why) == SPULSE_ERROR_NO_MEMORY) {
		r = err_repeat(err, why);
	} else if (r < 0) {
		do_without(process, why);
		r = 0;
	} else {
		r = alive;
		unw_space_set_partial(process->space, false);
	}
	spulse_error_free(why);
	return r;
}

static int register_all(struct spulse_recorder *rec, struct rec_process *process,
			const struct proc_maps *maps, uint64_t time, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < maps->maps.len && r == 0; i++) {
		struct rec_mapping mapping;

		if (!maps->maps.data[i].exec)
			continue;
		mapping = mapping_of(maps, i);
		r = modules_map(rec, process, &mapping, err);
		if (r == 0)
			r = python_check(rec, process, &mapping, time, err);
	}
	return r;
}

int maps_register(struct spulse_recorder *rec, struct rec_process *process,
		  const struct proc_maps *maps, struct spulse_error **err)
{
	return register_all(rec, process, maps, 0, err);
}

int maps_look(struct spulse_recorder *rec, struct rec_process *process, bool *gone,
	      struct spulse_error **err)
{
	struct proc_maps maps = { 0 };
	int r = maps_read(rec, process, &maps, gone, err);

	if (r > 0)
		r = register_all(rec, process, &maps, rec->newest, err);
	proc_maps_release(&maps);
	return MIN(r, 0);
}

int maps_cover(struct spulse_recorder *rec, struct rec_process *process, uint64_t pc,
	       struct spulse_error **err)
{
	uint64_t page = pc / sysconf(_SC_PAGESIZE);
	bool added, gone;
	int r;

	if (process->exited || rec->offline || modules_find(&process->modules, pc) ||
	    process->tried_pages.count >= MAX_TRIED_PAGES ||
	    u64map_get(&process->tried_pages, page))
		return 0;
	r = maps_look(rec, process, &gone, err);
	if (r < 0)
		return r;
	return u64map_add(&process->tried_pages, page, &added) ? 0 : err_no_memory(err);
}

/* Whether the snapshot and what is active are one and the same. */
static bool is_known(const struct rec_process *process, const struct proc_maps *maps)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->maps.len; i++) {
		const struct rec_module *m;
		struct rec_mapping seen;

		if (!maps->maps.data[i].exec)
			continue;
		seen = mapping_of(maps, i);
		m = modules_find(&process->modules, seen.start);
		if (!m || m->map.start != seen.start || m->map.end != seen.end ||
		    m->map.offset != seen.offset || m->map.inode != seen.inode ||
		    m->map.path_len != seen.path_len ||
		    memcmp(m->map.path, seen.path, seen.path_len) != 0)
			return false;
		n++;
	}
	return n == process->modules.places.len;
}

static bool has_code(const struct proc_maps *maps)
{
	for (size_t i = 0; i < maps->maps.len; i++)
		if (maps->maps.data[i].exec)
			return true;
	return false;
}

int maps_reconcile(struct spulse_recorder *rec, struct rec_process *process, bool same_image,
		   bool *gone, struct spulse_error **err)
{
	struct proc_maps maps = { 0 };
	int r = maps_read(rec, process, &maps, gone, err);

	/* A leader that ended while its threads go on shows no mappings. */
	if (r > 0 && has_code(&maps) && !(same_image && is_known(process, &maps))) {
		r = modules_retire(rec, process, err);
		process->perf_support = REC_PYTHON_UNKNOWN;
		if (r == 0)
			r = python_set(rec, process, false, rec->newest, err);
		if (r == 0)
			r = register_all(rec, process, &maps, rec->newest, err);
	}
	proc_maps_release(&maps);
	return MIN(r, 0);
}

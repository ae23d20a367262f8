/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The executable mappings of a process, as the spool knows them. A mapping that differs from what
 * is there retires what it overlaps; the parts that stick out are written again, with ids of
 * their own, and share the old image.
 */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

/* One registered mapping can be cut into two parts by each later one; nobody needs this many. */
enum { MAX_MODULES = 1 << 20 };

static bool same_file(const struct rec_mapping *a, const struct rec_mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->path_len == b->path_len &&
	       !memcmp(a->path, b->path, a->path_len);
}

/* A generation of 0 is an unknown one: maps never tell it. */
static bool same_mapping(const struct rec_mapping *known, const struct rec_mapping *seen)
{
	return known->start == seen->start && known->end == seen->end &&
	       known->offset == seen->offset && same_file(known, seen) &&
	       (known->generation == seen->generation || !seen->generation);
}

/* Index of the first module that ends after `address`. */
static size_t first_ending_after(const struct rec_modules *modules, uint64_t address)
{
	size_t low = 0, high = modules->places.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (modules->list[middle].map.end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct rec_module *modules_find(const struct rec_modules *modules, uint64_t address)
{
	size_t i = first_ending_after(modules, address);

	if (i == modules->places.len || modules->list[i].map.start > address)
		return NULL;
	return &modules->list[i];
}

const struct rec_module *modules_find_kernel(const struct rec_modules *modules, uint64_t address)
{
	for (size_t i = modules->places.len; i-- > 0;) {
		const struct rec_module *m = &modules->list[i];

		if (address >= m->map.start && address < m->map.end)
			return m;
	}
	return NULL;
}

uint32_t modules_intern(struct spulse_recorder *rec, const struct rec_module *module,
			uint64_t address, bool kernel)
{
	struct spulse_frame frame = {
		.file_relative_ip = address,
		.abs_ip = address,
		.module_id = SPULSE_NO_MODULE,
		.mode = kernel ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER,
	};
	uint64_t relative;

	if (module && !add_overflows(address - module->map.start, module->map.offset, &relative)) {
		frame.file_relative_ip = relative;
		frame.module_id = module->id;
	}
	return spool_writer_intern(rec->writer, &frame);
}

/* One file with an old name must not end a whole recording in version 3. */
static int write_mended(struct spulse_recorder *rec, struct spulse_module_fields *fields,
			uint32_t *id_out, struct spulse_error **err)
{
	struct strbuf path = { 0 };
	int r;

	spool_mend_path(&path, fields->path, fields->path_len);
	fields->path = path.data;
	fields->path_len = path.len;
	r = path.failed ? err_no_memory(err) :
			  spulse_spool_writer_module(rec->writer, fields, id_out, err);
	strbuf_release(&path);
	return r;
}

/* Writes the record of a module and gives it its id. */
static int write_module(struct spulse_recorder *rec, pid_t pid, struct rec_module *m,
			struct spulse_error **err)
{
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = pid,
		.is_kernel = m->kernel,
		.start = m->map.start,
		.end = m->map.end,
		.file_offset = m->map.offset,
		.inode = m->map.inode,
		.inode_generation = m->map.generation,
		.device_major = m->map.dev_major,
		.device_minor = m->map.dev_minor,
		.path = m->map.path,
		.path_len = m->map.path_len,
	};
	int r = rec->options.format == SPULSE_SPOOL_FORMAT_3 && fields.path_len ?
			write_mended(rec, &fields, &m->id, err) :
			spulse_spool_writer_module(rec->writer, &fields, &m->id, err);

	if (r == 0)
		image_handover_add(rec->handover, m->id, m->file);
	return r;
}

/* Shows the unwinder what a module is. */
static int place(struct rec_process *process, const struct rec_module *m,
		 struct spulse_error **err)
{
	const struct unw_map map = {
		.start = m->map.start,
		.end = m->map.end,
		.bias = m->bias,
		.image = m->image,
		.module = m->id,
	};

	return unw_space_map(process->space, &map, err);
}

/* Moves a list to new memory, with room for `more` at its end and some at both. */
static bool spread(struct rec_modules *modules, size_t more)
{
	size_t len = modules->places.len, spare = places_spare(len + more);
	struct rec_module *memory = calloc(len + more + 2 * spare, sizeof(*memory));

	if (!memory)
		return false;
	if (len)
		memcpy(memory + spare, modules->list, len * sizeof(*memory));
	if (modules->list)
		free(modules->list - modules->places.before);
	modules->list = memory + spare;
	modules->places = (struct places){ .before = spare, .len = len, .behind = more + spare };
	return true;
}

static int insert(struct rec_modules *modules, size_t at, const struct rec_module *m,
		  struct spulse_error **err)
{
	if (modules->places.len >= MAX_MODULES)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED,
			       "a process has more than %d executable mappings", MAX_MODULES);
	if (!places_fit(&modules->places, at, at, 1) && !spread(modules, 0))
		return err_no_memory(err);
	modules->list = places_splice(&modules->places, modules->list, sizeof(*m), at, at, 1);
	modules->list[at] = *m;
	return 0;
}

/* Writes, shows and adds one module; takes over its image reference. */
static int add_module(struct spulse_recorder *rec, struct rec_process *process,
		      struct rec_module *m, struct spulse_error **err)
{
	int r = write_module(rec, process->pid, m, err);

	if (r == 0)
		r = place(process, m, err);
	if (r == 0)
		r = insert(&process->modules, first_ending_after(&process->modules, m->map.start),
			   m, err);
	if (r < 0) {
		unw_image_unref(m->image);
		image_unref(m->file);
	}
	return r;
}

/* What is left of a retired module at one side of a new mapping. */
static int add_rest(struct spulse_recorder *rec, struct rec_process *process,
		    const struct rec_module *old, uint64_t start, uint64_t end,
		    struct spulse_error **err)
{
	struct rec_module rest = *old;

	if (start >= end)
		return 0;
	rest.map.start = start;
	rest.map.end = end;
	if (add_overflows(old->map.offset, start - old->map.start, &rest.map.offset))
		rest.map.offset = UINT64_MAX;
	if (rest.image)
		unw_image_ref(rest.image);
	image_ref(rest.file);
	return add_module(rec, process, &rest, err);
}

/* Retires the modules [first, end) of the list; they are left in `old`, to be released. */
static int cut_out(struct spulse_recorder *rec, struct rec_process *process, size_t first,
		   size_t end, struct rec_modules *old, struct spulse_error **err)
{
	struct rec_modules *modules = &process->modules;
	int r = 0;

	if (!spread(old, end - first))
		return err_no_memory(err);
	memcpy(old->list, modules->list + first, (end - first) * sizeof(*old->list));
	old->places.len = end - first;
	old->places.behind -= end - first;
	modules->list = places_splice(&modules->places, modules->list, sizeof(*modules->list),
				      first, end, 0);
	for (size_t i = 0; i < old->places.len && r == 0; i++) {
		unw_space_unmap(process->space, old->list[i].map.start,
				old->list[i].map.end);
		r = spulse_spool_writer_retire_module(rec->writer, old->list[i].id, err);
	}
	return r;
}

static int replace_overlapped(struct spulse_recorder *rec, struct rec_process *process,
			      size_t first, const struct rec_mapping *mapping,
			      struct spulse_error **err)
{
	struct rec_modules old = { 0 };
	size_t end = first;
	int r;

	while (end < process->modules.places.len &&
	       process->modules.list[end].map.start < mapping->end)
		end++;
	if (end == first)
		return 0;
	r = cut_out(rec, process, first, end, &old, err);
	for (size_t i = 0; i < old.places.len && r == 0; i++) {
		const struct rec_module *m = &old.list[i];

		r = add_rest(rec, process, m, m->map.start, MIN(m->map.end, mapping->start), err);
		if (r == 0)
			r = add_rest(rec, process, m, MAX(m->map.start, mapping->end), m->map.end,
				     err);
	}
	modules_release(&old);
	return r;
}

/* A mapping with an interned path. */
static bool keep_path(struct spulse_recorder *rec, struct rec_module *m)
{
	m->map.path = intern_string(&rec->strings, m->map.path, m->map.path_len);
	return m->map.path;
}

int modules_map(struct spulse_recorder *rec, struct rec_process *process,
		const struct rec_mapping *mapping, struct spulse_error **err)
{
	struct rec_module m = { .map = *mapping, .opens_left = 2 };
	size_t at;
	int r;

	if (mapping->end <= mapping->start || !mapping->path_len)
		return 0;
	at = first_ending_after(&process->modules, mapping->start);
	if (at < process->modules.places.len &&
	    same_mapping(&process->modules.list[at].map, mapping)) {
		struct rec_module *known = &process->modules.list[at];

		if (known->image || !known->opens_left)
			return 0;
		images_attach(rec, process, known);
		image_handover_add(rec->handover, known->id, known->file);
		return known->image ? place(process, known, err) : 0;
	}
	u64map_release(&process->tried_pages);
	if (!keep_path(rec, &m))
		return err_no_memory(err);
	r = replace_overlapped(rec, process, at, &m.map, err);
	if (r < 0)
		return r;
	images_attach(rec, process, &m);
	m.map.build_id = NULL;
	m.map.build_id_len = 0;
	r = add_module(rec, process, &m, err);
	m.map.build_id = mapping->build_id;
	m.map.build_id_len = mapping->build_id_len;
	return r < 0 ? r : annotate_build_id(rec, &m, err);
}

int modules_map_kernel(struct spulse_recorder *rec, const struct rec_mapping *mapping,
		       struct spulse_error **err)
{
	struct rec_module m = { .map = *mapping, .kernel = true };
	int r;

	if (mapping->end <= mapping->start || !mapping->path_len)
		return 0;
	for (size_t i = 0; i < rec->kernel_modules.places.len; i++)
		if (same_mapping(&rec->kernel_modules.list[i].map, mapping))
			return 0;
	if (!keep_path(rec, &m))
		return err_no_memory(err);
	r = write_module(rec, -1, &m, err);
	return r < 0 ? r : insert(&rec->kernel_modules, rec->kernel_modules.places.len, &m, err);
}

int modules_fork(struct spulse_recorder *rec, struct rec_process *parent,
		 struct rec_process *child, struct spulse_error **err)
{
	int r = 0;

	if (child->modules.places.len) {
		for (size_t i = 0; i < parent->modules.places.len && r == 0; i++)
			r = modules_map(rec, child, &parent->modules.list[i].map, err);
		return r;
	}
	if (!spread(&child->modules, parent->modules.places.len))
		return err_no_memory(err);
	for (size_t i = 0; i < parent->modules.places.len && r == 0; i++) {
		struct rec_module m = parent->modules.list[i];

		r = write_module(rec, child->pid, &m, err);
		if (r < 0)
			break;
		if (m.image)
			unw_image_ref(m.image);
		image_ref(m.file);
		child->modules.list[child->modules.places.len++] = m;
		child->modules.places.behind--;
	}
	return r;
}

int modules_retire(struct spulse_recorder *rec, struct rec_process *process,
		   struct spulse_error **err)
{
	bool had = process->modules.places.len;

	modules_release(&process->modules);
	unw_space_clear(process->space);
	u64map_release(&process->tried_pages);
	return had ? spulse_spool_writer_retire_process(rec->writer, process->pid, err) : 0;
}

void modules_release(struct rec_modules *modules)
{
	for (size_t i = 0; i < modules->places.len; i++) {
		unw_image_unref(modules->list[i].image);
		image_unref(modules->list[i].file);
	}
	if (modules->list)
		free(modules->list - modules->places.before);
	*modules = (struct rec_modules){ 0 };
}

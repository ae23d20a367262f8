/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "symbolizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES_MAX = 256, IMAGE_BYTES_MAX = 64 << 20 };

/* ---- options ---- */

void spulse_symbolizer_options_init(struct spulse_symbolizer_options *options, size_t size)
{
	options_clear(options, size);
}

static int check_backend(const struct spulse_native_backend *backend, struct spulse_error **err)
{
	struct spulse_native_backend known;

	if (backend->size < offsetof(struct spulse_native_backend, refresh) || !backend->open ||
	    !backend->symbolize)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a native backend needs open and symbolize");
	return options_read(&known, sizeof(known), backend, "functions of the native backend", err);
}

static int check_options(const struct spulse_symbolizer_options *o, struct spulse_error **err)
{
	if (o->perf_maps > SPULSE_PERF_MAPS_LISTED)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "perf_maps is out of range");
	if (o->kernel_symbols > SPULSE_KERNEL_SYMBOLS_NONE)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "kernel_symbols is out of range");
	if (o->stack_cache > SPULSE_CACHE_EXTERNAL)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "stack_cache is out of range");
	if (o->debug_servers > SPULSE_DEBUG_SERVERS_NONE)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "debug_servers is out of range");
	if (o->kernel_symbols == SPULSE_KERNEL_SYMBOLS_FILE && !o->kernel_symbols_path)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "kernel symbols from a file need kernel_symbols_path");
	if (o->perf_map_pid_count && !o->perf_map_pids)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "perf_map_pids is missing");
	for (size_t i = 0; i < o->perf_map_pid_count; i++)
		if (o->perf_map_pids[i] <= 0)
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "process id %d in perf_map_pids is not above 0",
				       (int)o->perf_map_pids[i]);
	return o->native ? check_backend(o->native, err) : 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

static bool copy_text(char **to, const char *from)
{
	if (from)
		*to = strdup(from);
	return !from || *to;
}

static bool copy_pids(struct spulse_symbolizer *sym, const pid_t *pids, size_t count)
{
	if (!count)
		return true;
	sym->perf_map_pids = malloc(count * sizeof(*pids));
	if (!sym->perf_map_pids)
		return false;
	memcpy(sym->perf_map_pids, pids, count * sizeof(*pids));
	qsort(sym->perf_map_pids, count, sizeof(*pids), compare_pids);
	sym->perf_map_pid_count = count;
	return true;
}

static int apply_options(struct spulse_symbolizer *sym, const struct spulse_symbolizer_options *o,
			 struct spulse_error **err)
{
	struct native_options native = {
		.debug_dirs = o->debug_dirs,
		.sysroot = o->sysroot,
		.servers = o->debug_servers == SPULSE_DEBUG_SERVERS_ENVIRONMENT,
		.server_timeout_s = o->debug_server_timeout_s,
		.progress = o->fetch_progress,
		.progress_data = o->fetch_progress_data,
	};

	sym->perf_maps = o->perf_maps;
	sym->kernel_source = o->kernel_symbols;
	sym->cache_stacks = o->stack_cache == SPULSE_CACHE_INTERNAL;
	sym->threads = o->threads;
	sym->backend = o->native ? o->native : spulse_native_default();
	sym->backend_data = o->native ? o->native_data : NULL;
	sym->store = native_store_new(&native);
	if ((!sym->store && spulse_native_default()) ||
	    !copy_pids(sym, o->perf_map_pids, o->perf_map_pid_count) ||
	    !copy_text(&sym->perf_map_dir, o->perf_map_dir ? o->perf_map_dir : "/tmp") ||
	    !copy_text(&sym->sysroot, o->sysroot))
		return err_no_memory(err);
	if (o->kernel_symbols == SPULSE_KERNEL_SYMBOLS_FILE) {
		sym->kernel_fd = kernel_file_open(o->kernel_symbols_path, err);
		return MIN(sym->kernel_fd, 0);
	}
	return 0;
}

/* ---- life ---- */

int symbolizer_make(const struct spulse_symbolizer_options *opts, struct spulse_symbolizer **out,
		    struct spulse_error **err)
{
	static uint64_t next_owner = 1;
	struct spulse_symbolizer_options o = { .size = sizeof(o) };
	struct spulse_symbolizer *sym;
	int r = opts ? options_read(&o, sizeof(o), opts, "symbolizer options", err) : 0;

	if (r == 0)
		r = check_options(&o, err);
	if (r < 0)
		return r;
	sym = calloc(1, sizeof(*sym));
	if (!sym)
		return err_no_memory(err);
	sym->source_number = UINT64_MAX;
	sym->kernel_fd = -1;
	sym->owner = __atomic_fetch_add(&next_owner, 1, __ATOMIC_RELAXED);
	sym->frames = frame_store_new();
	r = sym->frames ? image_cache_new(IMAGES_MAX, IMAGE_BYTES_MAX, &sym->images, err) :
			  err_no_memory(err);
	if (!r)
		r = apply_options(sym, &o, err);
	if (r < 0) {
		/* The backend's data stays the caller's when nothing was made. */
		sym->backend = NULL;
		spulse_symbolizer_free(sym);
		return r;
	}
	*out = sym;
	return 0;
}

int spulse_symbolizer_new(const struct spulse_source *source,
			  const struct spulse_symbolizer_options *opts,
			  struct spulse_symbolizer **symbolizer_out, struct spulse_error **err)
{
	struct spulse_symbolizer *sym = NULL;
	const struct spool_attachment *attachment;
	int r;

	if (!source)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no source");
	r = symbolizer_make(opts, &sym, err);
	if (r < 0)
		return r;
	sym->source = source;
	sym->source_number = spool_source_number(source);
	attachment = spool_source_attachment(source);
	if (attachment && !strcmp(attachment->kind, "images"))
		sym->handover = attachment->data;
	*symbolizer_out = sym;
	return 0;
}

static int check_modules(const struct spulse_module *const *modules, size_t count,
			 struct spulse_error **err)
{
	struct u64map ids = { 0 };
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		uint32_t id = spulse_module_id(modules[i]);
		bool added = true;

		if (id != SPULSE_NO_MODULE && !u64map_add(&ids, id, &added))
			r = err_no_memory(err);
		else if (!added)
			r = err_set(err, SPULSE_ERROR_INVALID_INPUT,
				    "module id %u is in the list twice", id);
	}
	u64map_release(&ids);
	return r;
}

int spulse_symbolizer_new_for_modules(const struct spulse_module *const *modules, size_t count,
				      const struct spulse_symbolizer_options *opts,
				      struct spulse_symbolizer **symbolizer_out,
				      struct spulse_error **err)
{
	struct spulse_symbolizer *sym = NULL;
	int r;

	if (count && !modules)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no list of modules");
	r = check_modules(modules, count, err);
	if (!r)
		r = symbolizer_make(opts, &sym, err);
	if (r < 0)
		return r;
	sym->modules = malloc((count + 1) * sizeof(struct spulse_module *));
	if (!sym->modules) {
		sym->backend = NULL;
		spulse_symbolizer_free(sym);
		return err_no_memory(err);
	}
	if (count)
		memcpy(sym->modules, modules, count * sizeof(struct spulse_module *));
	sym->module_count = count;
	*symbolizer_out = sym;
	return 0;
}

static void free_processes(struct spulse_symbolizer *sym)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&sym->processes, &i)))
		process_forget(sym, (struct process *)(uintptr_t)slot->value);
	u64map_release(&sym->processes);
}

void spulse_symbolizer_free(struct spulse_symbolizer *sym)
{
	struct u64map_slot *slot;
	size_t i = 0;

	if (!sym)
		return;
	sym->ending = sym->frames && !sym->frames->held_frames;
	symbolizer_release_modules(sym);
	spulse_module_free(sym->file_module);
	free_processes(sym);
	while (sym->frames && !sym->ending && (slot = u64map_next(&sym->kernel_frames, &i)))
		frame_run_put(sym->frames, slot->value);
	u64map_release(&sym->kernel_frames);
	if (sym->backend && sym->backend->size > offsetof(struct spulse_native_backend, release) &&
	    sym->backend->release)
		sym->backend->release(sym->backend_data);
	results_release(&sym->results);
	results_release(&sym->vmlinux_results);
	spulse_native_module_unref(sym->vmlinux);
	native_store_free(sym->store);
	image_cache_unref(sym->images);
	kernel_table_unref(sym->kernel);
	if (sym->kernel_fd >= 0)
		close(sym->kernel_fd);
	interner_release(&sym->raw_frames);
	u64map_release(&sym->build_ids);
	u64map_release(&sym->gone_modules);
	u64map_release(&sym->gone_below);
	vec_free(&sym->retired_modules);
	vec_free(&sym->retired_processes);
	vec_free(&sym->invalidation.processes);
	vec_free(&sym->scratch);
	vec_free(&sym->pending);
	vec_free(&sym->foreign);
	strbuf_release(&sym->report);
	if (sym->serials)
		u64map_release(sym->serials);
	free(sym->serials);
	free(sym->modules);
	free(sym->perf_map_pids);
	free(sym->perf_map_dir);
	free(sym->sysroot);
	frame_store_drop(sym->frames);
	free(sym);
}

bool spulse_symbolizer_has_native_backend(const struct spulse_symbolizer *sym)
{
	return sym->backend;
}

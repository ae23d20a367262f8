/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Live: what changes between two batches of a tail. A retired mapping still serves the samples
 * of the batch that says so, and is forgotten by the next update.
 */
#include <string.h>

#include "symbolizer.h"

static bool invalidate(struct spulse_symbolizer *sym, pid_t pid)
{
	struct spulse_invalidation *inv = &sym->invalidation;

	for (size_t i = 0; i < inv->processes.len; i++)
		if (inv->processes.data[i] == pid)
			return true;
	return vec_push(&inv->processes, pid);
}

static struct process *known_process(const struct spulse_symbolizer *sym, pid_t pid)
{
	const uint64_t *slot = u64map_get(&sym->processes, pid);

	return slot ? (struct process *)(uintptr_t)*slot : NULL;
}

/* Processes whose backend says that its earlier answers are outdated. */
static int ask_backends(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	struct u64map_slot *slot;
	size_t i = 0;

	if (!sym->backend ||
	    sym->backend->size <= offsetof(struct spulse_native_backend, refresh) ||
	    !sym->backend->refresh)
		return 0;
	while ((slot = u64map_next(&sym->processes, &i))) {
		struct process *process = (struct process *)(uintptr_t)slot->value;
		uint64_t generation = process->generation;

		if (!process->backend_open)
			continue;
		if (sym->backend->refresh(process->backend, &generation, err) < 0) {
			err_prefix(err, "native backend %s",
				   sym->backend->name ? sym->backend->name : "");
			return err_retype(err, SPULSE_ERROR_NATIVE_SYMBOLIZER);
		}
		if (generation == process->generation)
			continue;
		if (!invalidate(sym, process->pid))
			return err_no_memory(err);
		process->generation = generation;
		process_drop_frames(sym, process, false);
	}
	return 0;
}

/* Modules that reached a lookup. */
static void retire_modules_of(struct spulse_symbolizer *sym, const struct retired_process *process)
{
	VEC(const struct spulse_module *) gone = { 0 };
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&sym->module_states, &i))) {
		const struct module_state *state = (struct module_state *)(uintptr_t)slot->value;

		if (!spulse_module_is_kernel(state->module) &&
		    spulse_module_pid(state->module) == process->pid &&
		    spulse_module_id(state->module) < process->end &&
		    !vec_push(&gone, state->module))
			break;
	}
	for (size_t k = 0; k < gone.len; k++)
		module_retire(sym, gone.data[k]);
	vec_free(&gone);
}

static int forget_module(struct spulse_symbolizer *sym, uint32_t id, struct spulse_error **err)
{
	const struct spulse_module *module = spulse_source_module_by_id(sym->source, id);

	if (module) {
		struct process *process = known_process(sym, spulse_module_pid(module));

		module_retire(sym, module);
		if (process)
			jit_forget_module(process, id);
		if (process && process->has_raw)
			process_drop_raw(sym, process);
	}
	return u64map_set(&sym->gone_modules, id, 1) ? 0 : err_no_memory(err);
}

static int forget_process(struct spulse_symbolizer *sym, const struct retired_process *gone,
			  struct spulse_error **err)
{
	struct process *process = known_process(sym, gone->pid);

	retire_modules_of(sym, gone);
	if (process) {
		u64map_remove(&sym->processes, gone->pid);
		process_forget(sym, process);
	}
	return invalidate(sym, gone->pid) &&
			       u64map_set(&sym->gone_below, gone->pid, gone->end) ?
		       0 : err_no_memory(err);
}

/* What the previous batch retired is no longer needed. */
static int apply_retirements(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < sym->retired_modules.len && !r; i++)
		r = forget_module(sym, sym->retired_modules.data[i], err);
	for (size_t i = 0; i < sym->retired_processes.len && !r; i++)
		r = forget_process(sym, &sym->retired_processes.data[i], err);
	sym->retired_modules.len = sym->retired_processes.len = 0;
	return r;
}

static bool is_listed(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* One process's perf map: read at first sight, later only when its file changed. */
static int refresh_map(struct spulse_symbolizer *sym, pid_t pid, bool retired,
		       struct spulse_error **err)
{
	struct process *process = symbolizer_process(sym, pid);
	bool first, changed = false;
	int r;

	if (!process)
		return err_no_memory(err);
	first = !process->map_tried;
	/* A map that went with its process still serves the process's last samples. */
	if (process->map && retired && !perfmap_exists(process->map))
		return 0;
	if (!process->map) {
		r = process_load_map(sym, process, err);
		changed = !first && process->map;
	} else {
		r = perfmap_refresh(process->map, &changed, err);
	}
	if (r < 0 || !changed)
		return r;
	process_drop_frames(sym, process, true);
	return invalidate(sym, pid) ? 0 : err_no_memory(err);
}

static int refresh_maps(struct spulse_symbolizer *sym, const struct spulse_batch *batch,
			const struct spool_batch_view *view, struct spulse_error **err)
{
	size_t count;
	const pid_t *processes = spulse_batch_processes(batch, &count);
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		if (perf_maps_allowed(sym, processes[i]))
			r = refresh_map(sym, processes[i],
					is_listed(view->retired_processes,
						  view->retired_process_count, processes[i]),
					err);
	return r;
}

static bool has_kernel_module(const struct spulse_symbolizer *sym,
			      const struct spool_batch_view *view)
{
	for (uint32_t id = view->first_module; id < view->end_module; id++) {
		const struct spulse_module *module = spulse_source_module_by_id(sym->source, id);

		if (module && spulse_module_is_kernel(module) &&
		    spulse_module_start(module) < spulse_module_end(module))
			return true;
	}
	for (size_t i = 0; i < view->retired_module_count; i++) {
		const struct spulse_module *module =
			spulse_source_module_by_id(sym->source, view->retired_modules[i]);

		if (module && spulse_module_is_kernel(module))
			return true;
	}
	return false;
}

static bool has_kernel_frame(const struct spulse_symbolizer *sym,
			     const struct spool_batch_view *view)
{
	size_t count;
	const struct spulse_frame *frames = spulse_source_frames(sym->source, &count);

	for (uint32_t id = view->first_frame; id < MIN(view->end_frame, count); id++)
		if (frames[id].mode == SPULSE_FRAME_KERNEL)
			return true;
	return false;
}

static void drop_kernel_frames(struct spulse_symbolizer *sym)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&sym->kernel_frames, &i)))
		frame_run_put(sym->frames, slot->value);
	u64map_release(&sym->kernel_frames);
}

/*
 * A sparse table knows only the addresses it was made for: new ones need another. Its slide may
 * depend on where the recording saw the kernel, so a new kernel mapping outdates every name.
 */
static void refresh_kernel(struct spulse_symbolizer *sym, const struct spool_batch_view *view)
{
	bool sparse = sym->kernel_source == SPULSE_KERNEL_SYMBOLS_HOST && sym->kernel_loaded &&
		      (!sym->kernel || sym->kernel->asked);
	bool moved = sparse && has_kernel_module(sym, view);
	struct u64map_slot *slot;
	size_t i = 0;

	if (!sparse || (!moved && !has_kernel_frame(sym, view)))
		return;
	kernel_table_unref(sym->kernel);
	sym->kernel = NULL;
	sym->kernel_loaded = false;
	if (!moved)
		return;
	sym->invalidation.all = true;
	drop_kernel_frames(sym);
	while ((slot = u64map_next(&sym->processes, &i)))
		process_drop_frames(sym, (struct process *)(uintptr_t)slot->value, false);
}

static bool remember_retirements(struct spulse_symbolizer *sym,
				 const struct spool_batch_view *view)
{
	for (size_t i = 0; i < view->retired_module_count; i++)
		if (!vec_push(&sym->retired_modules, view->retired_modules[i]))
			return false;
	for (size_t i = 0; i < view->retired_process_count; i++)
		if (!vec_push(&sym->retired_processes,
			      (struct retired_process){ view->retired_processes[i],
							view->end_module }))
			return false;
	return true;
}

/* Stacks that are resolved without a spool's frame ids may bind to what is new. */
static void drop_raw_stacks(struct spulse_symbolizer *sym, const struct spool_batch_view *view)
{
	for (uint32_t id = view->first_module; id < view->end_module; id++) {
		const struct spulse_module *module = spulse_source_module_by_id(sym->source, id);
		struct process *process;

		if (!module || spulse_module_is_kernel(module))
			continue;
		process = known_process(sym, spulse_module_pid(module));
		if (process && process->has_raw)
			process_drop_raw(sym, process);
	}
}

int spulse_symbolizer_update(struct spulse_symbolizer *sym, const struct spulse_batch *batch,
			     const struct spulse_invalidation **invalidation_out,
			     struct spulse_error **err)
{
	struct spool_batch_view view;
	int r;

	spool_batch_view(batch, &view);
	if (!sym->source || spool_source_number(view.source) != sym->source_number)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "the batch was read by another reader than this symbolizer's");
	if (sym->live && view.end_module > view.first_module &&
	    view.end_module <= sym->modules_seen)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "module id %u was taken over before: one update for each batch",
			       view.first_module);
	symbolizer_begin(sym);
	if (!sym->live && sym->kernel_loaded &&
	    sym->kernel_source == SPULSE_KERNEL_SYMBOLS_HOST && !sym->kernel)
		sym->kernel_loaded = false;
	sym->live = true;
	/* What a failed update found out is told by the next one that works. */
	if (sym->invalidation.told) {
		sym->invalidation.all = false;
		sym->invalidation.processes.len = 0;
	}
	sym->invalidation.told = false;
	r = ask_backends(sym, err);
	if (!r)
		r = apply_retirements(sym, err);
	if (!r) {
		drop_raw_stacks(sym, &view);
		r = refresh_maps(sym, batch, &view, err);
	}
	if (r < 0)
		return r;
	refresh_kernel(sym, &view);
	if (!remember_retirements(sym, &view))
		return err_no_memory(err);
	sym->modules_seen = MAX(sym->modules_seen, view.end_module);
	sym->invalidation.told = true;
	*invalidation_out = &sym->invalidation;
	return 0;
}

const struct spulse_resolved_frame *
spulse_symbolizer_frame(const struct spulse_symbolizer *symbolizer, struct spulse_frame_id id)
{
	struct spulse_symbolizer *sym = (struct spulse_symbolizer *)symbolizer;
	const uint64_t *index;

	if (id.owner != sym->owner)
		return NULL;
	if (!sym->serials) {
		sym->serials = calloc(1, sizeof(*sym->serials));
		if (!sym->serials)
			return NULL;
		for (uint32_t i = 0; i < sym->frames->slabs.len * SLAB_FRAMES; i++)
			if (frame_at(sym->frames, i)->refs)
				u64map_set(sym->serials, frame_at(sym->frames, i)->serial, i);
	}
	index = u64map_get(sym->serials, id.serial);
	if (!index || !frame_at(sym->frames, *index)->refs ||
	    frame_at(sym->frames, *index)->serial != id.serial)
		return NULL;
	return frame_at(sym->frames, *index);
}

bool spulse_invalidation_all(const struct spulse_invalidation *invalidation)
{
	return invalidation->all;
}

const pid_t *spulse_invalidation_processes(const struct spulse_invalidation *invalidation,
					   size_t *count_out)
{
	*count_out = invalidation->processes.len;
	return invalidation->processes.data;
}

bool spulse_invalidation_affects(const struct spulse_invalidation *invalidation, pid_t pid)
{
	return invalidation->all || is_listed(invalidation->processes.data,
					      invalidation->processes.len, pid);
}

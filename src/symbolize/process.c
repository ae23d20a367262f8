/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What is kept for each process. */
#include <stdlib.h>

#include "symbolizer.h"

struct process *symbolizer_process(struct spulse_symbolizer *sym, pid_t pid)
{
	struct process *process;
	uint64_t *known;

	if (sym->last_process && sym->last_process->pid == pid)
		return sym->last_process;
	known = u64map_get(&sym->processes, pid);
	if (known)
		return sym->last_process = (struct process *)(uintptr_t)*known;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	if (!u64map_set(&sym->processes, pid, (uintptr_t)process)) {
		free(process);
		return NULL;
	}
	return sym->last_process = process;
}

void process_drop_stacks(struct spulse_symbolizer *sym, struct process *process)
{
	sym->stack_memory -= process->lists.len;
	u64map_release(&process->stacks);
	vec_free(&process->lists);
}

static void drop_run(struct spulse_symbolizer *sym, uint64_t value)
{
	uint32_t first = value;

	if (sym->serials)
		for (unsigned int i = 0; i < frame_at(sym->frames, first)->run_length; i++)
			u64map_remove(sym->serials, frame_at(sym->frames, first + i)->serial);
	frame_run_put(sym->frames, first);
}

/* Drops the frames that have one of the flags; 0: all. */
static void drop_frames(struct spulse_symbolizer *sym, struct process *process, unsigned int flags)
{
	struct u64map kept = { 0 };
	struct u64map_slot *slot;
	size_t i = 0;

	while (!sym->ending && (slot = u64map_next(&process->frames, &i))) {
		bool keep = flags && !(slot->value >> 32 & flags);

		/* Without memory to keep it a frame is made again when it is asked for. */
		if (!keep || !u64map_set(&kept, slot->key, slot->value))
			drop_run(sym, slot->value);
	}
	u64map_release(&process->frames);
	process->frames = kept;
}

void process_drop_frames(struct spulse_symbolizer *sym, struct process *process,
			 bool perf_map_only)
{
	drop_frames(sym, process, perf_map_only ? FRAME_ON_PERF_MAP : 0);
	process_drop_stacks(sym, process);
}

void process_drop_raw(struct spulse_symbolizer *sym, struct process *process)
{
	drop_frames(sym, process, FRAME_RAW);
	process->has_raw = false;
}

void process_forget(struct spulse_symbolizer *sym, struct process *process)
{
	process_drop_frames(sym, process, false);
	perfmap_free(process->map);
	jit_forget(process);
	if (process->backend_open && sym->backend->close)
		sym->backend->close(process->backend);
	if (sym->last_process == process)
		sym->last_process = NULL;
	free(process);
}

bool perf_maps_allowed(const struct spulse_symbolizer *sym, pid_t pid)
{
	size_t low = 0, high = sym->perf_map_pid_count;

	if (sym->perf_maps != SPULSE_PERF_MAPS_LISTED)
		return sym->perf_maps == SPULSE_PERF_MAPS_ALL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sym->perf_map_pids[middle] == pid)
			return true;
		if (sym->perf_map_pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

int process_load_map(struct spulse_symbolizer *sym, struct process *process,
		     struct spulse_error **err)
{
	process->map_tried = true;
	return perfmap_load(sym->perf_map_dir, process->pid, &process->map, &process->map_reason,
			    err);
}

static int backend_error(struct spulse_symbolizer *sym, struct spulse_error **err)
{
	err_prefix(err, "native backend %s", sym->backend->name ? sym->backend->name : "");
	return err_retype(err, SPULSE_ERROR_NATIVE_SYMBOLIZER);
}

int process_open_backend(struct spulse_symbolizer *sym, struct process *process,
			 struct spulse_error **err)
{
	const struct spulse_native_backend *backend = sym->backend;

	if (process->backend_open)
		return 0;
	if (backend->open(sym->backend_data, process->pid, &process->backend, err) < 0)
		return backend_error(sym, err);
	if (backend->size > offsetof(struct spulse_native_backend, refresh) && backend->refresh &&
	    backend->refresh(process->backend, &process->generation, err) < 0) {
		if (backend->close)
			backend->close(process->backend);
		process->backend = NULL;
		return backend_error(sym, err);
	}
	process->backend_open = true;
	return 0;
}

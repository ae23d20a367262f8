/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Losses, and the repair after them: the kernel dropped records when a ring was full, maybe those
 * of forks and mappings too. A sweep compares what is known with what /proc shows now.
 */
#include "recorder.h"

#include <errno.h>

static const int64_t losses_pause_ns = 100 * 1000000;
static const int64_t sweep_pause_ns = 250 * 1000000;

/* Below this a ring may never again have room for the record that tells of a loss. */
enum { SMALL_RING = 2 * 65535 };

struct loss_sum {
	struct spulse_recorder *rec;
	uint64_t total;
	bool no_memory, overflow;
};

static void add_loss(void *data, pid_t pid, pid_t tid, uint64_t lost)
{
	struct loss_sum *sum = data;

	sum->overflow |= add_overflows(sum->total, lost, &sum->total);
	sum->no_memory |= !losses_count(sum->rec, pid, tid, lost);
}

int recover_read_losses(struct spulse_recorder *rec, struct spulse_error **err)
{
	struct loss_sum sum = { .rec = rec };
	int r;

	if (!rec->events)
		return 0;
	rec->losses_read_ns = rec_monotonic_ns();
	rec->merge.seen = false;
	r = perf_events_read_losses(rec->events, add_loss, &sum, err);
	if (r < 0)
		return r;
	if (sum.no_memory)
		return err_no_memory(err);
	if (sum.overflow ||
	    add_overflows(rec->summary.lost_events, sum.total, &rec->summary.lost_events))
		return err_file(err, SPULSE_ERROR_IO, EOVERFLOW, NULL,
				"the sum of losses is too large");
	if (!sum.total)
		return 0;
	rec->summary.lifecycle_gaps++;
	rec->sweep_pending = true;
	return losses_share(rec, err);
}

bool recover_losses_due(const struct spulse_recorder *rec, enum rec_drain kind)
{
	const struct spulse_recording_summary *s = &rec->summary;

	if (kind != REC_CONSUME)
		return true;
	if (rec_monotonic_ns() - rec->losses_read_ns < losses_pause_ns)
		return false;
	return rec->merge.seen ||
	       (s->lost_events && s->minimum_ring_buffer_bytes < SMALL_RING);
}

bool recover_due(const struct spulse_recorder *rec, enum rec_drain kind)
{
	if (!rec->sweep_pending)
		return false;
	return kind != REC_CONSUME || rec_monotonic_ns() - rec->sweep_ns >= sweep_pause_ns;
}

/* A process that was there before, as it is now. */
static int check_process(struct spulse_recorder *rec, struct rec_process *process,
			 struct spulse_error **err)
{
	uint64_t device = process->exe_device, inode = process->exe_inode;
	bool had = process->has_exe, gone, same;

	if (process->exited)
		return 0;
	process_read_exe(process);
	same = !process->has_exe || !had ||
	       (device == process->exe_device && inode == process->exe_inode);
	return maps_reconcile(rec, process, same, &gone, err);
}

/* A descendant whose fork was missed. */
static int adopt(struct spulse_recorder *rec, pid_t pid, pid_t parent, bool may_open,
		 struct spulse_error **err)
{
	bool inherits = threads_any_inherits(rec, parent);
	struct rec_process *process;

	if (process_find(rec, pid))
		return 0;
	if (!inherits && may_open) {
		struct rec_attach attach = {.pid = pid, .mode = SPULSE_ATTACH_STOP, .clamp = true};

		return attach_process(rec, &attach, NULL, NULL, err);
	}
	process = process_get(rec, pid, err);
	if (!process)
		return -(int)spulse_error_kind(*err);
	if (process_find(rec, parent))
		process->counted_by = process_find(rec, parent)->counted_by;
	return threads_add(rec, pid, pid, true) ? 0 : err_no_memory(err);
}

static int adopt_children(struct spulse_recorder *rec, bool may_open, struct spulse_error **err)
{
	struct spulse_process_edge *edges;
	size_t n, known = rec->processes.len;
	int r = 0;

	for (size_t p = 0; p < known && p < rec->processes.len && r == 0; p++) {
		if (!rec->processes.data[p]->attached ||
		    spulse_children_discover_edges(rec->processes.data[p]->pid, &edges, &n,
						   NULL) < 0)
			continue;
		for (size_t i = 0; i < n && r == 0; i++)
			r = adopt(rec, edges[i].child, edges[i].parent, may_open, err);
		spulse_array_free(edges);
	}
	return r;
}

int recover_sweep(struct spulse_recorder *rec, bool may_open, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < rec->processes.len && r == 0; i++)
		r = check_process(rec, rec->processes.data[i], err);
	if (r == 0 && may_open && rec->options.follow != SPULSE_FOLLOW_NONE)
		r = adopt_children(rec, may_open, err);
	for (size_t i = 0; i < rec->processes.len && r == 0 && may_open; i++) {
		bool gone;

		if (!rec->processes.data[i]->exited)
			r = threads_refresh(rec, rec->processes.data[i], &gone, err);
	}
	rec->sweep_ns = rec_monotonic_ns();
	if (r == 0)
		rec->sweep_pending = false;
	return r;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Who lost how much. The loss counters of the events are exact, but an event that is inherited
 * counts for every thread and process that descends from the one it was opened for. LOST records
 * name the thread that ran when the ring had room again: mostly the one that filled it. Threads
 * without events of their own get their part by these. The sum is always that of the counters.
 */
#include "recorder.h"

#include <stdlib.h>

/* Records of losses that no counter has confirmed yet. */
enum { MAX_NOTES = 1024 };

static struct rec_loss *row_of(struct spulse_recorder *rec, pid_t pid, pid_t tid)
{
	uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	const struct rec_loss fresh = {.loss = {.pid = pid, .tid = tid}};
	bool added;
	uint64_t *index = u64map_add(&rec->loss_of_thread, key, &added);

	if (!index || (added && !vec_push(&rec->losses, fresh)))
		return NULL;
	if (added)
		*index = rec->losses.len - 1;
	return &rec->losses.data[*index];
}

bool losses_count(struct spulse_recorder *rec, pid_t pid, pid_t tid, uint64_t lost)
{
	struct rec_loss *row = row_of(rec, pid, tid);

	if (!row)
		return false;
	row->counted = true;
	row->loss.lost += lost;
	return true;
}

int losses_note(struct spulse_recorder *rec, const struct perf_event *event,
		struct spulse_error **err)
{
	const struct rec_process *process = process_find(rec, event->pid);
	const struct rec_thread *thread = threads_find(rec, event->tid);
	const struct rec_loss_note note = {
		.pid = event->pid,
		.tid = event->tid,
		.counted_by = process ? process->counted_by : 0,
		.count = event->lost.count,
	};

	if (!rec->events || !event->has_ids || event->pid <= 0 || event->tid <= 0 ||
	    (thread && thread->opened) || rec->loss_notes.len >= MAX_NOTES)
		return 0;
	return vec_push(&rec->loss_notes, note) ? 0 : err_no_memory(err);
}

/* The counter that holds what a note tells of: of the same process, else of an ancestor. */
static struct rec_loss *find_counter(struct spulse_recorder *rec, const struct rec_loss_note *note)
{
	struct rec_loss *best = NULL;

	for (size_t i = 0; i < rec->losses.len; i++) {
		struct rec_loss *row = &rec->losses.data[i];
		bool same = row->loss.pid == note->pid;

		if (!row->counted || !row->loss.lost)
			continue;
		if (!same && row->loss.pid != note->counted_by && row->loss.pid > 0)
			continue;
		if (!best || (same && best->loss.pid != note->pid) ||
		    (same == (best->loss.pid == note->pid) && row->loss.lost > best->loss.lost))
			best = row;
	}
	return best;
}

int losses_share(struct spulse_recorder *rec, struct spulse_error **err)
{
	for (size_t i = 0; i < rec->loss_notes.len; i++) {
		const struct rec_loss_note *note = &rec->loss_notes.data[i];
		struct rec_loss *to = row_of(rec, note->pid, note->tid), *from;
		uint64_t count = note->count;

		if (!to)
			return err_no_memory(err);
		while (!to->counted && count && (from = find_counter(rec, note))) {
			uint64_t part = MIN(count, from->loss.lost);

			from->loss.lost -= part;
			to->loss.lost += part;
			count -= part;
		}
	}
	rec->loss_notes.len = 0;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct spulse_loss *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return x->pid != y->pid ? x->pid - y->pid : x->tid - y->tid;
}

const struct spulse_loss *spulse_recorder_losses(struct spulse_recorder *rec, size_t *count_out)
{
	*count_out = rec->loss_list.len = 0;
	if (!vec_reserve(&rec->loss_list, rec->losses.len))
		return NULL;
	for (size_t i = 0; i < rec->losses.len; i++)
		if (rec->losses.data[i].loss.lost)
			rec->loss_list.data[rec->loss_list.len++] = rec->losses.data[i].loss;
	*count_out = rec->loss_list.len;
	if (rec->loss_list.len)
		qsort(rec->loss_list.data, rec->loss_list.len, sizeof(struct spulse_loss),
		      compare);
	return rec->loss_list.data;
}

void losses_free(struct spulse_recorder *rec)
{
	vec_free(&rec->losses);
	vec_free(&rec->loss_list);
	vec_free(&rec->loss_notes);
	u64map_release(&rec->loss_of_thread);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One drain: a pass over the rings, then what must not happen in the middle of it: opens and
 * closes, ended processes, losses and the repair after them.
 */
#include "recorder.h"

static int consume(struct spulse_recorder *rec, enum merge_mode mode, struct spulse_error **err)
{
	return merge_pass(&rec->merge, mode, lifecycle_event, rec, err);
}

static void doom(struct spulse_recorder *rec)
{
	for (size_t i = 0; i < rec->processes.len; i++)
		rec->processes.data[i]->doomed = rec->processes.data[i]->exited;
}

static int retire_doomed(struct spulse_recorder *rec, bool all, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = rec->processes.len; i-- > 0 && r == 0;) {
		struct rec_process *process = rec->processes.data[i];

		if (process->doomed || (all && process->exited))
			r = process_retire(rec, process, rec->newest, err);
	}
	return r;
}

static int repair(struct spulse_recorder *rec, enum rec_drain kind, struct spulse_error **err)
{
	/* What /proc shows is the present: everything older goes first. */
	int r = kind == REC_CONSUME ? consume(rec, MERGE_ALL, err) : 0;

	return r < 0 ? r : recover_sweep(rec, kind != REC_FINAL, err);
}

static void refresh_summary(struct spulse_recorder *rec)
{
	struct spulse_recording_summary *s = &rec->summary;

	if (!rec->events)
		return;
	s->kernel_enabled = rec->options.include_kernel && perf_events_kernel_enabled(rec->events);
	s->sampling_event = perf_events_event(rec->events);
	perf_events_ring_range(rec->events, &s->minimum_ring_buffer_bytes,
			       &s->maximum_ring_buffer_bytes);
}

int drain(struct spulse_recorder *rec, enum rec_drain kind, struct spulse_error **err)
{
	int r;

	doom(rec);
	r = consume(rec, kind == REC_CONSUME ? MERGE_SETTLED : MERGE_ALL, err);
	if (r == 0)
		r = lifecycle_replay(rec, kind != REC_FINAL, err);
	if (r == 0)
		r = process_find_dead(rec, err);
	if (r == 0 && recover_losses_due(rec, kind))
		r = recover_read_losses(rec, err);
	if (r == 0 && recover_due(rec, kind))
		r = repair(rec, kind, err);
	if (r == 0)
		r = retire_doomed(rec, kind == REC_FINAL, err);
	refresh_summary(rec);
	return r;
}

int drain_publish(struct spulse_recorder *rec, struct spulse_error **err)
{
	int r = spulse_spool_writer_flush(rec->writer, err);

	rec->publish_ns = rec_monotonic_ns();
	if (r == 0 && rec->channel)
		spool_channel_publish(rec->channel, spool_writer_written(rec->writer));
	return r;
}

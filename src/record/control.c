/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The calls on a recorder that exists: check, do, latch what ends it. */
#include "recorder.h"

#include <string.h>

static const int64_t cpus_pause_ns = 1000000000;

/* 0, or the error that every call gives from now on. */
static int check(const struct spulse_recorder *rec, struct spulse_error **err)
{
	if (rec->terminal)
		return err_repeat(err, rec->terminal);
	if (rec->finished)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the recording is finished");
	return 0;
}

/* Hands `why` (taken over) to the caller; it ends the recording. */
static int end_with(struct spulse_recorder *rec, struct spulse_error *why,
		    struct spulse_error **err)
{
	int r;

	recorder_latch(rec, why);
	r = err_repeat(err, why);
	spulse_error_free(why);
	return r;
}

/* ---- poll ---- */

static int count_active(struct spulse_recorder *rec, struct spulse_poll_summary *poll,
			struct spulse_error **err)
{
	int r = process_find_dead(rec, err);

	poll->active_processes = 0;
	poll->root_active = false;
	for (size_t i = 0; i < rec->processes.len && r == 0; i++) {
		const struct rec_process *process = rec->processes.data[i];

		poll->active_processes += !process->exited;
		poll->root_active |= process->pid == rec->root && !process->exited;
	}
	return r;
}

/* CPUs that came after the events were opened. */
static int cover_cpus(struct spulse_recorder *rec)
{
	uint64_t before = rec->summary.uncovered_cpus;
	struct proc_cpus cpus = { 0 };
	int64_t now = rec_monotonic_ns();

	if (now - rec->cpus_ns < cpus_pause_ns)
		return 0;
	rec->cpus_ns = now;
	if (proc_online_cpus(&cpus, NULL) == 0)
		rec->summary.uncovered_cpus =
			perf_events_cover_cpus(rec->events, cpus.cpus.data, cpus.cpus.len);
	vec_free(&cpus.cpus);
	if (rec->summary.uncovered_cpus > before)
		log_warning("%llu CPUs came online and cannot be sampled",
			    (unsigned long long)rec->summary.uncovered_cpus);
	return 0;
}

static int work(struct spulse_recorder *rec, int64_t timeout_ns, struct spulse_error **err)
{
	int r = 0;

	if (!rec->merge.pending)
		r = perf_events_wait(rec->events, timeout_ns, err);
	if (r >= 0)
		r = drain(rec, REC_CONSUME, err);
	if (r == 0)
		r = threads_reconcile(rec, err);
	if (r == 0)
		r = cover_cpus(rec);
	if (r == 0 && rec_monotonic_ns() - rec->publish_ns >= rec->options.publish_interval_ns)
		r = drain_publish(rec, err);
	return r;
}

static void fill_poll(const struct spulse_poll_summary *from, struct spulse_poll_summary *to)
{
	size_t size = MIN(to->size, sizeof(*from));

	if (size > sizeof(to->size))
		memcpy((char *)to + sizeof(to->size), (const char *)from + sizeof(to->size),
		       size - sizeof(to->size));
}

int spulse_recorder_poll(struct spulse_recorder *rec, int64_t timeout_ns,
			 struct spulse_poll_summary *poll_out, struct spulse_error **err)
{
	uint64_t samples = rec->summary.samples, lost = rec->summary.lost_events;
	struct spulse_error *why = NULL;
	int r = check(rec, err);

	if (r < 0)
		return r;
	r = work(rec, timeout_ns, &why);
	if (r == 0)
		r = count_active(rec, &rec->poll, &why);
	rec->poll.samples = rec->summary.samples - samples;
	rec->poll.lost_events = rec->summary.lost_events - lost;
	rec->poll.pending_events = rec->merge.pending;
	if (r < 0)
		return end_with(rec, why, err);
	if (poll_out)
		fill_poll(&rec->poll, poll_out);
	return 0;
}

void spulse_recorder_last_poll(const struct spulse_recorder *rec,
			       struct spulse_poll_summary *poll_out)
{
	fill_poll(&rec->poll, poll_out);
}

int spulse_recorder_flush(struct spulse_recorder *rec, struct spulse_error **err)
{
	struct spulse_error *why = NULL;
	int r = check(rec, err);

	if (r < 0)
		return r;
	r = drain(rec, REC_FLUSH, &why);
	if (r == 0)
		r = drain_publish(rec, &why);
	return r < 0 ? end_with(rec, why, err) : 0;
}

/* ---- more targets ---- */

int spulse_recorder_attach_process(struct spulse_recorder *rec, pid_t pid,
				   enum spulse_attach_mode mode,
				   enum spulse_attach_outcome *outcome_out,
				   struct spulse_error **err)
{
	struct rec_attach attach = { .pid = pid, .mode = mode };
	int r = check(rec, err);

	if (r < 0)
		return r;
	if (!spulse_pid_valid(pid))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not a process id", pid);
	if ((unsigned int)mode > SPULSE_ATTACH_ON_EXEC)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "unknown attach mode");
	if (rec->options.system_wide) {
		*outcome_out = SPULSE_ALREADY_ATTACHED;
		return 0;
	}
	r = attach_process(rec, &attach, NULL, NULL, err);
	if (r == 0 && attach.outcome == SPULSE_ATTACHED && mode != SPULSE_ATTACH_ON_EXEC &&
	    rec->options.follow == SPULSE_FOLLOW_DESCENDANTS)
		r = attach_descendants(rec, pid, mode, err);
	if (r == 0)
		*outcome_out = attach.outcome;
	return r;
}

int spulse_recorder_refresh_threads(struct spulse_recorder *rec, pid_t pid,
				    enum spulse_refresh_outcome *outcome_out,
				    struct spulse_error **err)
{
	struct rec_process *process;
	bool gone;
	int r = check(rec, err);

	if (r < 0)
		return r;
	process = process_find(rec, pid);
	if (!process)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process %d is not recorded", pid);
	r = threads_refresh(rec, process, &gone, err);
	if (r == 0)
		*outcome_out = gone ? SPULSE_REFRESH_EXITED : SPULSE_REFRESHED;
	return r;
}

/* ---- pause ---- */

int spulse_recorder_enable(struct spulse_recorder *rec, struct spulse_error **err)
{
	int r = check(rec, err);

	if (r == 0)
		r = perf_events_enable(rec->events, err);
	if (r == 0)
		rec->paused = false;
	return r;
}

int spulse_recorder_disable(struct spulse_recorder *rec, struct spulse_error **err)
{
	int r = check(rec, err);

	if (r == 0)
		r = perf_events_disable(rec->events, err);
	if (r == 0)
		rec->paused = true;
	return r;
}

/* ---- questions ---- */

bool spulse_recorder_has_pending_events(const struct spulse_recorder *rec)
{
	return rec->merge.pending;
}

int spulse_recorder_fd(const struct spulse_recorder *rec)
{
	return perf_events_fd(rec->events);
}

int spulse_recorder_process_is_active(struct spulse_recorder *rec, pid_t pid,
				      struct spulse_error **err)
{
	struct rec_process *process = process_find(rec, pid);

	return process ? process_alive(rec, process, err) : 0;
}

int spulse_recorder_has_active_processes_except(struct spulse_recorder *rec, pid_t pid,
						struct spulse_error **err)
{
	int r = process_find_dead(rec, err);

	for (size_t i = 0; i < rec->processes.len && r == 0; i++)
		r = rec->processes.data[i]->pid != pid && !rec->processes.data[i]->exited;
	return r;
}

int spulse_recorder_active_process_count(struct spulse_recorder *rec, size_t *count_out,
					 struct spulse_error **err)
{
	size_t count = 0;
	int r = process_find_dead(rec, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < rec->processes.len; i++)
		count += !rec->processes.data[i]->exited;
	*count_out = count;
	return 0;
}

void spulse_recorder_summary(const struct spulse_recorder *rec,
			     struct spulse_recording_summary *summary)
{
	size_t size = MIN(summary->size, sizeof(rec->summary));

	if (size > sizeof(summary->size))
		memcpy((char *)summary + sizeof(summary->size),
		       (const char *)&rec->summary + sizeof(summary->size),
		       size - sizeof(summary->size));
}

/* ---- tail and finish ---- */

int spulse_recorder_tail(struct spulse_recorder *rec, struct spulse_tail **tail_out,
			 struct spulse_error **err)
{
	struct spool_attachment *images;
	int r;

	if (!rec->channel)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "this recording goes to an output that cannot be read back");
	if (rec->tail_taken)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the recorder has a tail already");
	if (!rec->finished && !rec->terminal) {
		r = spulse_recorder_flush(rec, err);
		if (r < 0)
			return r;
	}
	images = share_images(rec);
	if (!images)
		return err_no_memory(err);
	r = spool_tail_open_channel(rec->fd, rec->path, rec->channel, images,
				    rec->options.disposable, tail_out, err);
	images->unref(images);
	if (r == 0)
		rec->tail_taken = true;
	return r;
}

/* Every sample that the kernel delivered is in the spool, or in a counter. */
static bool is_complete(const struct spulse_recording_summary *s)
{
	return s->sample_events == s->samples + s->missing_pid_samples + s->missing_tid_samples +
					   s->idle_tid_samples + s->missing_timestamp_samples +
					   s->empty_stack_samples + s->excluded_kernel_samples +
					   s->queued_samples + s->failed_samples +
					   s->other_program_samples;
}

/* Keeps the first failure; the next is attached to it, others are dropped. */
static int note(struct spulse_error **first, struct spulse_error *second, int r)
{
	if (r == 0)
		return 0;
	if (!*first)
		*first = second;
	else
		err_attach_cleanup(first, second);
	return r;
}

static void last_steps(struct spulse_recorder *rec, struct spulse_error **first)
{
	struct spulse_error *why = NULL;
	int r = rec->events ? perf_events_disable(rec->events, &why) : 0;

	note(first, why, r);
	why = NULL;
	if (!rec->terminal) {
		r = drain(rec, REC_FINAL, &why);
		if (r == 0)
			r = offcpu_finish(rec, &why);
		if (r == 0)
			r = annotate_end(rec, &why);
		note(first, why, r);
		why = NULL;
	}
	r = spulse_spool_writer_finish(rec->writer, &why);
	note(first, why, r);
	if (!is_complete(&rec->summary))
		note(first, spulse_error_new(SPULSE_ERROR_IO, 0, NULL, NULL, 0,
					     "samples are missing from the counters"), -1);
}

static void end_channel(struct spulse_recorder *rec, struct spulse_error *first)
{
	if (!rec->channel)
		return;
	if (!first)
		spool_channel_publish(rec->channel, spool_writer_written(rec->writer));
	spool_channel_end(rec->channel, first, &rec->summary);
}

int spulse_recorder_finish(struct spulse_recorder *rec,
			   struct spulse_recording_summary *summary_out,
			   struct spulse_error **err)
{
	struct spulse_error *first = err_ref(rec->terminal);
	int r;

	if (rec->finished)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the recording is finished");
	last_steps(rec, &first);
	rec->finished = true;
	end_channel(rec, first);
	if (summary_out)
		spulse_recorder_summary(rec, summary_out);
	r = first ? err_repeat(err, first) : 0;
	spulse_error_free(first);
	return r;
}

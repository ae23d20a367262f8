/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Time that threads spend blocked. The kernel takes a sample when a thread is switched out; its
 * stack is kept until the thread runs again. A wait then becomes as many samples as the sampling
 * interval fits into it, with one frame more at the inner end, so that counts of samples stay
 * proportional to time. What is left over is carried on to the thread's next wait.
 */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

/* A longer wait is cut: a day at 10 kHz. */
enum { MAX_SAMPLES_OF_A_WAIT = 1 << 20 };

struct waiting {
	pid_t pid, tid;
	bool blocked;
	bool truncated; /* its stack ends with the marker */
	uint64_t since, carried;
	uint64_t gone; /* when it was found to have ended, 0 = not yet */
	VEC(uint32_t) frames;
};

struct rec_off_cpu {
	uint32_t frame; /* interned [off-cpu] */
	uint64_t interval;
	VEC(struct waiting) threads;
	struct u64map of_tid;
	uint64_t cut; /* samples that the limit kept out */
};

static int make_frame(struct spulse_recorder *rec, uint32_t *frame_out, struct spulse_error **err)
{
	static const char path[] = "[off-cpu]";
	const struct spulse_module_fields fields = {
		.size = sizeof(fields), .pid = -1, .is_kernel = 1, .start = 1, .end = 2,
		.path = path, .path_len = sizeof(path) - 1,
	};
	struct spulse_frame frame = { .abs_ip = 1, .mode = SPULSE_FRAME_KERNEL };
	int r = spulse_spool_writer_module(rec->writer, &fields, &frame.module_id, err);

	if (r < 0)
		return r;
	*frame_out = spool_writer_intern(rec->writer, &frame);
	return *frame_out == UINT32_MAX ? err_no_memory(err) : 0;
}

int offcpu_prepare(struct spulse_recorder *rec, struct spulse_error **err)
{
	if (!rec->options.off_cpu)
		return 0;
	rec->off_cpu = calloc(1, sizeof(*rec->off_cpu));
	if (!rec->off_cpu)
		return err_no_memory(err);
	rec->off_cpu->interval = UINT64_C(1000000000) / rec->options.frequency;
	return make_frame(rec, &rec->off_cpu->frame, err);
}

static struct waiting *find(struct rec_off_cpu *off, pid_t tid)
{
	uint64_t *slot = u64map_get(&off->of_tid, (uint32_t)tid);

	return slot ? &off->threads.data[*slot] : NULL;
}

static struct waiting *add(struct rec_off_cpu *off, pid_t pid, pid_t tid)
{
	const struct waiting fresh = { .pid = pid, .tid = tid };

	if (!vec_reserve(&off->threads, 1) ||
	    !u64map_set(&off->of_tid, (uint32_t)tid, off->threads.len))
		return NULL;
	off->threads.data[off->threads.len++] = fresh;
	return &vec_last(&off->threads);
}

static int write_wait(struct spulse_recorder *rec, struct waiting *w, uint64_t until,
		      struct spulse_error **err)
{
	struct rec_off_cpu *off = rec->off_cpu;
	uint64_t length = until > w->since ? until - w->since : 0, n;
	int r = 0;

	w->blocked = false;
	n = (length + w->carried) / off->interval;
	w->carried = (length + w->carried) % off->interval;
	if (n > MAX_SAMPLES_OF_A_WAIT) {
		off->cut += n - MAX_SAMPLES_OF_A_WAIT;
		n = MAX_SAMPLES_OF_A_WAIT;
	}
	for (uint64_t i = 0; i < n && r == 0; i++) {
		const struct spulse_sample sample = {
			.timestamp_ns = w->since + i * off->interval, .pid = w->pid, .tid = w->tid,
		};

		r = spool_writer_sample(rec->writer, &sample, w->frames.data, w->frames.len, err);
		rec->summary.sample_events++;
		if (r == 0) {
			rec->summary.samples++;
			rec->summary.truncated_frame_markers += w->truncated;
		} else {
			rec->summary.failed_samples++;
		}
	}
	return r;
}

/*
 * What is kept of a thread, to take its next wait. The id of one that ended unseen may have become
 * another's: its last wait ends when it was missed.
 */
static int take(struct spulse_recorder *rec, const struct perf_event *event,
		struct waiting **w_out, struct spulse_error **err)
{
	struct waiting *w = find(rec->off_cpu, event->tid);
	int r = 0;

	if (!w) {
		w = add(rec->off_cpu, event->pid, event->tid);
	} else if (w->gone && event->time > w->gone) {
		if (w->blocked)
			r = write_wait(rec, w, w->gone, err);
		w->gone = w->carried = 0;
	}
	*w_out = w;
	return w ? r : err_no_memory(err);
}

int offcpu_sample(struct spulse_recorder *rec, struct rec_process *process,
		  const struct perf_event *event, struct spulse_error **err)
{
	struct rec_off_cpu *off = rec->off_cpu;
	uint64_t markers = rec->summary.truncated_frame_markers;
	struct waiting *w;
	size_t n = 1;
	bool truncated;
	int r;

	if (!off)
		return 0;
	rec->frames[0] = off->frame;
	r = sample_collect(rec, process, event, &n, err);
	if (r < 0)
		return r;
	/* Counted for each sample that the wait becomes. */
	truncated = rec->summary.truncated_frame_markers != markers;
	rec->summary.truncated_frame_markers = markers;
	r = take(rec, event, &w, err);
	if (r < 0)
		return r;
	w->frames.len = 0;
	if (!vec_reserve(&w->frames, n))
		return err_no_memory(err);
	memcpy(w->frames.data, rec->frames, n * sizeof(uint32_t));
	w->frames.len = n;
	w->pid = event->pid;
	w->since = event->time;
	w->blocked = true;
	w->truncated = truncated;
	return 0;
}

static uint64_t ended_by(const struct waiting *w, uint64_t time)
{
	return w->gone && w->gone < time ? w->gone : time;
}

int offcpu_switch(struct spulse_recorder *rec, const struct perf_event *event,
		  struct spulse_error **err)
{
	struct waiting *w = rec->off_cpu ? find(rec->off_cpu, event->tid) : NULL;

	if (!w || !w->blocked)
		return 0;
	/* Switched out though it could go on: it waits for a CPU only. */
	if (event->context_switch.out) {
		w->blocked = !event->context_switch.preempt;
		return 0;
	}
	return write_wait(rec, w, ended_by(w, event->time), err);
}

void offcpu_gone(struct spulse_recorder *rec, pid_t tid)
{
	struct waiting *w = rec->off_cpu ? find(rec->off_cpu, tid) : NULL;

	/* What tells how its wait ended may still be in a ring. */
	if (w && !w->gone)
		w->gone = rec_monotonic_ns();
}

void offcpu_forget(struct spulse_recorder *rec, pid_t tid)
{
	struct rec_off_cpu *off = rec->off_cpu;
	uint64_t *slot = off ? u64map_get(&off->of_tid, (uint32_t)tid) : NULL;
	size_t i;

	if (!slot)
		return;
	i = *slot;
	vec_free(&off->threads.data[i].frames);
	u64map_remove(&off->of_tid, (uint32_t)tid);
	off->threads.data[i] = vec_pop(&off->threads);
	if (i < off->threads.len)
		u64map_set(&off->of_tid, (uint32_t)off->threads.data[i].tid, i);
}

int offcpu_finish(struct spulse_recorder *rec, struct spulse_error **err)
{
	struct rec_off_cpu *off = rec->off_cpu;
	uint64_t now = rec_monotonic_ns();
	int r = 0;

	for (size_t i = 0; off && i < off->threads.len && r == 0; i++) {
		struct waiting *w = &off->threads.data[i];

		if (w->blocked)
			r = write_wait(rec, w, ended_by(w, now), err);
	}
	return r;
}

uint64_t offcpu_cut(const struct spulse_recorder *rec)
{
	return rec->off_cpu ? rec->off_cpu->cut : 0;
}

void offcpu_free(struct spulse_recorder *rec)
{
	if (!rec->off_cpu)
		return;
	for (size_t i = 0; i < rec->off_cpu->threads.len; i++)
		vec_free(&rec->off_cpu->threads.data[i].frames);
	vec_free(&rec->off_cpu->threads);
	u64map_release(&rec->off_cpu->of_tid);
	free(rec->off_cpu);
}

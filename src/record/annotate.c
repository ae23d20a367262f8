/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the format has no place for: names, command lines, build IDs, the machine, the settings
 * and the final counters, as annotations that other readers skip.
 */
#include "recorder.h"

#include <inttypes.h>
#include <string.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CMDLINE = 4096, MAX_COMM = 64, MAX_BUILD_ID = 64 };

static int put(struct spulse_recorder *rec, pid_t pid, const char *key, const char *value,
	       size_t len, struct spulse_error **err)
{
	return spool_writer_annotate(rec->writer, pid, key, value, len, err);
}

static int put_text(struct spulse_recorder *rec, const char *key, const char *value,
		    struct spulse_error **err)
{
	return put(rec, -1, key, value, strlen(value), err);
}

static int put_number(struct spulse_recorder *rec, const char *key, uint64_t value,
		      struct spulse_error **err)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return put_text(rec, key, text, err);
}

/* How it is recorded; what is not asked for is left out where that says the same. */
static int annotate_options(struct spulse_recorder *rec, struct spulse_error **err)
{
	const struct spulse_recorder_options *o = &rec->options;
	const struct { const char *key; uint64_t value; bool always; } options[] = {
		{ "option/frequency", o->frequency, true },
		{ "option/stack-size", o->stack_size, true },
		{ "option/follow", o->follow, true },
		{ "option/kernel", o->include_kernel, true },
		{ "option/system-wide", o->system_wide, false },
		{ "option/off-cpu", o->off_cpu, false },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(options) && r == 0; i++)
		if (options[i].always || options[i].value)
			r = put_number(rec, options[i].key, options[i].value, err);
	if (r == 0 && rec->comm_pattern)
		r = put_text(rec, "option/comm", rec->comm_pattern, err);
	return r;
}

/* Where the kernel's own image is looked for, its build ID decides. */
static int annotate_kernel(struct spulse_recorder *rec, struct spulse_error **err)
{
	struct strbuf id = { 0 };
	int r = image_running_kernel_id(&id) ? put_text(rec, "kernel-build-id", id.data, err) : 0;

	strbuf_release(&id);
	return r;
}

int annotate_host(struct spulse_recorder *rec, struct spulse_error **err)
{
	struct utsname uts;
	int r = 0;

	if (!rec_annotates(rec))
		return 0;
	if (uname(&uts) == 0) {
		r = put_text(rec, "host", uts.nodename, err);
		if (r == 0)
			r = put_text(rec, "kernel", uts.release, err);
		if (r == 0)
			r = put_text(rec, "machine", uts.machine, err);
	}
	if (r == 0)
		r = annotate_kernel(rec, err);
	if (r == 0)
		r = put_number(rec, "cpus", sysconf(_SC_NPROCESSORS_ONLN), err);
	return r < 0 ? r : annotate_options(rec, err);
}

/* Words separated by blanks; a process may have overwritten its own. */
static int put_cmdline(struct spulse_recorder *rec, pid_t pid, struct spulse_error **err)
{
	struct strbuf cmdline = { 0 };
	int r = 0;

	if (proc_file_read(pid, 0, "cmdline", 16 << 20, &cmdline) == 0 && cmdline.len) {
		size_t len = MIN(cmdline.len, MAX_CMDLINE);

		while (len && cmdline.data[len - 1] == '\0')
			len--;
		for (size_t i = 0; i < len; i++)
			if (cmdline.data[i] == '\0')
				cmdline.data[i] = ' ';
		if (len)
			r = put(rec, pid, "cmdline", cmdline.data, len, err);
	}
	strbuf_release(&cmdline);
	return r;
}

int annotate_process(struct spulse_recorder *rec, struct rec_process *process, const char *comm,
		     size_t comm_len, struct spulse_error **err)
{
	struct strbuf read = { 0 };
	int r = 0;

	if (!rec_annotates(rec))
		return 0;
	if (!comm && !rec->offline &&
	    proc_file_read(process->pid, 0, "comm", MAX_COMM, &read) == 0) {
		comm = read.data;
		comm_len = read.len;
	}
	if (comm && comm_len) {
		r = put(rec, process->pid, "comm", comm, comm_len, err);
		process->named = true;
		process->renamed = false;
		process->comm_written = UINT32_MAX;
	}
	strbuf_release(&read);
	return r;
}

int annotate_new_comm(struct spulse_recorder *rec, struct rec_process *process,
		      struct spulse_error **err)
{
	uint32_t id = process->comm;
	const struct interned *name;
	int r;

	process->renamed = false;
	if (id == UINT32_MAX)
		return 0;
	name = &rec->strings.strings.data[id];
	r = annotate_process(rec, process, name->bytes, name->len, err);
	process->comm_written = id;
	return r;
}

int annotate_program(struct spulse_recorder *rec, struct rec_process *process, const char *comm,
		     size_t comm_len, struct spulse_error **err)
{
	int r = annotate_process(rec, process, comm, comm_len, err);

	if (r < 0 || process->exited || rec->offline || !rec_annotates(rec))
		return r;
	return put_cmdline(rec, process->pid, err);
}

static uint32_t read_name(struct spulse_recorder *rec, const struct rec_thread *thread)
{
	struct strbuf comm = { 0 };
	uint32_t name = UINT32_MAX;

	if (!rec->offline &&
	    proc_file_read(thread->pid, thread->tid, "comm", MAX_COMM, &comm) == 0 && comm.len)
		name = intern(&rec->strings, comm.data, comm.len);
	strbuf_release(&comm);
	return name;
}

int annotate_thread(struct spulse_recorder *rec, struct rec_thread *thread,
		    struct spulse_error **err)
{
	const struct interned *name;
	char key[40];

	if (!rec_annotates(rec))
		return 0;
	if (thread->name == UINT32_MAX)
		thread->name = read_name(rec, thread);
	thread->sampled = true;
	thread->written = thread->name;
	if (thread->name == UINT32_MAX)
		return 0;
	name = &rec->strings.strings.data[thread->name];
	snprintf(key, sizeof(key), "thread-name/%d", thread->tid);
	return put(rec, thread->pid, key, name->bytes, name->len, err);
}

int annotate_build_id(struct spulse_recorder *rec, const struct rec_module *module,
		      struct spulse_error **err)
{
	char key[32], text[2 * MAX_BUILD_ID + 1];
	const uint8_t *id = module->map.build_id;
	size_t len = module->map.build_id_len;

	if (!rec_annotates(rec))
		return 0;
	/* What was recorded counts more than the file that is there now. */
	if (!len && module->file)
		id = image_build_id(module->file, &len);
	if (!id || !len || len > MAX_BUILD_ID)
		return 0;
	snprintf(key, sizeof(key), "build-id/%" PRIu32, module->id);
	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return put_text(rec, key, text, err);
}

/* The losses of processes and threads, the largest first for whoever reads a few only. */
static int put_losses(struct spulse_recorder *rec, struct spulse_error **err)
{
	size_t n;
	const struct spulse_loss *losses = spulse_recorder_losses(rec, &n);
	struct u64map sums = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		bool added;
		uint64_t *sum = u64map_add(&sums, (uint32_t)losses[i].pid, &added);

		if (sum)
			*sum = (added ? 0 : *sum) + losses[i].lost;
		else
			r = err_no_memory(err);
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		uint64_t *sum = u64map_get(&sums, (uint32_t)losses[i].pid);
		char key[48];

		snprintf(key, sizeof(key), "lost/%d", losses[i].pid);
		if (sum)
			r = put_number(rec, key, *sum, err);
		u64map_remove(&sums, (uint32_t)losses[i].pid);
		snprintf(key, sizeof(key), "lost/%d/%d", losses[i].pid, losses[i].tid);
		if (r == 0)
			r = put_number(rec, key, losses[i].lost, err);
	}
	u64map_release(&sums);
	return r;
}

int annotate_end(struct spulse_recorder *rec, struct spulse_error **err)
{
	const struct spulse_recording_summary *s = &rec->summary;
	const struct { const char *key; uint64_t value; bool usual; } counters[] = {
		{ "counter/sample-events", s->sample_events, true },
		{ "counter/samples", s->samples, true },
		{ "counter/lost-events", s->lost_events, true },
		{ "counter/lifecycle-gaps", s->lifecycle_gaps, true },
		{ "counter/kernel-enabled", s->kernel_enabled, true },
		{ "counter/excluded-kernel-samples", s->excluded_kernel_samples, true },
		{ "counter/other-program-samples", s->other_program_samples, false },
		{ "counter/missing-pid-samples", s->missing_pid_samples, false },
		{ "counter/missing-tid-samples", s->missing_tid_samples, false },
		{ "counter/idle-tid-samples", s->idle_tid_samples, false },
		{ "counter/missing-timestamp-samples", s->missing_timestamp_samples, false },
		{ "counter/empty-stack-samples", s->empty_stack_samples, false },
		{ "counter/failed-samples", s->failed_samples, false },
		{ "counter/truncated-frame-markers", s->truncated_frame_markers, true },
		{ "counter/sample-errors", spulse_summary_sample_errors(s), true },
		{ "counter/unwind-fallbacks", spulse_summary_unwind_fallbacks(s), true },
		{ "counter/uncovered-cpus", s->uncovered_cpus, true },
		{ "counter/input-cut", s->input_cut, false },
		{ "counter/input-other-samples", s->input_other_samples, false },
		{ "counter/input-unknown-records", s->input_unknown_records, false },
		{ "counter/cut-off-cpu-samples", offcpu_cut(rec), false },
	};
	int r = 0;

	if (!rec_annotates(rec))
		return 0;
	if (rec->events)
		r = put_text(rec, "event",
			     s->sampling_event == SPULSE_EVENT_CYCLES ? "cycles" : "cpu-clock",
			     err);
	for (size_t i = 0; i < ARRAY_LEN(counters) && r == 0; i++)
		if (counters[i].usual || counters[i].value)
			r = put_number(rec, counters[i].key, counters[i].value, err);
	return r < 0 ? r : put_losses(rec, err);
}

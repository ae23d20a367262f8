/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Making and freeing a recorder, and its first target. */
#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "outfile.h"

/* Images and bytes of them that are kept open. */
enum { MAX_IMAGES = 256, MAX_IMAGE_BYTES = 64 << 20 };

int64_t rec_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- making ---- */

static int open_events(struct spulse_recorder *rec, struct spulse_error **err)
{
	const struct spulse_recorder_options *o = &rec->options;
	struct proc_cpus cpus = { 0 };
	uint32_t stacks;
	int r = proc_online_cpus(&cpus, err);

	if (r == 0)
		r = options_ring_stacks(o, cpus.cpus.len * (o->off_cpu ? 2 : 1), &stacks, err);
	if (r == 0) {
		const struct perf_options options = {
			.frequency = o->frequency,
			.stack_size = o->stack_size,
			.ring_stacks = stacks,
			.include_kernel = o->include_kernel,
			.inherit_children = o->follow != SPULSE_FOLLOW_NONE,
			.off_cpu = o->off_cpu,
			.event = o->sampling_event,
			.cpus = cpus.cpus.data,
			.cpu_count = cpus.cpus.len,
		};

		r = perf_events_new(&options, &rec->events, err);
	}
	if (r == 0) {
		rec->source = perf_events_source(rec->events);
		rec->merge.source = rec->source;
	}
	vec_free(&cpus.cpus);
	return r;
}

int recorder_new(const struct spulse_recorder_options *options, struct spulse_recorder **rec_out,
		 struct spulse_error **err)
{
	struct spulse_recorder *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return err_no_memory(err);
	rec->fd = -1;
	rec->options = *options;
	rec->options.comm = NULL;
	rec->comm_pattern = options->comm ? strdup(options->comm) : NULL;
	rec->summary.size = sizeof(rec->summary);
	rec->poll.size = sizeof(rec->poll);
	rec->summary.kernel_enabled = options->include_kernel;
	if (options->comm && !rec->comm_pattern)
		r = err_no_memory(err);
	else
		r = image_cache_new(MAX_IMAGES, MAX_IMAGE_BYTES, &rec->images, err);
	if (r < 0)
		spulse_recorder_free(rec);
	else
		*rec_out = rec;
	return r;
}

/* A program that could not be executed is the end of its recording. */
static void launch_failed(struct spulse_recorder *rec, struct spulse_error *error)
{
	recorder_latch(rec, error);
}

static void set_hook(void)
{
	proc_launch_set_failed_hook(launch_failed);
}

static void fill_header(const struct spulse_recorder_options *o,
			struct spulse_spool_header *header)
{
	struct timespec monotonic, wall;

	*header = (struct spulse_spool_header){ .size = sizeof(*header), .format = o->format };
	if (o->format == SPULSE_SPOOL_FORMAT_3) {
		header->start_timestamp_us = o->start_timestamp_us;
		header->interval = o->sample_interval_us;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &wall);
	header->interval = (uint64_t)(1e9 / o->frequency + 0.5);
	header->has_clock_origin = 1;
	header->monotonic_ns = monotonic.tv_sec * UINT64_C(1000000000) + monotonic.tv_nsec;
	header->wall.seconds = wall.tv_sec;
	header->wall.nanoseconds = wall.tv_nsec;
}

/* The events are open: now there is something to write. */
static int open_output(struct spulse_recorder *rec, void *data, struct spulse_error **err)
{
	struct rec_target *target = data;
	int r = output_open(rec, target, err);

	if (r == 0)
		r = sample_prepare(rec, err);
	return r < 0 ? r : annotate_host(rec, err);
}

static int attach_everyone(struct spulse_recorder *rec, struct rec_target *target,
			   struct spulse_error **err)
{
	struct perf_opened opened;
	int r = perf_events_open(rec->events, -1, NULL, 0, false, false, &opened, err);

	if (r == 0)
		r = open_output(rec, target, err);
	return r < 0 ? r : perf_events_enable(rec->events, err);
}

static int attach_first(struct spulse_recorder *rec, pid_t pid, enum spulse_attach_mode mode,
			struct rec_target *target, struct spulse_error **err)
{
	struct rec_attach attach = { .pid = pid, .mode = mode, .first = true };
	int r;

	rec->root = pid;
	r = rec->options.system_wide ? attach_everyone(rec, target, err) :
				       attach_process(rec, &attach, open_output, target, err);
	if (r == 0 && rec->options.follow == SPULSE_FOLLOW_DESCENDANTS &&
	    !rec->options.system_wide && mode != SPULSE_ATTACH_ON_EXEC)
		r = attach_descendants(rec, pid, mode, err);
	if (r == 0 && rec->fd >= 0)
		r = spool_channel_new(&rec->channel, err);
	if (r == 0)
		r = drain_publish(rec, err);
	return r < 0 ? r : output_publish(target, err);
}

int recorder_from_source(const struct spulse_recorder_options *options,
			 struct perf_source *source, struct rec_target *target,
			 struct spulse_recorder **rec_out, struct spulse_error **err)
{
	struct spulse_recorder *rec = NULL;
	int r = recorder_new(options, &rec, err);

	if (r < 0)
		return r;
	rec->offline = true;
	rec->merge.source = source;
	rec->source = source;
	r = output_open(rec, target, err);
	if (r == 0)
		r = sample_prepare(rec, err);
	if (r == 0) {
		*rec_out = rec;
		return 0;
	}
	rec->source = NULL; /* stays the caller's */
	spulse_recorder_free(rec);
	return r;
}

static int check_call(pid_t pid, enum spulse_attach_mode mode,
		      const struct spulse_recorder_options *options,
		      const struct rec_target *target, struct spulse_error **err)
{
	if ((unsigned int)mode > SPULSE_ATTACH_ON_EXEC)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "unknown attach mode");
	if (!spulse_pid_valid(pid) && !(options->system_wide && pid == 0))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not a process id", pid);
	return output_check(target, err);
}

static int attach(pid_t pid, struct rec_target *target, enum spulse_attach_mode mode,
		  const struct spulse_recorder_options *opts, struct spulse_recorder **out,
		  struct spulse_error **err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct spulse_recorder_options options;
	struct spulse_recorder *rec = NULL;
	struct spulse_error *why = NULL;
	int r;

	pthread_once(&once, set_hook);
	target->file = -1;
	r = options_resolve(&options, opts, &why);
	if (r == 0)
		r = check_call(pid, mode, &options, target, &why);
	if (r == 0) {
		fill_header(&options, &target->header);
		r = recorder_new(&options, &rec, &why);
	}
	if (r == 0)
		r = open_events(rec, &why);
	if (r == 0 && target->path) {
		rec->path = strdup(target->path);
		r = rec->path ? 0 : err_no_memory(&why);
	}
	if (r == 0)
		r = attach_first(rec, pid, mode, target, &why);
	output_release(target);
	if (r < 0) {
		spulse_recorder_free(rec);
		r = err_repeat(err, why);
	} else {
		*out = rec;
	}
	spulse_error_free(why);
	return r;
}

int spulse_recorder_attach(pid_t pid, const char *path, enum spulse_attach_mode mode,
			   const struct spulse_recorder_options *opts,
			   struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	struct rec_target target = { .path = path ? path : "", .fd = -1 };

	return attach(pid, &target, mode, opts, recorder_out, err);
}

int spulse_recorder_attach_output(pid_t pid, const struct spulse_output *output, void *data,
				  enum spulse_attach_mode mode,
				  const struct spulse_recorder_options *opts,
				  struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	struct rec_target target = { .output = output, .data = data, .fd = -1 };

	if (!output)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "no output");
	return attach(pid, &target, mode, opts, recorder_out, err);
}

int spulse_recorder_attach_fd(pid_t pid, int fd, enum spulse_attach_mode mode,
			      const struct spulse_recorder_options *opts,
			      struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	struct rec_target target = { .fd = fd };

	return attach(pid, &target, mode, opts, recorder_out, err);
}

/* ---- the end ---- */

void recorder_latch(struct spulse_recorder *rec, struct spulse_error *error)
{
	if (rec->terminal)
		return;
	rec->terminal = err_ref(error);
	if (rec->events)
		perf_events_disable(rec->events, NULL);
	if (rec->channel)
		spool_channel_end(rec->channel, error, &rec->summary);
}

static void abandon_channel(struct spulse_recorder *rec)
{
	struct spulse_error *error;

	if (!rec->channel)
		return;
	error = spulse_error_new(SPULSE_ERROR_IO, 0, NULL, NULL, 0,
				 "the recorder was freed before it was finished");
	/* The first end wins: this one only counts when there was none. */
	spool_channel_end(rec->channel, error, &rec->summary);
	spulse_error_free(error);
	spool_channel_unref(rec->channel);
}

static void free_tables(struct spulse_recorder *rec)
{
	process_free_all(rec);
	modules_release(&rec->kernel_modules);
	vec_free(&rec->threads);
	u64map_release(&rec->thread_of_tid);
	vec_free(&rec->actions);
	losses_free(rec);
	fallbacks_free(rec);
}

void spulse_recorder_free(struct spulse_recorder *rec)
{
	if (!rec)
		return;
	if (rec->events && !rec->paused)
		perf_events_disable(rec->events, NULL);
	abandon_channel(rec);
	free_tables(rec);
	offcpu_free(rec);
	unwinder_free(rec->unwinder);
	images_release(rec);
	merge_release(&rec->merge);
	if (rec->source)
		rec->source->ops->free(rec->source);
	spulse_spool_writer_free(rec->writer);
	if (rec->fd >= 0)
		close(rec->fd);
	interner_release(&rec->strings);
	spulse_error_free(rec->terminal);
	free(rec->frames);
	free(rec->comm_pattern);
	free(rec->path);
	free(rec);
}

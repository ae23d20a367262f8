/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A tail reads a spool that grows, batch by batch. Of a foreign file everything that is there is
 * visible; of a recording in this process only what its recorder published. A record that is not
 * complete yet is read again next time.
 */
#include "channel.h"
#include "reader.h"
#include "reclaim.h"
#include "stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
	GUARD_MAX = 64,
	/* How often the size of a foreign file is looked at while waiting. */
	FOREIGN_INTERVAL_NS = 20000000,
};

/* Bytes that were at [end - len, end). */
struct guard {
	uint8_t bytes[GUARD_MAX];
	size_t len;
	uint64_t end;
};

struct spulse_batch {
	const struct spulse_source *source;
	VEC(struct raw_sample) samples;
	struct pidmap processes;
	pid_t last_pid;
	bool has_more;
	uint32_t first_module, end_module, first_frame, end_frame;
	VEC(pid_t) retired_processes;
	VEC(uint32_t) retired_modules;
};

struct spulse_tail {
	struct spulse_source source;
	struct decoder d;
	struct spulse_batch batch;
	int fd;
	bool fresh; /* the batch read at the opening was not handed out yet */
	struct spool_channel *channel;
	struct reclaimer reclaimer;
	uint64_t batch_end; /* consumed by the batch that was handed out */
	/* Bytes of the header and before the position: a file that was rewritten has others. */
	struct guard head, before;
};

static void batch_clear(struct spulse_batch *batch)
{
	batch->samples.len = 0;
	pidmap_clear(&batch->processes);
	batch->last_pid = 0;
	batch->has_more = false;
	batch->retired_processes.len = 0;
	batch->retired_modules.len = 0;
	batch->first_module = batch->source->modules.len;
	batch->first_frame = batch->source->frames.len;
}

static bool batch_observe(struct spulse_batch *batch, pid_t pid)
{
	if (pid == 0 || pid == batch->last_pid)
		return true;
	batch->last_pid = pid;
	return pidmap_add(&batch->processes, pid);
}

/* The samples that follow the one just taken, and the processes of all of them. */
static bool batch_take_run(struct spulse_tail *tail)
{
	struct spulse_batch *batch = &tail->batch;
	size_t first = batch->samples.len - 1, count;

	if (!vec_reserve(&batch->samples, BATCH_SAMPLES - batch->samples.len))
		return false;
	count = decode_samples(&tail->d, batch->samples.data + batch->samples.len,
			       BATCH_SAMPLES - batch->samples.len);
	batch->samples.len += count;
	for (size_t i = first; i < batch->samples.len; i++) {
		uint32_t thread = batch->samples.data[i].thread;

		if (!batch_observe(batch, tail->source.threads.data[thread].pid))
			return false;
	}
	return true;
}

/* Takes one record into the batch; false when memory ran out. */
static bool batch_take(struct spulse_tail *tail, int tag)
{
	struct spulse_batch *batch = &tail->batch;
	struct decoder *d = &tail->d;

	switch (tag) {
	case TAG_SAMPLE:
		note_first_sample(&tail->source, d->sample.timestamp_ns);
		return vec_push(&batch->samples, d->sample) && batch_take_run(tail);
	case TAG_MODULE:
	case TAG_JIT_MODULE:
	case TAG_PYTHON_RUNTIME:
		return batch_observe(batch, d->pid);
	case TAG_RETIRE_PROCESS:
		return batch_observe(batch, d->pid) &&
		       vec_push(&batch->retired_processes, d->pid);
	case TAG_RETIRE_MODULE:
		return batch_observe(batch, d->pid) && vec_push(&batch->retired_modules, d->id);
	default:
		return true;
	}
}

static bool ends_batch(const struct spulse_batch *batch, int tag)
{
	return tag == TAG_RETIRE_PROCESS || tag == TAG_RETIRE_MODULE ||
	       batch->samples.len == BATCH_SAMPLES;
}

/* Remembers the bytes before the position, from the window. */
static void set_guard(struct spulse_tail *tail, struct guard *guard)
{
	size_t before = tail->d.p - tail->d.in.buf;

	if (!before || guard->end == decode_offset(&tail->d))
		return;
	guard->len = MIN(before, (size_t)GUARD_MAX);
	guard->end = decode_offset(&tail->d);
	memcpy(guard->bytes, tail->d.p - guard->len, guard->len);
}

static int decode_batch(struct spulse_tail *tail, struct spulse_error **err)
{
	struct spulse_batch *batch = &tail->batch;
	int r;

	batch_clear(batch);
	while ((r = decode_next(&tail->d, err)) > 0 && r != DECODE_CUT) {
		if (!batch_take(tail, r))
			return err_no_memory(err);
		if (ends_batch(batch, r)) {
			batch->has_more = decode_offset(&tail->d) < tail->d.in.limit;
			break;
		}
	}
	if (r < 0)
		return r;
	set_guard(tail, &tail->before);
	batch->end_module = tail->source.modules.len;
	batch->end_frame = tail->source.frames.len;
	return source_settle(&tail->source) ? 0 : err_no_memory(err);
}

static int open_first(struct spulse_tail *tail, uint64_t size, struct spulse_error **err)
{
	int r = decode_open(&tail->d, tail->fd, size, &tail->source, err);

	tail->batch.source = &tail->source;
	tail->fresh = true;
	if (r == 0) {
		set_guard(tail, &tail->head);
		r = decode_batch(tail, err);
	}
	/* Whoever is made from the source now knows these already. */
	tail->batch.first_module = tail->batch.end_module;
	tail->batch.first_frame = tail->batch.end_frame;
	return r;
}

static struct spulse_tail *tail_new(void)
{
	struct spulse_tail *tail = calloc(1, sizeof(*tail));

	if (tail)
		tail->fd = -1;
	return tail;
}

/* Hands a tail out, or frees it after a failure. */
static int finish_open(struct spulse_tail *tail, int r, struct spulse_tail **tail_out)
{
	if (r < 0)
		spulse_tail_free(tail);
	else
		*tail_out = tail;
	return r;
}

int spulse_tail_open(const char *path, struct spulse_tail **tail_out, struct spulse_error **err)
{
	struct spulse_tail *tail = tail_new();
	uint64_t size;
	int r;

	if (!tail)
		return err_no_memory(err);
	r = source_init(&tail->source, path, err);
	if (r == 0)
		r = input_open_file(path, &tail->fd, &size, err);
	if (r == 0)
		r = open_first(tail, size, err);
	return finish_open(tail, r, tail_out);
}

/* A descriptor of its own on the recorder's file, to be read and punched. */
static int reopen(int fd, const char *path, int *fd_out, struct spulse_error **err)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	*fd_out = open(name, O_RDWR | O_CLOEXEC);
	if (*fd_out < 0)
		*fd_out = open(name, O_RDONLY | O_CLOEXEC);
	if (*fd_out < 0)
		*fd_out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *fd_out < 0 ? err_io(err, errno, path, "cannot open the spool for its tail") : 0;
}

int spool_tail_open_channel(int fd, const char *path, struct spool_channel *channel,
			    struct spool_attachment *attachment, bool disposable,
			    struct spulse_tail **tail_out, struct spulse_error **err)
{
	struct spulse_tail *tail = tail_new();
	int r;

	if (!tail)
		return err_no_memory(err);
	tail->channel = spool_channel_ref(channel);
	reclaimer_init(&tail->reclaimer, disposable);
	r = source_init(&tail->source, path, err);
	if (r == 0 && attachment) {
		attachment->ref(attachment);
		tail->source.attachment = attachment;
	}
	if (r == 0)
		r = reopen(fd, path, &tail->fd, err);
	if (r == 0)
		r = open_first(tail, channel_look(channel).published, err);
	return finish_open(tail, r, tail_out);
}

void spulse_tail_free(struct spulse_tail *tail)
{
	if (!tail)
		return;
	decode_release(&tail->d);
	vec_free(&tail->batch.samples);
	pidmap_release(&tail->batch.processes);
	vec_free(&tail->batch.retired_processes);
	vec_free(&tail->batch.retired_modules);
	source_release(&tail->source);
	spool_channel_unref(tail->channel);
	cleanup_close(&tail->fd);
	free(tail);
}

const struct spulse_source *spulse_tail_source(const struct spulse_tail *tail)
{
	return &tail->source;
}

static int shrank(const struct spulse_tail *tail, uint64_t size, struct spulse_error **err)
{
	return err_corrupt(err, tail->source.path, -1, size,
			   "the spool became shorter while it was read: expected at least %llu "
			   "bytes, found %llu", (unsigned long long)tail->d.in.limit,
			   (unsigned long long)size);
}

/* A file that was emptied and written anew is as long again, but not the same. */
static int check_guard(const struct spulse_tail *tail, const struct guard *guard,
		       struct spulse_error **err)
{
	uint8_t now[GUARD_MAX];
	ssize_t n = pread_full(tail->fd, now, guard->len, guard->end - guard->len);

	if (n < 0)
		return err_io(err, -n, tail->source.path, "cannot read the spool");
	if ((size_t)n != guard->len || memcmp(now, guard->bytes, n))
		return err_corrupt(err, tail->source.path, -1, guard->end - guard->len,
				   "the spool was rewritten while it was read: the bytes before "
				   "offset %llu are not those that were there",
				   (unsigned long long)guard->end);
	return 0;
}

/* How many bytes are visible now. */
static int look(const struct spulse_tail *tail, uint64_t *size, struct spulse_error **err)
{
	/* Before the file's own size: both grow while we look. */
	uint64_t published = tail->channel ? channel_look(tail->channel).published : 0;
	struct stat st;
	int r;

	if (fstat(tail->fd, &st) < 0)
		return err_io(err, errno, tail->source.path, "cannot examine the spool");
	*size = st.st_size;
	if (tail->channel) {
		*size = published;
		if (*size > (uint64_t)st.st_size)
			return shrank(tail, st.st_size, err);
		return 0;
	}
	if (*size < tail->d.in.limit)
		return shrank(tail, *size, err);
	r = check_guard(tail, &tail->head, err);
	return r < 0 ? r : check_guard(tail, &tail->before, err);
}

/* Gives back what the batch before consumed. */
static int reclaim_previous(struct spulse_tail *tail, struct spulse_error **err)
{
	if (tail->reclaimer.state != SPULSE_RECLAMATION_ENABLED)
		return 0;
	return reclaimer_advance(&tail->reclaimer, tail->fd, tail->source.path, tail->batch_end,
				 err);
}

int spulse_tail_poll(struct spulse_tail *tail, const struct spulse_batch **batch_out,
		     struct spulse_error **err)
{
	uint64_t size = 0;
	int r = reclaim_previous(tail, err);

	if (r == 0)
		r = look(tail, &size, err);
	if (r < 0)
		return r;
	if (tail->fresh)
		tail->batch.has_more |= size > tail->d.in.limit;
	if (size != tail->d.in.limit)
		decode_set_limit(&tail->d, size);
	if (!tail->fresh)
		r = decode_batch(tail, err);
	if (r < 0)
		return r;
	tail->fresh = false;
	tail->batch_end = decode_offset(&tail->d);
	if (tail->channel && !tail->batch.has_more)
		channel_quiet(tail->channel, size);
	*batch_out = &tail->batch;
	return 0;
}

/* 1 when a poll will deliver, 0 when the time is over. */
static int wait_foreign(struct spulse_tail *tail, int64_t timeout_ns, struct spulse_error **err)
{
	uint64_t size = 0;
	int r;

	for (;;) {
		int64_t step = timeout_ns < 0 || timeout_ns > FOREIGN_INTERVAL_NS
				       ? FOREIGN_INTERVAL_NS
				       : timeout_ns;
		struct timespec pause = { 0, step };

		r = look(tail, &size, err);
		if (r < 0)
			return r;
		if (size > tail->d.in.limit)
			return 1;
		if (timeout_ns == 0)
			return 0;
		if (nanosleep(&pause, NULL) < 0)
			return 0;
		if (timeout_ns > 0)
			timeout_ns -= step;
	}
}

static int wait_channel(struct spulse_tail *tail, int64_t timeout_ns,
			enum spulse_tail_state *state_out, struct spulse_error **err)
{
	struct channel_view now = channel_wait(tail->channel, tail->d.in.limit, timeout_ns);
	int r;

	if (now.published > tail->d.in.limit)
		return 1;
	if (!now.ended)
		return 0;
	/* The last batch is over as well. */
	r = reclaim_previous(tail, err);
	if (r < 0)
		return r;
	if (now.error)
		return err_repeat(err, now.error);
	*state_out = SPULSE_TAIL_FINISHED;
	return 0;
}

int spulse_tail_wait(struct spulse_tail *tail, int64_t timeout_ns,
		     enum spulse_tail_state *state_out, struct spulse_error **err)
{
	enum spulse_tail_state state = SPULSE_TAIL_OPEN;
	int r = 1;

	if (!tail->fresh && !tail->batch.has_more)
		r = tail->channel ? wait_channel(tail, timeout_ns, &state, err)
				  : wait_foreign(tail, timeout_ns, err);
	if (r >= 0 && state_out)
		*state_out = state;
	return r;
}

int spulse_tail_fd(const struct spulse_tail *tail)
{
	return tail->channel ? channel_fd(tail->channel) : -1;
}

int spulse_tail_summary(const struct spulse_tail *tail,
			struct spulse_recording_summary *summary_out)
{
	return tail->channel ? channel_summary(tail->channel, summary_out) : 0;
}

void spulse_tail_stats(const struct spulse_tail *tail, struct spulse_tail_stats *stats)
{
	size_t size = MIN(stats->size, sizeof(*stats));
	struct spulse_tail_stats now = {
		.size = size,
		.published_bytes = tail->channel ? channel_look(tail->channel).published
						 : tail->d.in.limit,
		.consumed_bytes = decode_offset(&tail->d),
		.reclaimed_bytes = tail->reclaimer.reclaimed,
		.frames = tail->source.frames.len,
		.stack_nodes = tail->source.nodes.len,
		.modules = tail->source.modules.len,
		.reclamation = tail->reclaimer.state,
	};

	memcpy(stats, &now, size);
}

int spulse_tail_discard_consumed(struct spulse_tail *tail, struct spulse_error **err)
{
	if (!tail->channel)
		return err_file(err, SPULSE_ERROR_PERMISSION, 0, tail->source.path,
				"only the tail of a recorder may free the spool's space");
	return reclaimer_punch(&tail->reclaimer, tail->fd, tail->source.path,
			       decode_offset(&tail->d), err);
}

int spulse_batch_stacks(const struct spulse_batch *batch, struct spulse_stacks **stacks_out,
			struct spulse_error **err)
{
	return stacks_over_array(batch->source, batch->samples.data, batch->samples.len, stacks_out,
				 err);
}

const pid_t *spulse_batch_processes(const struct spulse_batch *batch, size_t *count_out)
{
	*count_out = batch->processes.pids.len;
	return batch->processes.pids.data;
}

bool spulse_batch_has_more(const struct spulse_batch *batch)
{
	return batch->has_more;
}

void spool_batch_view(const struct spulse_batch *batch, struct spool_batch_view *view)
{
	*view = (struct spool_batch_view){
		.source = batch->source,
		.first_module = batch->first_module,
		.end_module = batch->end_module,
		.retired_processes = batch->retired_processes.data,
		.retired_process_count = batch->retired_processes.len,
		.retired_modules = batch->retired_modules.data,
		.retired_module_count = batch->retired_modules.len,
		.first_frame = batch->first_frame,
		.end_frame = batch->end_frame,
	};
}

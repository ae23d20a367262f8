/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "replay.h"

#include "reader.h"
#include "stacks.h"

enum { BLOCK_SAMPLES = 256 };

struct spulse_samples {
	struct stream *stream;
	size_t next, count; /* in the block */
	struct spulse_sample block[BLOCK_SAMPLES];
};

struct spulse_records {
	struct stream *stream;
	struct spulse_stack stack;
	uint32_t next[TAG_JIT_MODULE + 1];
};

/* Goes over a run of samples; returns what ended it. */
static int read_samples(struct spulse_replay *replay, struct decoder *d, uint64_t begin,
			struct spulse_error **err)
{
	int r;

	do
		replay->samples += 1 + decode_samples(d, NULL, 0);
	while ((r = decode_next(d, err)) == TAG_SAMPLE);
	if (r >= 0 && !range_index_add(&replay->ranges, begin, d->record_offset, REPLAY_RANGES))
		return err_no_memory(err);
	return r;
}

static int read_all(struct spulse_replay *replay, struct decoder *d, struct spulse_error **err)
{
	uint64_t begin;
	int r;

	replay->records_begin = decode_offset(d);
	do {
		begin = decode_offset(d);
		r = decode_next(d, err);
		if (r == TAG_SAMPLE) {
			note_first_sample(&replay->source, d->sample.timestamp_ns);
			r = read_samples(replay, d, begin, err);
		}
	} while (r > 0 && r != DECODE_CUT);
	replay->records_end = decode_offset(d);
	if (r >= 0 && !range_index_close(&replay->ranges, replay->records_end))
		return err_no_memory(err);
	return reader_close(d, r, err);
}

static int load(struct spulse_replay *replay, const char *path, struct spulse_error **err)
{
	struct decoder d = { .in.record = &replay->sums };
	int r;

	r = source_init(&replay->source, path, err);
	if (r == 0)
		r = input_open_file(path, &replay->fd, &replay->limit, err);
	if (r == 0)
		r = decode_open(&d, replay->fd, replay->limit, &replay->source, err);
	if (r == 0)
		r = read_all(replay, &d, err);
	decode_release(&d);
	return r;
}

int spulse_replay_open(const char *path, struct spulse_replay **replay_out,
		       struct spulse_error **err)
{
	struct spulse_replay *replay = calloc(1, sizeof(*replay));
	int r;

	if (!replay)
		return err_no_memory(err);
	replay->fd = -1;
	r = load(replay, path, err);
	if (r < 0) {
		spulse_replay_free(replay);
		return r;
	}
	*replay_out = replay;
	return 0;
}

void spulse_replay_free(struct spulse_replay *replay)
{
	if (!replay)
		return;
	cleanup_close(&replay->fd);
	range_index_release(&replay->ranges);
	block_sums_release(&replay->sums);
	source_release(&replay->source);
	free(replay);
}

const struct spulse_source *spulse_replay_source(const struct spulse_replay *replay)
{
	return &replay->source;
}

uint64_t spulse_replay_sample_count(const struct spulse_replay *replay)
{
	return replay->samples;
}

static int open_stream(const struct spulse_replay *replay, struct stream **stream_out,
		       struct spulse_error **err)
{
	return stream_new(replay->fd, &replay->source, &replay->ranges, &replay->sums,
			  replay->limit, replay->records_end, replay->samples, stream_out, err);
}

int replay_all_records(const struct spulse_replay *replay, struct stream **stream_out,
		       struct spulse_error **err)
{
	int r = open_stream(replay, stream_out, err);

	if (r == 0)
		stream_all_records(*stream_out, replay->records_begin);
	return r;
}

int spulse_replay_stacks(const struct spulse_replay *replay, struct spulse_stacks **stacks_out,
			 struct spulse_error **err)
{
	struct stream *stream;
	int r = open_stream(replay, &stream, err);

	if (r < 0)
		return r;
	r = stacks_over_stream(stream, stacks_out, err);
	if (r < 0)
		stream_free(stream);
	return r;
}

int spulse_replay_samples(const struct spulse_replay *replay, struct spulse_samples **samples_out,
			  struct spulse_error **err)
{
	struct spulse_samples *samples = malloc(sizeof(*samples));
	int r;

	if (!samples)
		return err_no_memory(err);
	samples->stream = NULL;
	samples->next = samples->count = 0;
	r = open_stream(replay, &samples->stream, err);
	if (r < 0)
		spulse_samples_free(samples);
	else
		*samples_out = samples;
	return r;
}

/* Decodes further samples: 1, 0 at the end. */
static int refill(struct spulse_samples *samples, struct spulse_error **err)
{
	ssize_t count = stream_take(samples->stream, NULL, samples->block, BLOCK_SAMPLES, err);

	samples->next = 0;
	samples->count = MAX(count, (ssize_t)0);
	return count < 0 ? (int)count : count > 0;
}

int spulse_samples_next(struct spulse_samples *samples, struct spulse_sample *sample_out,
			struct spulse_error **err)
{
	int r;

	if (unlikely(samples->next == samples->count)) {
		r = refill(samples, err);
		if (r <= 0)
			return r;
	}
	*sample_out = samples->block[samples->next++];
	return 1;
}

int spulse_samples_next_block(struct spulse_samples *samples,
			      const struct spulse_sample **block_out, size_t *count_out,
			      struct spulse_error **err)
{
	int r;

	if (samples->next == samples->count) {
		r = refill(samples, err);
		if (r <= 0)
			return r;
	}
	*block_out = samples->block + samples->next;
	*count_out = samples->count - samples->next;
	samples->next = samples->count;
	return 1;
}

uint64_t spulse_samples_remaining(const struct spulse_samples *samples)
{
	return samples->stream->remaining + (samples->count - samples->next);
}

void spulse_samples_free(struct spulse_samples *samples)
{
	if (samples)
		stream_free(samples->stream);
	free(samples);
}

int spulse_replay_records(const struct spulse_replay *replay, struct spulse_records **records_out,
			  struct spulse_error **err)
{
	struct spulse_records *records = calloc(1, sizeof(*records));
	int r;

	if (!records)
		return err_no_memory(err);
	r = replay_all_records(replay, &records->stream, err);
	if (r < 0) {
		spulse_records_free(records);
		return r;
	}
	records->stack.source = &replay->source;
	*records_out = records;
	return 0;
}

static void describe(struct spulse_records *records, const struct raw_record *raw,
		     struct spulse_record *record)
{
	/* Both kinds of modules share one space of ids. */
	int space = raw->tag == TAG_JIT_MODULE ? TAG_MODULE : raw->tag;

	record->offset = raw->offset;
	record->kind = raw->tag;
	record->id = 0;
	record->pid = 0;
	record->unused = 0;
	record->stack = NULL;
	switch (raw->tag) {
	case TAG_SAMPLE:
		records->stack.sample = sample_from_raw(records->stack.source, &raw->sample);
		records->stack.node = raw->sample.node;
		record->stack = &records->stack;
		break;
	case TAG_RETIRE_PROCESS:
		record->pid = unzigzag(raw->id);
		break;
	case TAG_RETIRE_MODULE:
		record->id = raw->id;
		break;
	default:
		record->id = records->next[space]++;
	}
}

int spulse_records_next(struct spulse_records *records, struct spulse_record *record,
			struct spulse_error **err)
{
	struct raw_record raw;
	int r;

	if (record->size < sizeof(*record))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "size of struct spulse_record is not set");
	r = stream_next_record(records->stream, &raw, err);
	if (r > 0)
		describe(records, &raw, record);
	return r;
}

void spulse_records_free(struct spulse_records *records)
{
	if (records)
		stream_free(records->stream);
	free(records);
}

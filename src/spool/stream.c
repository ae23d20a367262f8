/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include "stacks.h"

int stream_new(int fd, const struct spulse_source *source, const struct range_index *index,
	       const struct block_sums *sums, uint64_t limit, uint64_t end, uint64_t samples,
	       struct stream **stream_out, struct spulse_error **err)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_no_memory(err);
	s->in.fd = fd;
	s->in.path = source->path;
	/* Not past the blocks that were read: a length beyond the file ends a reading early. */
	s->in.limit = MIN(limit, (uint64_t)sums->sums.len * INPUT_BLOCK);
	s->in.check = sums;
	s->source = source;
	s->index = index;
	s->end = end;
	s->remaining = samples;
	*stream_out = s;
	return 0;
}

void stream_free(struct stream *stream)
{
	if (stream)
		input_release(&stream->in);
	free(stream);
}

static uint64_t offset(const struct stream *s)
{
	return input_end(&s->in) - (input_window_end(&s->in) - s->p);
}

static void set_stop(struct stream *s)
{
	const uint8_t *end = input_window_end(&s->in);
	uint64_t left = s->run_end - offset(s);

	s->stop = left < (uint64_t)(end - s->p) ? s->p + left : end;
}

/* Reads more, from s->p on. */
static int more(struct stream *s, struct spulse_error **err)
{
	int tag = s->p < input_window_end(&s->in) ? *s->p : -1;
	uint64_t at = offset(s);
	int r = input_more(&s->in, s->p - s->in.buf, err);

	s->p = s->in.buf;
	set_stop(s);
	return r < 0 ? err_locate(err, r, tag, at) : 0;
}

static int move_to(struct stream *s, uint64_t where, struct spulse_error **err)
{
	size_t skip;
	int r = 0;

	if (s->in.len && where >= s->in.base && where <= input_end(&s->in)) {
		s->p = s->in.buf + (where - s->in.base);
	} else {
		skip = input_seek(&s->in, where);
		r = input_more(&s->in, 0, err);
		if (r < 0)
			err_locate(err, r, -1, where);
		s->p = s->in.buf + MIN(skip, s->in.len);
	}
	set_stop(s);
	return r;
}

static int out_of_step(const struct stream *s, struct spulse_error **err)
{
	int tag = s->p < input_window_end(&s->in) ? *s->p : -1;

	return err_corrupt(err, s->in.path, tag, offset(s),
			   "the file was changed while it was open: unexpected record at offset "
			   "%llu", (unsigned long long)offset(s));
}

static int next_run(struct stream *s, struct spulse_error **err)
{
	const struct range_index *index = s->index;
	uint64_t gap, len, begin;

	if (s->index_at < index->packed.len) {
		for (int i = 0; i < 2; i++)
			s->index_at += varint_get(index->packed.data + s->index_at,
						  index->packed.len - s->index_at,
						  i ? &len : &gap);
		begin = s->index_offset + gap;
		s->run_end = s->index_offset = begin + len;
		return move_to(s, begin, err);
	}
	if (s->mixed || index->rest >= s->end)
		return out_of_step(s, err);
	s->mixed = true;
	s->run_end = s->end;
	return move_to(s, index->rest, err);
}

static int parse_sample(struct stream *s, struct cursor *c, struct raw_sample *sample)
{
	uint64_t thread, node, ns;
	int64_t delta;

	c->p++;
	TRY(get_sv(c, &delta));
	TRY(get_uv(c, &thread));
	TRY(get_uv(c, &node));
	if (add_overflows(s->last_ns, delta, &ns) || thread >= s->source->threads.len ||
	    node >= s->source->nodes.len)
		return FIELD_BAD;
	*sample = (struct raw_sample){ ns, thread, node };
	s->last_ns = ns;
	s->remaining--;
	return FIELD_OK;
}

/* The record at s->p, of which at least one byte is there. */
static int parse(struct stream *s, struct raw_record *record)
{
	struct cursor c = {
		.p = s->p,
		.end = input_window_end(&s->in),
		.end_offset = input_end(&s->in),
		.limit = s->in.limit,
	};
	int r;

	record->offset = offset(s);
	record->tag = *s->p;
	if (record->tag == TAG_SAMPLE)
		r = parse_sample(s, &c, &record->sample);
	else
		r = s->mixed ? skip_record(&c, &record->id) : FIELD_BAD;
	if (r != FIELD_OK)
		return r;
	record->bytes = s->p;
	record->len = c.p - s->p;
	s->p = c.p;
	return FIELD_OK;
}

/* The record at s->p, reading on as needed. */
static int next_record(struct stream *s, struct raw_record *record, struct spulse_error **err)
{
	int r;

	for (;;) {
		r = s->p < input_window_end(&s->in) ? parse(s, record) : FIELD_CUT;
		if (r == FIELD_OK)
			return 1;
		if (r == FIELD_BAD || input_end(&s->in) == s->in.limit)
			return out_of_step(s, err);
		r = more(s, err);
		if (r < 0)
			return r;
	}
}

/* One sample, wherever the next one stands: 1, 0 at the end. */
static int next_sample(struct stream *s, struct raw_sample *sample, struct spulse_error **err)
{
	struct raw_record record;
	int r;

	if (s->remaining == 0)
		return 0;
	do {
		while (offset(s) == s->run_end) {
			r = next_run(s, err);
			if (r < 0)
				return r;
		}
		r = next_record(s, &record, err);
		if (r < 0)
			return r;
	} while (record.tag != TAG_SAMPLE);
	*sample = record.sample;
	return 1;
}

/* Samples of the window that follow each other. */
static size_t take_run(struct stream *s, struct raw_sample *raw, struct spulse_sample *samples,
		       size_t max)
{
	struct sample_run run = {
		.p = s->p,
		.end = s->stop,
		.last_ns = s->last_ns,
		.threads = s->source->threads.len,
		.nodes = s->source->nodes.len,
	};
	size_t count;

	max = MIN((uint64_t)max, s->remaining);
	count = raw ? run_take(&run, raw, max)
		    : run_take_samples(&run, s->source->threads.data, samples, max);
	s->p = run.p;
	s->last_ns = run.last_ns;
	s->remaining -= count;
	return count;
}

ssize_t stream_take(struct stream *s, struct raw_sample *raw, struct spulse_sample *samples,
		    size_t max, struct spulse_error **err)
{
	struct raw_sample sample;
	size_t count = s->stop == s->p ? 0 : take_run(s, raw, samples, max);
	int r;

	if (count)
		return count;
	/* The end of a run or of the window. */
	r = next_sample(s, &sample, err);
	if (r <= 0)
		return r;
	if (raw)
		*raw = sample;
	else
		*samples = sample_from_raw(s->source, &sample);
	return 1;
}

void stream_all_records(struct stream *s, uint64_t first)
{
	s->in.base = first - first % INPUT_BLOCK;
	s->mixed = true;
	s->run_end = s->end;
	s->index_offset = first;
}

int stream_next_record(struct stream *s, struct raw_record *record, struct spulse_error **err)
{
	int r;

	if (s->index_offset) {
		if (s->index_offset == s->end)
			return 0;
		r = move_to(s, s->index_offset, err);
		if (r < 0)
			return r;
		s->index_offset = 0;
	}
	return offset(s) == s->end ? 0 : next_record(s, record, err);
}

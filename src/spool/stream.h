/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_STREAM_H
#define SPULSE_SPOOL_STREAM_H

#include "decode.h"

/*
 * A second reading of a file that was checked once, for its samples or for all records. Where
 * runs of samples stand is known from the first reading, so that the rest is jumped over.
 */

/* Runs of samples, packed: for each the gap before it and its length, as varints. */
struct range_index {
	VEC(uint8_t) packed;
	size_t count;
	uint64_t begin, end; /* the run that still grows; empty when equal */
	uint64_t packed_end; /* file offset where the packed runs end */
	uint64_t rest; /* from here on nothing is known; UINT64_MAX = all is */
};

/* Notes a sample at [begin, end); false when memory ran out. */
bool range_index_add(struct range_index *index, uint64_t begin, uint64_t end, size_t max_ranges);
/* After the last sample; `size` is where the records end. */
bool range_index_close(struct range_index *index, uint64_t size);
void range_index_release(struct range_index *index);

struct stream {
	struct input in;
	const struct spulse_source *source;
	const struct range_index *index;
	const uint8_t *p;
	const uint8_t *stop; /* end of the run within the window */
	uint64_t run_end; /* file offset */
	uint64_t last_ns, remaining, end; /* end: file offset after the last record */
	size_t index_at;
	uint64_t index_offset;
	bool mixed; /* other records may stand between the samples */
};

int stream_new(int fd, const struct spulse_source *source, const struct range_index *index,
	       const struct block_sums *sums, uint64_t limit, uint64_t end, uint64_t samples,
	       struct stream **stream_out, struct spulse_error **err);
void stream_free(struct stream *stream);

/* A record as it stands in the file, for a walk over all of them. */
struct raw_record {
	uint64_t offset;
	const uint8_t *bytes; /* live until the next call */
	size_t len;
	int tag;
	uint64_t id; /* of tags 7 (still zigzag) and 8 */
	struct raw_sample sample;
};
/* Makes a fresh stream walk all records, the first of which is at `offset`. */
void stream_all_records(struct stream *stream, uint64_t offset);
/* 1, 0 at the end. */
int stream_next_record(struct stream *stream, struct raw_record *record,
		       struct spulse_error **err);

/*
 * The next samples, at most `max`: how many, 0 at the end, or an error. `samples` gets them in
 * public terms, `raw` as they are; one of the two is NULL.
 */
ssize_t stream_take(struct stream *stream, struct raw_sample *raw, struct spulse_sample *samples,
		    size_t max, struct spulse_error **err);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_REPLAY_H
#define SPULSE_SPOOL_REPLAY_H

#include "source.h"
#include "stream.h"

/*
 * A replay keeps what a spool defines and where its samples stand, and reads them again when
 * asked. The sums of the first reading tell when the file is not the same any more.
 */
struct spulse_replay {
	struct spulse_source source;
	int fd;
	uint64_t limit, records_begin, records_end, samples;
	struct block_sums sums;
	struct range_index ranges;
};

/* A stream over all records, not just the samples. */
int replay_all_records(const struct spulse_replay *replay, struct stream **stream_out,
		       struct spulse_error **err);

#endif

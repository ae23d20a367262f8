/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_CHANNEL_H
#define SPULSE_SPOOL_CHANNEL_H

#include "spool.h"

/* The reader's side of a channel: see spool.h for the writer's. */

/* What is known at one moment. `error` is borrowed; it stays once it is there. */
struct channel_view {
	uint64_t published;
	bool ended;
	struct spulse_error *error;
};

struct channel_view channel_look(struct spool_channel *channel);
/*
 * Waits until more than `seen` bytes are published, the recording ended or the time is over (-1:
 * no limit).
 */
struct channel_view channel_wait(struct spool_channel *channel, uint64_t seen, int64_t timeout_ns);
/* Makes the descriptor quiet when no more than `seen` bytes are published and it is still open. */
void channel_quiet(struct spool_channel *channel, uint64_t seen);
int channel_fd(const struct spool_channel *channel);
/* The finished recording's counters: 1, or 0 when there are none. */
int channel_summary(struct spool_channel *channel, struct spulse_recording_summary *summary_out);

#endif

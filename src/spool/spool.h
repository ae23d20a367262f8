/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * spool: the SPULSE format: codec, writer, the one decoder, and the three readers.
 * Owns files of samples and what they define. Never samples, never names a frame, never knows
 * where a module's file is.
 */
#ifndef SPULSE_SPOOL_ROOM_H
#define SPULSE_SPOOL_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

#include <stackpulse/record.h>
#include <stackpulse/spool.h>

/* ---- writing by interned frames (the recorder's way) ---- */

/* Outputs: a file opened by path (mode 0600, O_TRUNC is the caller's business) or descriptor. */
extern const struct spulse_output spool_fd_output; /* data: an int *, owned: closed and freed */

/*
 * A frame's number within a writer; equal frames give equal numbers, for the whole recording. The
 * record itself is written with the first sample that needs it. UINT32_MAX: memory ran out.
 */
uint32_t spool_writer_intern(struct spulse_spool_writer *writer, const struct spulse_frame *frame);
/* Writes a sample whose frames are such numbers, innermost first. */
int spool_writer_sample(struct spulse_spool_writer *writer, const struct spulse_sample *sample,
			const uint32_t *frames, size_t count, struct spulse_error **err);
/* An annotation: pid -1 = the recording. Long values are split. */
int spool_writer_annotate(struct spulse_spool_writer *writer, pid_t pid, const char *key,
			  const char *value, size_t value_len, struct spulse_error **err);
/* Bytes handed to the output so far. */
/* Knows whole stacks again by this many words at most. Before the first sample. */
void spool_writer_limit_memo(struct spulse_spool_writer *writer, size_t words);
uint64_t spool_writer_written(const struct spulse_spool_writer *writer);

/* ---- what a recorder shares with its tail ---- */

/*
 * A reference-counted attachment that the spool only carries: the recorder makes it, the
 * symbolizer understands it.
 */
struct spool_attachment {
	void (*ref)(struct spool_attachment *attachment);
	void (*unref)(struct spool_attachment *attachment);
	const char *kind; /* names what is behind it */
	void *data;	  /* "images": the struct image_handover of the recorder */
};
struct spool_attachment *spool_source_attachment(const struct spulse_source *source);

/* Published length and end of a recording, shared by a recorder and its tail. */
struct spool_channel;
int spool_channel_new(struct spool_channel **out, struct spulse_error **err);
struct spool_channel *spool_channel_ref(struct spool_channel *channel);
void spool_channel_unref(struct spool_channel *channel);
void spool_channel_publish(struct spool_channel *channel, uint64_t bytes);
/* error NULL: finished with `summary`; else failed (a reference is taken). First call wins. */
void spool_channel_end(struct spool_channel *channel, struct spulse_error *error,
		       const struct spulse_recording_summary *summary);
int spool_tail_open_channel(int fd, const char *path, struct spool_channel *channel,
			    struct spool_attachment *attachment, bool disposable,
			    struct spulse_tail **tail_out, struct spulse_error **err);

/*
 * A path as version 3 can hold it: each byte that no UTF-8 sequence begins at becomes U+FFFD. Look
 * at out->failed.
 */
void spool_mend_path(struct strbuf *out, const char *path, size_t len);

/* Position of a batch in its tail, so that an update can take over what is new. */
struct spool_batch_view {
	const struct spulse_source *source;
	uint32_t first_module, end_module;	/* module ids defined by the batch */
	const pid_t *retired_processes;
	size_t retired_process_count;
	const uint32_t *retired_modules;
	size_t retired_module_count;
	uint32_t first_frame, end_frame;	/* frame ids defined by the batch */
};
void spool_batch_view(const struct spulse_batch *batch, struct spool_batch_view *view);
/* Number of the reader, as in its stack keys. */
uint64_t spool_source_number(const struct spulse_source *source);
/* Frame id of the next frame of a walk, UINT32_MAX at the end. */
uint32_t spool_frame_iter_next_id(struct spulse_frame_iter *iter);

#endif

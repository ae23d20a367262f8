/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_INPUT_H
#define SPULSE_SPOOL_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

/*
 * A window that moves over a file. The file is read in blocks with pread and never mapped, so
 * that one which shrinks gives an error. A reader that comes back later can have the blocks'
 * sums checked: what was validated once is then known to be the same bytes. RUN_SLACK bytes after
 * the window can be read too, whatever they are.
 */

enum { INPUT_BLOCK = 128 << 10 };

struct block_sums {
	VEC(uint64_t) sums;
};

struct input {
	int fd; /* borrowed */
	const char *path; /* borrowed */
	uint64_t limit; /* bytes of the file that may be looked at */
	uint64_t base; /* file offset of buf[0] */
	uint8_t *buf;
	size_t len, cap;
	struct block_sums *record; /* sums are added here */
	const struct block_sums *check; /* or compared with these */
};

/* File offset after the last byte in the window. */
static inline uint64_t input_end(const struct input *in)
{
	return in->base + in->len;
}

/* The end of the window; there may be no buffer yet. */
static inline const uint8_t *input_window_end(const struct input *in)
{
	return in->len ? in->buf + in->len : in->buf;
}

/*
 * Drops the first `drop` bytes of the window and reads more: at least one block, and at least as
 * much as is kept, but not past the limit. 0 or an error.
 */
int input_more(struct input *in, size_t drop, struct spulse_error **err);
/* Empties the window and moves it to the block that holds `offset`; returns the bytes before. */
size_t input_seek(struct input *in, uint64_t offset);
void input_release(struct input *in);

/* Opens a spool for reading and gives its size. */
int input_open_file(const char *path, int *fd_out, uint64_t *size_out, struct spulse_error **err);

void block_sums_release(struct block_sums *sums);

#endif

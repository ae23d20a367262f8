/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The bytes of a perf.data file one after the other, from a file or a pipe. */
#include <errno.h>

#include "datafile.h"

enum { BUFFER = 256 << 10 };

/* Reads once behind what is there: 1, 0 at the end, -errno. */
static int fill(struct file_bytes *b)
{
	uint64_t at = b->offset + b->len;
	size_t room;
	ssize_t n;

	if (b->start) {
		memmove(b->buf, b->buf + b->start, b->len);
		b->start = 0;
	}
	room = MIN(BUFFER - b->len, b->end - MIN(at, b->end));
	if (room == 0)
		return 0;
	do
		n = b->seekable ? pread(b->fd, b->buf + b->len, room, at) :
				  read(b->fd, b->buf + b->len, room);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	b->len += n;
	return 1;
}

int file_bytes_need(struct file_bytes *b, size_t n, const uint8_t **at)
{
	if (!b->buf && !(b->buf = malloc(BUFFER)))
		return -ENOMEM;
	while (b->len < n) {
		int r = fill(b);

		if (r <= 0)
			return r;
	}
	*at = b->buf + b->start;
	return 1;
}

void file_bytes_skip(struct file_bytes *b, size_t n)
{
	b->start += n;
	b->len -= n;
	b->offset += n;
}

int file_bytes_skip_far(struct file_bytes *b, uint64_t n)
{
	const uint8_t *at;

	if (b->seekable && n > b->len) {
		if (n > b->end - MIN(b->offset, b->end))
			return 0;
		b->offset += n;
		b->start = b->len = 0;
		return 1;
	}
	while (n) {
		size_t part = MIN(n, 4096);
		int r = file_bytes_need(b, part, &at);

		if (r <= 0)
			return r;
		file_bytes_skip(b, part);
		n -= part;
	}
	return 1;
}

void file_bytes_release(struct file_bytes *b)
{
	if (b->fd >= 0)
		close(b->fd);
	free(b->buf);
}

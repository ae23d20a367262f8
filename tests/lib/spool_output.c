/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spool_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

static ssize_t output_write(void *data, const void *bytes, size_t len)
{
	struct spool_output *output = data;
	size_t piece;

	output->calls++;
	if (output->interrupt && output->calls % output->interrupt == 0)
		return -EINTR;
	if (output->fail_call && output->calls >= output->fail_call) {
		output->failures++;
		return -output->error;
	}
	piece = output->piece ? 1 + random_below(&output->rng, output->piece) : len;
	len = MIN(len, piece);
	if (output->room) {
		len = MIN(len, output->room - output->bytes.len);
		if (!len) {
			output->failures++;
			return -output->error;
		}
	}
	strbuf_add(&output->bytes, bytes, len);
	return len;
}

static int output_flush(void *data)
{
	((struct spool_output *)data)->flushes++;
	return 0;
}

static int output_close(void *data)
{
	((struct spool_output *)data)->closes++;
	return 0;
}

const struct spulse_output spool_output_functions = {
	.size = sizeof(struct spulse_output),
	.write = output_write,
	.flush = output_flush,
	.close = output_close,
};

void spool_file_make(struct spool_file *file, const void *bytes, size_t len)
{
	file->fd = memfd_create("spool", MFD_CLOEXEC);
	if (file->fd < 0 || write(file->fd, bytes, len) != (ssize_t)len)
		abort();
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

void spool_file_close(struct spool_file *file)
{
	close(file->fd);
}

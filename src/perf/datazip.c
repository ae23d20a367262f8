/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Compressed records: their contents are one zstd stream, cut anywhere, in which records stand
 * one behind the other. Little is unpacked at a time, however much the stream would give.
 */
#include <errno.h>

#include "config.h"

#include "datafile.h"

#if SPULSE_HAVE_ZSTD
#include <zstd.h>

/* Two records and what the library likes to hand out at once. */
enum { OUTPUT = 256 << 10 };

struct file_unzip {
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;
	uint8_t *out;
	size_t start, len; /* unread output */
	uint8_t record[FILE_RECORD_MAX + 1] __attribute__((aligned(8)));
};

int file_unzip_new(struct file_unzip **unzip_out, struct spulse_error **err)
{
	struct file_unzip *z = calloc(1, sizeof(*z));

	if (z) {
		z->stream = ZSTD_createDStream();
		z->out = malloc(OUTPUT);
	}
	if (!z || !z->stream || !z->out || ZSTD_isError(ZSTD_initDStream(z->stream))) {
		file_unzip_free(z);
		return err_no_memory(err);
	}
	*unzip_out = z;
	return 0;
}

void file_unzip_put(struct file_unzip *z, const uint8_t *bytes, size_t len)
{
	z->in = (ZSTD_inBuffer){ .src = bytes, .size = len };
}

/* Unpacks some more: 1, 0 when nothing came, -EBADMSG. */
static int unpack(struct file_unzip *z)
{
	ZSTD_outBuffer out = { .dst = z->out, .size = OUTPUT };
	size_t used = z->in.pos, r;

	memmove(z->out, z->out + z->start, z->len);
	z->start = 0;
	out.pos = z->len;
	r = ZSTD_decompressStream(z->stream, &out, &z->in);
	if (ZSTD_isError(r))
		return -EBADMSG;
	if (out.pos == z->len && z->in.pos == used)
		return 0;
	z->len = out.pos;
	return 1;
}

int file_unzip_record(struct file_unzip *z, const uint8_t **record, size_t *size)
{
	const struct perf_event_header *header;
	int r;

	for (;;) {
		if (z->len >= sizeof(*header)) {
			memcpy(z->record, z->out + z->start, sizeof(*header));
			header = (const void *)z->record;
			if (header->size < sizeof(*header))
				return -EBADMSG;
			if (z->len >= header->size)
				break;
		}
		r = unpack(z);
		if (r <= 0)
			return r;
	}
	*size = header->size;
	memcpy(z->record, z->out + z->start, *size);
	z->start += *size;
	z->len -= *size;
	*record = z->record;
	return 1;
}

void file_unzip_free(struct file_unzip *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z->out);
	free(z);
}
#else
int file_unzip_new(struct file_unzip **unzip_out, struct spulse_error **err)
{
	(void)unzip_out;
	return err_set(err, SPULSE_ERROR_UNSUPPORTED,
		       "the file has compressed records and this build has no zstd");
}

void file_unzip_put(struct file_unzip *z, const uint8_t *bytes, size_t len)
{
	(void)z;
	(void)bytes;
	(void)len;
}

int file_unzip_record(struct file_unzip *z, const uint8_t **record, size_t *size)
{
	(void)z;
	(void)record;
	(void)size;
	return -EBADMSG;
}

void file_unzip_free(struct file_unzip *z)
{
	(void)z;
}
#endif

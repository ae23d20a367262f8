/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "writer.h"

#include <errno.h>
#include <unistd.h>

bool sink_init(struct sink *sink, const struct spulse_output *output, void *data)
{
	memcpy(&sink->output, output, MIN(output->size, sizeof(*output)));
	sink->data = data;
	sink->buf = malloc(SINK_SIZE);
	return sink->buf;
}

void sink_release(struct sink *sink)
{
	if (sink->output.close)
		sink->output.close(sink->data);
	spulse_error_free(sink->failed);
	free(sink->buf);
}

int sink_fail(struct sink *sink, struct spulse_error *error, struct spulse_error **err)
{
	if (!sink->failed)
		sink->failed = error;
	else
		spulse_error_free(error);
	return err_repeat(err, sink->failed);
}

static int fail_write(struct sink *sink, int errnum, struct spulse_error **err)
{
	unsigned long long offset = sink->written;

	return sink_fail(sink,
			 spulse_error_new(err_kind_of_errno(errnum), errnum, NULL,
					  SPULSE_ERROR_DOMAIN_OUTPUT, (int64_t)offset,
					  "cannot write the spool at offset %llu", offset),
			 err);
}

static int write_all(struct sink *sink, const uint8_t *bytes, size_t len,
		     struct spulse_error **err)
{
	while (len) {
		ssize_t n = sink->output.write(sink->data, bytes, len);

		if (n == -EINTR)
			continue;
		if (n <= 0 || (size_t)n > len)
			return fail_write(sink, n < 0 ? -n : EIO, err);
		bytes += n;
		len -= n;
		sink->written += n;
	}
	return 0;
}

static int empty(struct sink *sink, struct spulse_error **err)
{
	int r = write_all(sink, sink->buf, sink->len, err);

	sink->len = 0;
	return r;
}

uint8_t *sink_room(struct sink *sink, struct spulse_error **err)
{
	if (unlikely(sink->failed)) {
		err_repeat(err, sink->failed);
		return NULL;
	}
	if (unlikely(SINK_SIZE - sink->len < SMALL_RECORD_MAX) && empty(sink, err) < 0)
		return NULL;
	return sink->buf + sink->len;
}

int sink_put(struct sink *sink, const void *bytes, size_t len, struct spulse_error **err)
{
	int r = 0;

	if (sink->failed)
		return err_repeat(err, sink->failed);
	if (len > SINK_SIZE - sink->len)
		r = empty(sink, err);
	if (r == 0 && len > SINK_SIZE)
		return write_all(sink, bytes, len, err);
	if (r == 0 && len) {
		memcpy(sink->buf + sink->len, bytes, len);
		sink->len += len;
	}
	return r;
}

int sink_flush(struct sink *sink, struct spulse_error **err)
{
	int r;

	if (sink->failed)
		return err_repeat(err, sink->failed);
	r = empty(sink, err);
	if (r < 0 || !sink->output.flush)
		return r;
	r = sink->output.flush(sink->data);
	return r < 0 ? fail_write(sink, -r, err) : 0;
}

/* Everything of a module but its path's bytes: tag, nine numbers, the flag, a length. */
enum { MODULE_HEAD_MAX = 2 + 10 * VARINT_MAX };

int sink_put_module(struct sink *sink, uint8_t tag, uint32_t id,
		    const struct spulse_module_fields *m, struct spulse_error **err)
{
	uint8_t head[MODULE_HEAD_MAX], *p = head;
	int r;

	*p++ = tag;
	p = varint_put(p, id);
	p = varint_put(p, zigzag(m->is_kernel ? -1 : m->pid));
	p = varint_put(p, m->start);
	p = varint_put(p, m->end);
	p = varint_put(p, m->file_offset);
	p = varint_put(p, m->inode);
	p = varint_put(p, m->device_major);
	p = varint_put(p, m->device_minor);
	p = varint_put(p, m->inode_generation);
	*p++ = m->is_kernel != 0;
	p = varint_put(p, m->path_len);
	r = sink_put(sink, head, p - head, err);
	return r < 0 ? r : sink_put(sink, m->path, m->path_len, err);
}

static ssize_t fd_write(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

static int fd_close(void *data)
{
	int r = close(*(int *)data);

	free(data);
	return r < 0 ? -errno : 0;
}

const struct spulse_output spool_fd_output = {
	.size = sizeof(struct spulse_output),
	.write = fd_write,
	.close = fd_close,
};

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleanup.h"
#include "util.h"

ssize_t read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n == 0)
			break;
		if (n > 0)
			done += n;
		else if (errno != EINTR)
			return -errno;
	}
	return done;
}

ssize_t pread_full(int fd, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, offset + done);

		if (n == 0)
			break;
		if (n > 0)
			done += n;
		else if (errno != EINTR)
			return -errno;
	}
	return done;
}

int write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int read_fd(int fd, size_t max, struct strbuf *sb)
{
	char buf[16384];
	ssize_t n;

	strbuf_reset(sb);
	while ((n = read_full(fd, buf, MIN(sizeof(buf), max - sb->len + 1))) > 0) {
		strbuf_add(sb, buf, n);
		if (sb->failed)
			return -ENOMEM;
		if (sb->len > max)
			return -EFBIG;
	}
	if (n < 0)
		return n;
	strbuf_add(sb, "", 0);
	return sb->failed ? -ENOMEM : 0;
}

int read_file(const char *path, size_t max, struct strbuf *sb)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_fd(fd, max, sb);
}

int read_file_number(const char *path, int64_t *value)
{
	struct strbuf text = { 0 };
	int r = read_file(path, 4096, &text);
	char *end;

	if (r == 0) {
		errno = 0;
		*value = strtoll(text.data, &end, 10);
		if (end == text.data || errno)
			r = -EBADMSG;
	}
	strbuf_release(&text);
	return r;
}

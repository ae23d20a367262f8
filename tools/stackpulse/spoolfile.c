/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoolfile.h"
#include "tool.h"

static bool fail(const char *what, const char *path)
{
	tool_message("cannot %s %s: %s; -o FILE records elsewhere", what, path, strerror(errno));
	return false;
}

/* The folder of path, "." without one. */
static const char *folder_of(const char *path, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return ".";
	snprintf(buf, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return buf;
}

static bool open_regular(struct spoolfile *file)
{
	char folder[4096];
	int len;

	file->regular = true;
	file->fd = open(folder_of(file->path, folder, sizeof(folder)),
			O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file->fd >= 0)
		return true;
	/* File systems without nameless files. */
	len = snprintf(file->temporary, sizeof(file->temporary), "%s.new%d", file->path, getpid());
	if (len >= (int)sizeof(file->temporary)) {
		errno = ENAMETOOLONG;
		return fail("create", file->path);
	}
	unlink(file->temporary);
	file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file->fd >= 0)
		return true;
	file->temporary[0] = '\0';
	return fail("create", file->path);
}

bool spoolfile_open(struct spoolfile *file, const char *path)
{
	struct stat st;

	*file = (struct spoolfile){.path = path, .fd = -1};
	if (!*path) {
		errno = ENOENT;
		return fail("create", "\"\"");
	}
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return open_regular(file);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return fail("write", path);
	}
	file->fd = open(path, O_WRONLY | O_CLOEXEC);
	return file->fd >= 0 || fail("open", path);
}

static ssize_t write_bytes(void *data, const void *bytes, size_t len)
{
	const struct spoolfile *file = data;
	ssize_t n;

	do
		n = write(file->fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int spoolfile_attach(struct spoolfile *file, pid_t pid, enum spulse_attach_mode mode,
		     const struct spulse_recorder_options *options,
		     struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_bytes};

	if (file->regular)
		return spulse_recorder_attach_fd(pid, file->fd, mode, options, recorder_out, err);
	return spulse_recorder_attach_output(pid, &output, file, mode, options, recorder_out, err);
}

static bool keep_old(struct spoolfile *file)
{
	char old[4096 + 8];

	snprintf(old, sizeof(old), "%s.old", file->path);
	if (rename(file->path, old) == 0)
		file->kept_old = true;
	else if (errno != ENOENT)
		return fail("rename", file->path);
	return true;
}

bool spoolfile_publish(struct spoolfile *file)
{
	char link[64];

	if (!file->regular)
		return true;
	if (!keep_old(file))
		return false;
	if (file->temporary[0]) {
		if (rename(file->temporary, file->path) < 0)
			return fail("create", file->path);
	} else {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
		if (linkat(AT_FDCWD, link, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) < 0)
			return fail("create", file->path);
	}
	file->named = true;
	return true;
}

uint64_t spoolfile_bytes(const struct spoolfile *file)
{
	struct stat st;

	if (!file->regular || fstat(file->fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

void spoolfile_close(struct spoolfile *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary[0] && !file->named)
		unlink(file->temporary);
	file->fd = -1;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording. It gets its name only when the attach worked and the header is in it:
 * a failed attach leaves no file, and being killed leaves no cut header.
 */
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_fd(int fd, struct spulse_error **err)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not an open descriptor", fd);
	if (!S_ISREG(st.st_mode))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "the output descriptor is not a regular file");
	if (st.st_size != 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the output file is not empty");
	if ((flags & O_ACCMODE) == O_RDONLY)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the output file is not writable");
	if (flags & O_APPEND)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "the output file is in append mode");
	return 0;
}

int output_check(const struct rec_target *target, struct spulse_error **err)
{
	if (target->output) {
		if (target->output->size < sizeof(*target->output) || !target->output->write)
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "an output without a write function");
		return 0;
	}
	if (target->fd >= 0 || !target->path)
		return check_fd(target->fd, err);
	if (!target->path[0])
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "an empty output path");
	return 0;
}

/* The folder of a path, with its slash; "" for the current one. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
}

/* A symbolic link stays one: what it points to is replaced. */
static char *real_name(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

static int open_hidden(struct rec_target *target, const char *folder)
{
	if (asprintf(&target->hidden, "%s.stackpulse-XXXXXX", folder) < 0) {
		target->hidden = NULL;
		return -ENOMEM;
	}
	target->file = mkostemp(target->hidden, O_CLOEXEC);
	if (target->file >= 0)
		return 0;
	free(target->hidden);
	target->hidden = NULL;
	return -errno;
}

static int open_nameless(struct rec_target *target)
{
	_cleanup_free_ char *folder = folder_of(target->name);

	if (!folder)
		return -ENOMEM;
	target->file = open(folder[0] ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (target->file >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return -errno;
	return open_hidden(target, folder);
}

/* Opens the file behind a path; what is there and is no regular file is written to directly. */
static int open_path(struct rec_target *target, int *fd_out, struct spulse_error **err)
{
	struct stat st;
	int r;

	if (stat(target->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		*fd_out = open(target->path, O_WRONLY | O_CLOEXEC);
		return *fd_out < 0 ? err_io(err, errno, target->path, "cannot write %s",
					    target->path) : 0;
	}
	target->name = real_name(target->path);
	if (!target->name)
		return err_no_memory(err);
	r = open_nameless(target);
	if (r < 0)
		return err_io(err, -r, target->path, "cannot create %s", target->path);
	fchmod(target->file, 0600);
	*fd_out = fcntl(target->file, F_DUPFD_CLOEXEC, 3);
	return *fd_out < 0 ? err_io(err, errno, target->path, "cannot create %s", target->path) : 0;
}

/* The descriptor that the writer gets; it owns it from then on. */
static int open_descriptor(struct spulse_recorder *rec, struct rec_target *target, int **fd_out,
			   struct spulse_error **err)
{
	int *fd = malloc(sizeof(*fd));
	struct stat st;
	int r = 0;

	if (!fd)
		return err_no_memory(err);
	*fd = -1;
	if (target->path) {
		r = open_path(target, fd, err);
	} else {
		*fd = fcntl(target->fd, F_DUPFD_CLOEXEC, 3);
		if (*fd < 0)
			r = err_io(err, errno, NULL, "cannot duplicate the output descriptor");
		else
			lseek(*fd, 0, SEEK_SET);
	}
	if (r == 0 && fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
		rec->fd = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	if (r < 0) {
		if (*fd >= 0)
			close(*fd);
		free(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

/* The recorder's stacks come as one word a frame: room for 2,500 that are a hundred deep. */
enum { MEMO_WORDS = 1 << 18 };

static int open_writer(struct spulse_recorder *rec, const struct rec_target *target,
		       const struct spulse_output *output, void *data, struct spulse_error **err)
{
	int r = spulse_spool_writer_new(output, data, &target->header, &rec->writer, err);

	if (r == 0)
		spool_writer_limit_memo(rec->writer, MEMO_WORDS);
	return r;
}

int output_open(struct spulse_recorder *rec, struct rec_target *target, struct spulse_error **err)
{
	int *fd = NULL;
	int r;

	if (target->output)
		return open_writer(rec, target, target->output, target->data, err);
	r = open_descriptor(rec, target, &fd, err);
	if (r < 0)
		return r;
	r = open_writer(rec, target, &spool_fd_output, fd, err);
	if (r < 0) {
		close(*fd);
		free(fd);
	}
	return r;
}

/* A nameless file gets a name that no other has yet. */
static int link_hidden(struct rec_target *target)
{
	_cleanup_free_ char *folder = folder_of(target->name);
	char self[32];

	if (!folder)
		return -ENOMEM;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", target->file);
	for (int i = 0; i < 100; i++) {
		if (asprintf(&target->hidden, "%s.stackpulse-%d-%d", folder, getpid(), i) < 0) {
			target->hidden = NULL;
			return -ENOMEM;
		}
		if (linkat(AT_FDCWD, self, AT_FDCWD, target->hidden, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		free(target->hidden);
		target->hidden = NULL;
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

int output_publish(struct rec_target *target, struct spulse_error **err)
{
	int r = 0;

	if (target->file < 0)
		return 0;
	if (!target->hidden)
		r = link_hidden(target);
	if (r == 0 && rename(target->hidden, target->name) < 0)
		r = -errno;
	if (r < 0)
		return err_io(err, -r, target->path, "cannot create %s", target->path);
	free(target->hidden);
	target->hidden = NULL;
	return 0;
}

void output_release(struct rec_target *target)
{
	if (target->hidden)
		unlink(target->hidden);
	if (target->file >= 0)
		close(target->file);
	free(target->hidden);
	free(target->name);
}

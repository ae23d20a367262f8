/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "perfopen.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../image/image.h"
#include "../proc/proc.h"

static const char default_dir[] = "/tmp";

/* The process's number in its own, innermost namespace; itself where that is not known. */
static pid_t namespace_pid(pid_t pid)
{
	struct strbuf status = {0};
	pid_t inner = pid;
	const char *line;

	if (proc_file_read(pid, 0, "status", 1 << 16, &status) == 0 &&
	    (line = strstr(status.data, "\nNSpid:")) != NULL) {
		char *at = (char *)line + strlen("\nNSpid:"), *end;

		while (*at == '\t' || *at == ' ') {
			long number = strtol(at, &end, 10);

			if (end == at)
				break;
			inner = number;
			at = end;
		}
	}
	strbuf_release(&status);
	return inner;
}

/* Whether the process sees the same folder under that name as we do. */
static bool sees_same_folder(const char *root, const char *dir)
{
	_cleanup_close_ int fd = image_open_in_root(root, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat ours, theirs;

	/* Not to be seen (gone, or not ours): then neither is its map. */
	if (fd < 0 || fstat(fd, &theirs) < 0)
		return true;
	return stat(dir, &ours) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static char *map_path(const char *dir, pid_t pid)
{
	char *path;

	return asprintf(&path, "%s/perf-%d.map", dir, (int)pid) < 0 ? NULL : path;
}

int perfmap_places(const char *dir, pid_t pid, struct perfmap_place places[2])
{
	int count = 0;

	memset(places, 0, 2 * sizeof(*places));
	if (!dir || strcmp(dir, default_dir) == 0) {
		char root[sizeof(places->root)];
		pid_t inner = namespace_pid(pid);

		dir = default_dir;
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
		if (inner != pid || !sees_same_folder(root, dir)) {
			places[0].path = map_path(dir, inner);
			if (!places[0].path)
				return 0;
			memcpy(places[0].root, root, sizeof(root));
			count = 1;
		}
	}
	places[count].path = map_path(dir, pid);
	if (places[count].path)
		return count + 1;
	perfmap_place_release(&places[0]);
	return 0;
}

void perfmap_place_release(struct perfmap_place *place)
{
	free(take_ptr(place->path));
}

static bool is_process_user(pid_t pid, uid_t uid)
{
	char path[32];
	struct stat st;
	pid_t real;

	/* The folder belongs to the effective user, the status file tells the real one. */
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) == 0 && st.st_uid == uid)
		return true;
	return proc_status_number(pid, 0, "Uid", &real) == 0 && (uid_t)real == uid;
}

static bool is_sudo_user(uid_t uid)
{
	const char *text = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	char *end;
	unsigned long caller = text ? strtoul(text, &end, 10) : 0;

	return text && end != text && *end == '\0' && caller == uid;
}

/* Whether only root and ourselves can have put files there. */
static bool is_private_folder(const struct perfmap_place *place)
{
	_cleanup_free_ char *copy = strdup(place->path);
	struct stat st;

	if (!copy || place->root[0] || stat(dirname(copy), &st) < 0)
		return false;
	return (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool is_trusted(const struct perfmap_place *place, pid_t pid, const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid() || is_process_user(pid, st->st_uid) ||
	       is_sudo_user(st->st_uid) || is_private_folder(place);
}

static const char *refusal(const struct perfmap_place *place, pid_t pid, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "not a regular file";
	if (st->st_size > PERFMAP_MAX)
		return "larger than 64 MiB";
	if (!is_trusted(place, pid, st))
		return "owned by a user who cannot speak for the process";
	return NULL;
}

static const char *open_reason(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return "no such file";
	case ELOOP:
		return "a symbolic link";
	case EACCES:
	case EPERM:
		return "permission denied";
	case ENXIO:
		return "not a regular file";
	default:
		return "cannot be opened";
	}
}

static int64_t nanoseconds(const struct timespec *ts)
{
	return (int64_t)((uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec);
}

int perfmap_open(const struct perfmap_place *place, pid_t pid, struct perfmap_stamp *stamp,
		 const char **reason)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
	_cleanup_close_ int fd = place->root[0] ?
					 image_open_in_root(place->root, place->path, flags) :
					 open(place->path, flags);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		*reason = open_reason(errno);
		return -1;
	}
	*reason = refusal(place, pid, &st);
	if (*reason)
		return -1;
	*stamp = (struct perfmap_stamp){
		.device = st.st_dev, .inode = st.st_ino, .size = st.st_size,
		.mtime_ns = nanoseconds(&st.st_mtim), .ctime_ns = nanoseconds(&st.st_ctim),
	};
	return take_fd(&fd);
}

bool perfmap_place_exists(const struct perfmap_place *place)
{
	int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int fd = place->root[0] ?
					 image_open_in_root(place->root, place->path, flags) :
					 open(place->path, flags);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

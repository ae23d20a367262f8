/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * From a mapping to its file. A path is only a hint: the file may be deleted, replaced, or seen
 * from another mount namespace. So several doors are tried, and what opens must be a regular file
 * with the device and inode of the mapping. The target decides what lies behind every path:
 * FIFOs must not block us, nor links lead to another file at the last step.
 */
#include "elfimage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { OPEN_FLAGS = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY };

/* One way to a file. */
struct candidate {
	const char *root;	/* links are resolved below it; NULL: the whole path is below "/" */
	const char *path;
	bool follow;		/* a link at the end is followed */
};

struct attempt {
	const struct image_request *request;
	struct strbuf why;	/* refused candidates */
	bool foreign;		/* a file was there, but another one */
	int errnum;		/* of the last candidate that could not be opened */
	struct image_identity identity;
	char *opened;		/* path of the descriptor */
};

static void refuse(struct attempt *a, const struct candidate *c, const char *reason)
{
	strbuf_printf(&a->why, "%s%s%s: %s", a->why.len ? "; " : "", c->root ? c->root : "",
		      c->path, reason);
}

/* Where openat2() is denied the plain path must do: callers check what they got anyway. */
int image_open_in_root(const char *root, const char *path, int flags)
{
	struct open_how how = {.flags = flags, .resolve = RESOLVE_IN_ROOT};
	_cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char plain[PATH_MAX];
	int fd;

	if (root_fd < 0)
		return -1;
	fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	if (snprintf(plain, sizeof(plain), "%s%s", root, path) >= (int)sizeof(plain)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(plain, flags);
}

static bool identity_known(const struct image_request *request)
{
	return request->inode != 0 && (request->dev_major != 0 || request->dev_minor != 0);
}

/* Whether the file is the mapping's; else says why not. */
static bool is_wanted(struct attempt *a, const struct candidate *c, const struct stat *st)
{
	const struct image_request *want = a->request;
	char reason[160];

	if (!S_ISREG(st->st_mode)) {
		refuse(a, c, "not a regular file");
		return false;
	}
	image_identity_of(st, &a->identity);
	a->identity.generation = want->generation;
	if (want->sysroot && want->sysroot[0])
		return true;
	if (want->inode != 0 && want->inode != a->identity.inode) {
		snprintf(reason, sizeof(reason), "another file: inode %llu, mapped was %llu",
			 (unsigned long long)a->identity.inode, (unsigned long long)want->inode);
		refuse(a, c, reason);
		return false;
	}
	if ((want->dev_major != 0 || want->dev_minor != 0) &&
	    (want->dev_major != a->identity.dev_major ||
	     want->dev_minor != a->identity.dev_minor)) {
		snprintf(reason, sizeof(reason), "on device %u:%u, mapped was one on %u:%u",
			 a->identity.dev_major, a->identity.dev_minor, want->dev_major,
			 want->dev_minor);
		refuse(a, c, reason);
		return false;
	}
	return true;
}

/* A descriptor of the wanted file, or -1 with the reason noted. */
static int try_candidate(struct attempt *a, const struct candidate *c)
{
	int flags = OPEN_FLAGS | (c->follow ? 0 : O_NOFOLLOW);
	_cleanup_close_ int fd = c->root ? image_open_in_root(c->root, c->path, flags) :
					     open(c->path, flags);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		a->errnum = errno;
		/* A link, or a device or socket that cannot be opened: never a file. */
		a->foreign |= errno == ELOOP || errno == ENXIO;
		refuse(a, c, errno == ELOOP ? "a symbolic link" : strerror(errno));
		return -1;
	}
	if (!is_wanted(a, c, &st)) {
		a->foreign = true;
		return -1;
	}
	free(a->opened);
	a->opened = malloc(strlen(c->path) + (c->root ? strlen(c->root) : 0) + 1);
	if (!a->opened) {
		a->errnum = ENOMEM;
		return -1;
	}
	sprintf(a->opened, "%s%s", c->root ? c->root : "", c->path);
	return take_fd(&fd);
}

static int try_process(struct attempt *a)
{
	const struct image_request *rq = a->request;
	char link[128], root[64], exe[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)rq->pid,
		 (unsigned long long)rq->start, (unsigned long long)rq->end);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)rq->pid);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)rq->pid);
	if (rq->pid > 0 && (fd = try_candidate(a, &(struct candidate){NULL, link, true})) >= 0)
		return fd;
	if (rq->pid > 0 && identity_known(rq) && rq->path[0] == '/' &&
	    (fd = try_candidate(a, &(struct candidate){root, rq->path, false})) >= 0)
		return fd;
	if ((fd = try_candidate(a, &(struct candidate){NULL, rq->path, false})) >= 0)
		return fd;
	if (rq->pid > 0 && identity_known(rq))
		return try_candidate(a, &(struct candidate){NULL, exe, true});
	return -1;
}

static enum image_failure report_failure(struct attempt *a, struct spulse_error **err)
{
	const char *why = a->why.failed || !a->why.data ? "out of memory" : a->why.data;
	enum spulse_error_kind kind = a->foreign ? SPULSE_ERROR_UNSUPPORTED :
							 err_kind_of_errno(a->errnum);

	err_file(err, kind, 0, a->request->path, "cannot open the file mapped as %s: %s",
		 a->request->path, why);
	return a->foreign ? IMAGE_UNSUPPORTED : IMAGE_RETRY;
}

/* Takes the descriptor over. */
static enum image_failure share(struct image_cache *cache, int fd, const struct attempt *a,
				struct image **image_out, struct spulse_error **err)
{
	struct image *image = cache ? image_cache_find(cache, &a->identity) : NULL;
	int r;

	if (image) {
		close(fd);
		*image_out = image;
		return IMAGE_OK;
	}
	r = image_new_file(fd, a->opened, &a->identity, &image, err);
	if (r < 0)
		return r == -SPULSE_ERROR_NO_MEMORY || r == -SPULSE_ERROR_IO ? IMAGE_RETRY :
									       IMAGE_UNSUPPORTED;
	*image_out = cache ? image_cache_add(cache, image) : image;
	return IMAGE_OK;
}

static enum image_failure open_vdso(struct image_cache *cache, struct image **image_out,
				    struct spulse_error **err)
{
	struct image *image = NULL;

	if (cache)
		image = image_cache_vdso(cache, err);
	else if (image_vdso_new(&image, err) < 0)
		image = NULL;
	if (!image)
		return IMAGE_UNSUPPORTED;
	*image_out = image;
	return IMAGE_OK;
}

/* Memory that no file backs. */
static bool has_no_file(const char *path)
{
	return path[0] == '\0' || path[0] == '[' || has_prefix(path, "//anon");
}

enum image_failure image_open(struct image_cache *cache, const struct image_request *request,
			      struct image **image_out, struct spulse_error **err)
{
	struct attempt attempt = {.request = request};
	enum image_failure failure;
	int fd;

	if (strcmp(request->path, "[vdso]") == 0)
		return open_vdso(cache, image_out, err);
	if (has_no_file(request->path)) {
		err_set(err, SPULSE_ERROR_UNSUPPORTED, "\"%s\" is no file", request->path);
		return IMAGE_UNSUPPORTED;
	}
	if (request->sysroot && request->sysroot[0])
		fd = try_candidate(&attempt, &(struct candidate){request->sysroot, request->path,
								 false});
	else
		fd = try_process(&attempt);
	failure = fd < 0 ? report_failure(&attempt, err) :
			   share(cache, fd, &attempt, image_out, err);
	strbuf_release(&attempt.why);
	free(attempt.opened);
	return failure;
}

int image_open_path(const char *path, struct image **image_out, struct spulse_error **err)
{
	_cleanup_close_ int fd = open(path, OPEN_FLAGS);
	struct image_identity identity;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_io(err, errno, path, "cannot open");
	if (!S_ISREG(st.st_mode))
		return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, path, "%s is not a regular file",
				path);
	image_identity_of(&st, &identity);
	return image_new_file(take_fd(&fd), path, &identity, image_out, err);
}

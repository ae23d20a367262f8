/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Debug files from servers, through libdebuginfod: loaded only when somebody asks, so that neither
 * it nor what it needs (curl, TLS) is a dependency. Its cache is the system's.
 */
#include "debugfile.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config.h"
#include "image.h"

enum { DEFAULT_TIMEOUT_S = 90, MAX_BUILD_ID = 64 };

#if SPULSE_HAVE_DEBUGINFOD
struct client;

/* What of the library is used; its interface is stable. */
struct library {
	void *handle;
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	int (*find_debuginfo)(struct client *client, const unsigned char *id, int len,
			      char **path);
	int (*find_executable)(struct client *client, const unsigned char *id, int len,
			       char **path);
	void (*set_progressfn)(struct client *client,
			       int (*fn)(struct client *client, long done, long total));
	void (*set_user_data)(struct client *client, void *data);
	void *(*get_user_data)(struct client *client);
};

static struct library library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void *need(void *handle, const char *name)
{
	return handle ? dlsym(handle, name) : NULL;
}

static void load_library(void)
{
	const char *cache = getenv("STACKPULSE_DEBUGINFOD_CACHE_DIR");
	void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

	/* The library knows no other way to be told its cache. */
	if (cache && cache[0])
		setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	library.begin = need(handle, "debuginfod_begin");
	library.end = need(handle, "debuginfod_end");
	library.find_debuginfo = need(handle, "debuginfod_find_debuginfo");
	library.find_executable = need(handle, "debuginfod_find_executable");
	library.set_progressfn = need(handle, "debuginfod_set_progressfn");
	library.set_user_data = need(handle, "debuginfod_set_user_data");
	library.get_user_data = need(handle, "debuginfod_get_user_data");
	if (library.begin && library.end && library.find_debuginfo && library.find_executable &&
	    library.set_progressfn && library.set_user_data && library.get_user_data)
		library.handle = handle;
}

/* One question to the servers. */
struct question {
	const struct image_debug_options *options;
	struct timespec deadline;
	bool late;
	char what[2 * MAX_BUILD_ID + 1];
};

static bool is_past(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline->tv_sec ||
	       (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

/* Called by the library now and then while it waits; not 0 makes it give up. */
static int on_progress(struct client *client, long done, long total)
{
	struct question *q = library.get_user_data(client);

	q->late = is_past(&q->deadline);
	if (q->late)
		return 1;
	return q->options->progress &&
	       !q->options->progress(q->options->progress_data, q->what, done, total);
}

static void ask(struct question *q, const uint8_t *build_id, size_t len, bool executable,
		struct image **image_out, struct strbuf *reason)
{
	struct client *client = library.begin();
	struct spulse_error *error = NULL;
	char *path = NULL;
	int fd;

	if (!client) {
		strbuf_puts(reason, "libdebuginfod cannot be started");
		return;
	}
	library.set_user_data(client, q);
	library.set_progressfn(client, on_progress);
	fd = (executable ? library.find_executable : library.find_debuginfo)(client, build_id, len,
									     &path);
	library.end(client);
	if (fd < 0) {
		strbuf_printf(reason, "%s", q->late ? "no answer in time" : strerror(-fd));
		return;
	}
	close(fd);
	if (!path || image_open_path(path, image_out, &error) < 0)
		strbuf_puts(reason, path ? spulse_error_message(error) : "no file was named");
	spulse_error_free(error);
	free(path);
}

static bool has_build_id(const struct image *image, const uint8_t *build_id, size_t len)
{
	size_t own_len;
	const uint8_t *own = image_build_id(image, &own_len);

	return own && own_len == len && memcmp(own, build_id, len) == 0;
}

int image_debuginfod_fetch(const uint8_t *build_id, size_t len, bool executable,
			   const struct image_debug_options *options, struct image **image_out,
			   struct strbuf *reason)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct question q = {.options = options};
	struct image *found = NULL;

	if (len == 0 || len > MAX_BUILD_ID) {
		strbuf_puts(reason, "no build ID to ask for");
		return 0;
	}
	if (!urls || !urls[0]) {
		strbuf_puts(reason, "DEBUGINFOD_URLS names no server");
		return 0;
	}
	if (options->servers_silent && __atomic_load_n(options->servers_silent, __ATOMIC_RELAXED)) {
		strbuf_puts(reason, "the servers did not answer in time before");
		return 0;
	}
	pthread_once(&library_once, load_library);
	if (!library.handle) {
		strbuf_puts(reason, "libdebuginfod.so.1 is not installed");
		return 0;
	}
	for (size_t i = 0; i < len; i++)
		snprintf(q.what + 2 * i, 3, "%02x", build_id[i]);
	clock_gettime(CLOCK_MONOTONIC, &q.deadline);
	q.deadline.tv_sec += options->timeout_s ? options->timeout_s : DEFAULT_TIMEOUT_S;
	ask(&q, build_id, len, executable, &found, reason);
	if (q.late && options->servers_silent)
		__atomic_store_n(options->servers_silent, true, __ATOMIC_RELAXED);
	if (found && !has_build_id(found, build_id, len)) {
		strbuf_puts(reason, "the server sent another build");
		image_unref(found);
		found = NULL;
	}
	if (found)
		*image_out = found;
	return found != NULL;
}
#else
int image_debuginfod_fetch(const uint8_t *build_id, size_t len, bool executable,
			   const struct image_debug_options *options, struct image **image_out,
			   struct strbuf *reason)
{
	(void)build_id, (void)len, (void)executable, (void)options, (void)image_out;
	strbuf_puts(reason, "this build cannot ask servers");
	return 0;
}
#endif

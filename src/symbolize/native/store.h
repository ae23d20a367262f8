/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_STORE_H
#define SPULSE_SYMBOLIZE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "../request.h"

/*
 * The built-in backend's memory: what was read of each image, shared by all processes of one
 * symbolizer. Bounded: the least recently used images go first, and are read again when needed.
 */
struct native_store;

struct native_options {
	const char *debug_dirs; /* colon-separated; NULL: the environment's or the build's */
	const char *sysroot;	/* or NULL */
	bool servers;		/* those that DEBUGINFOD_URLS names */
	unsigned int server_timeout_s; /* 0: the usual */
	image_debug_progress progress; /* or NULL */
	void *progress_data;
};

/* NULL when memory ran out or the backend is not built in. */
struct native_store *native_store_new(const struct native_options *options);
void native_store_free(struct native_store *store);
/* Folders of debug files; NULL without a store. */
const struct image_roots *native_store_roots(const struct native_store *store);
/* An address that will be looked up. */
struct native_place {
	const struct spulse_native_module *module;
	uint64_t image_address;
};

/* Reads in parallel what lookups will need. Only saves time: nothing fails. */
void native_store_prepare(struct native_store *store, const struct native_place *places,
			  size_t count, unsigned int threads);
/*
 * Start of the function around an address of an image, as unwind tables know it: for code without
 * a symbol. False when they do not cover it.
 */
bool native_store_function_start(struct native_store *store, const struct native_place *place,
				 uint64_t *start);
/* Between two calls: gives back what is over the limits. */
void native_store_trim(struct native_store *store);
/* Whether a backend is the built-in one, whose strings need no copy. */
bool native_is_builtin(const struct spulse_native_backend *backend);
/* Adds lines on how names of an image are found: files used, tried, refused. */
void native_store_describe(struct native_store *store, const struct spulse_native_module *module,
			   struct strbuf *sb);

#endif

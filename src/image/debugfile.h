/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_IMAGE_DEBUGFILE_H
#define SPULSE_IMAGE_DEBUGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

struct image;

/* Folders that hold debug files, most wanted first. */
struct image_roots {
	VEC(char *) paths;
};

/* STACKPULSE_DEBUG_DIRS, else what the build says, else /usr/lib/debug; colon-separated. */
int image_roots_default(struct image_roots *roots, struct spulse_error **err);
/* Appends the parts of a colon-separated list; empty ones are dropped. */
int image_roots_add(struct image_roots *roots, const char *list, struct spulse_error **err);
void image_roots_release(struct image_roots *roots);

enum image_debug_kind {
	IMAGE_DEBUG_FILE,	/* symbols and DWARF of the image */
	IMAGE_DEBUG_MINI,	/* .gnu_debugdata: more symbols, inside the image */
	IMAGE_DEBUG_ALT,	/* what several debug files share (dwz) */
	IMAGE_DEBUG_PACKAGE,	/* split DWARF (.dwp) */
};
const char *image_debug_kind_name(enum image_debug_kind kind);

/* One place that was looked at. */
struct image_debug_try {
	enum image_debug_kind kind;
	char *path;
	char *reason; /* why it was refused; NULL: it is used */
};

/* Asked for while something is fetched; false stops. */
typedef bool (*image_debug_progress)(void *data, const char *what, long done, long total);

struct image_debug_options {
	const struct image_roots *roots; /* NULL: none */
	const char *path;    /* where the image was recorded: neighbours are there; NULL: its own */
	const char *sysroot; /* before `path` and its neighbours; NULL: none */
	bool file_only;	     /* what goes with the debug file is not wanted */
	bool debuginfod;     /* ask servers too: DEBUGINFOD_URLS must name some */
	unsigned int timeout_s; /* for one file of a server; 0: 90 */
	bool *servers_silent;	/* set when an answer is late, and then none is asked; or NULL */
	image_debug_progress progress;
	void *progress_data;
};

/* Members are owned; NULL where nothing was found. */
struct image_debug {
	struct image *file, *mini, *alt, *package;
	VEC(struct image_debug_try) tries;
};

/*
 * Looks for debug information that is not in the image itself; an image that has DWARF is not
 * looked for elsewhere. A file is used only when it is proved to belong to the image: by equal
 * build IDs, or by the checksum in the image. Finding nothing is no failure: NO_MEMORY is the only
 * one. Everything tried is in *debug.
 */
int image_debug_find(struct image *image, const struct image_debug_options *options,
		     struct image_debug *debug, struct spulse_error **err);
void image_debug_release(struct image_debug *debug);

/*
 * Fetches an executable (or its debug file) by build ID from the servers that DEBUGINFOD_URLS
 * names, through libdebuginfod and its cache when that library is there. 1 found, 0 not, with the
 * reason in `reason`.
 */
int image_debuginfod_fetch(const uint8_t *build_id, size_t len, bool executable,
			   const struct image_debug_options *options, struct image **image_out,
			   struct strbuf *reason);

#endif

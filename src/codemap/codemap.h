/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * codemap: code without an ELF file of its own: perf maps, JIT dumps and registrations, and which
 * processes are Python runtimes that write a perf map.
 * Owns parsed maps. Never names a frame by itself: resolution order is the symbolizer's.
 */
#ifndef SPULSE_CODEMAP_H
#define SPULSE_CODEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/base.h"

/* Bytes inside a perf map, not NUL-terminated; they live until the next refresh. */
struct perfmap_text {
	const char *bytes;
	size_t len;
};

struct perfmap_entry {
	uint64_t start, end;
	struct perfmap_text name; /* raw, never empty */
	bool python;		  /* "py::": function and file are set, neither is empty */
	struct perfmap_text function, file;
};

struct perfmap;

/* Parses text; never fails on bad lines. */
int perfmap_parse(const char *text, size_t len, struct perfmap **map_out,
		  struct spulse_error **err);
/*
 * Reads DIR/perf-PID.map safely; *map_out is NULL (and 0 returned) when there is no usable one:
 * *reason_out (static text, may be NULL) then says why. With the default folder, NULL or "/tmp", a
 * living process in a namespace of its own is looked up there first.
 */
int perfmap_load(const char *dir, pid_t pid, struct perfmap **map_out, const char **reason_out,
		 struct spulse_error **err);
/*
 * Reads again when the file changed; *changed says whether lookups may differ now. A map whose
 * file is no longer usable is emptied and picks up a later one.
 */
int perfmap_refresh(struct perfmap *map, bool *changed, struct spulse_error **err);
/* Whether its file is still there, without reading it. */
bool perfmap_exists(const struct perfmap *map);
const char *perfmap_path(const struct perfmap *map); /* "" for parsed text */
/* The entry that covers an address: greatest start that has not ended, the later of equal ones. */
bool perfmap_find(const struct perfmap *map, uint64_t address, struct perfmap_entry *entry);
size_t perfmap_count(const struct perfmap *map);
void perfmap_free(struct perfmap *map);

/* Whether perf maps may name code in a mapping of this path (anonymous memory). */
bool codemap_is_perfmap_path(const char *path, size_t len);
/* Whether a file name is a Python interpreter or its library. */
bool codemap_is_python_basename(const char *name, size_t len);
/* Whether a process's environment block or command line turns perf maps on. */
bool codemap_python_perf_enabled(const char *environ_bytes, size_t environ_len,
				 const char *cmdline, size_t cmdline_len);

#endif

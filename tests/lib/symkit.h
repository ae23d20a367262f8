/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SYMKIT_H
#define TESTS_LIB_SYMKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stackpulse/stackpulse.h>

/*
 * A folder of its own with a spool that a test writes record by record, perf maps and small ELF
 * files; then a reader and a symbolizer over it. What cannot be made fails the test.
 */
struct kit {
	char dir[64];
	char spool[128];
	struct spulse_spool_writer *writer;
	uint64_t time;
	struct spulse_snapshot *snapshot;
	struct spulse_tail *tail;
	struct spulse_symbolizer *symbolizer;
	const struct spulse_batch *batch;
	struct spulse_stacks *stacks;
};

enum { KIT_PID = 4000000, KIT_OTHER = 4000001 }; /* above pid_max: no process has them */

void kit_open(struct kit *kit);
void kit_close(struct kit *kit);
/* A path in the folder; lives until the fourth call from now. */
const char *kit_path(const struct kit *kit, const char *name);
void kit_file(const struct kit *kit, const char *name, const void *bytes, size_t len);
void kit_perf_map(const struct kit *kit, pid_t pid, const char *text);

uint32_t kit_module(struct kit *kit, pid_t pid, uint64_t start, uint64_t end, const char *path);
uint32_t kit_kernel_module(struct kit *kit, uint64_t start, uint64_t end, const char *path);
/* With numbers that no file of this host has, as in a recording of another one. */
uint32_t kit_foreign_module(struct kit *kit, uint64_t start, uint64_t end, const char *path);
void kit_annotate(struct kit *kit, pid_t pid, const char *key, const char *value);
struct spulse_frame kit_user(uint64_t ip);
struct spulse_frame kit_kernel(uint64_t ip);
/* In a module whose file offset is 0. */
struct spulse_frame kit_pinned(uint32_t module, uint64_t start, uint64_t ip);
void kit_sample(struct kit *kit, pid_t pid, const struct spulse_frame *frames, size_t count);
#define KIT_SAMPLE(kit, pid, ...) \
	kit_sample(kit, pid, (struct spulse_frame[]){ __VA_ARGS__ }, \
		   sizeof((struct spulse_frame[]){ __VA_ARGS__ }) / sizeof(struct spulse_frame))

/*
 * Small options for tests: perf maps of the folder, no kernel symbols, `backend` (NULL: the
 * built-in one).
 */
struct spulse_symbolizer_options kit_options(const struct kit *kit,
					     const struct spulse_native_backend *backend, void *data);
/* The same with kernel symbols from a file of that text. */
struct spulse_symbolizer_options kit_kallsyms(const struct kit *kit, const char *text);
/* Finishes the spool and makes snapshot and symbolizer. */
void kit_read(struct kit *kit, const struct spulse_symbolizer_options *options);
/* Resolves sample `index`. */
const struct spulse_resolved *kit_resolve(struct kit *kit, size_t index);
/* The only frame of sample `index`. */
const struct spulse_resolved_frame *kit_frame(struct kit *kit, size_t index);

/* What is shown of a frame; lives until the next call. */
const char *kit_name(const struct spulse_resolved_frame *frame);
/* The same of frame `at` of a list. */
const char *kit_name_at(const struct spulse_resolved *resolved, size_t at);
/* How names of the module `index` of the source are found. */
const char *kit_report(struct kit *kit, size_t index);

/* Flushes and opens a tail with a symbolizer. */
void kit_follow(struct kit *kit, const struct spulse_symbolizer_options *options);
/* Flushes, polls and updates. */
const struct spulse_invalidation *kit_update(struct kit *kit);
/* Resolves the next stack of the batch; NULL at its end. */
const struct spulse_resolved *kit_next(struct kit *kit);
const struct spulse_resolved_frame *kit_next_frame(struct kit *kit);

/*
 * A shared object with text at 0x1000 (file offset 0x1000) and the functions alpha 0x1000-0x1100
 * and beta 0x1100-0x1200. A mapping of it from offset 0 has bias = start. `id` may be NULL.
 */
const char *kit_elf(const struct kit *kit, const char *name, const char *id);

/* A backend that names every address "SYMBOL" and keeps count. */
struct fake_backend {
	int opens, calls, closes, retires, releases, refreshes;
	size_t lookups, last_count;
	uint64_t addresses[64], image_addresses[64]; /* of the last call */
	uint64_t generation;
	int fail_open, fail_calls; /* so many times */
	int fail_refresh; /* which one of the next ones; 0 = none */
	bool silent; /* finds nothing */
	unsigned int levels; /* for each address; 0 = 1 */
	uint64_t flags;
	const char *module;
};
extern const struct spulse_native_backend fake_backend_vtable;
/* kit_read() and kit_follow() with it. */
void kit_read_fake(struct kit *kit, struct fake_backend *fake);
void kit_follow_fake(struct kit *kit, struct fake_backend *fake);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_MAX = 256, READERS_MAX = 4 };
static const size_t bytes_max = 256 << 20;

struct native_store {
	struct native_options options;
	char *debug_dirs, *sysroot;
	VEC(struct program *) programs;
	struct u64map by_token;
	uint64_t tick;
};

struct native_store *native_store_new(const struct native_options *options)
{
	struct native_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	if (options->debug_dirs)
		store->debug_dirs = strdup(options->debug_dirs);
	if (options->sysroot)
		store->sysroot = strdup(options->sysroot);
	if ((options->debug_dirs && !store->debug_dirs) || (options->sysroot && !store->sysroot)) {
		native_store_free(store);
		return NULL;
	}
	store->options.debug_dirs = store->debug_dirs;
	store->options.sysroot = store->sysroot;
	return store;
}

void native_store_free(struct native_store *store)
{
	if (!store)
		return;
	for (size_t i = 0; i < store->programs.len; i++)
		program_free(store->programs.data[i]);
	vec_free(&store->programs);
	u64map_release(&store->by_token);
	free(store->debug_dirs);
	free(store->sysroot);
	free(store);
}

const struct native_options *store_options(const struct native_store *store)
{
	return &store->options;
}

struct program *store_next(struct native_store *store, size_t *position)
{
	return *position < store->programs.len ? store->programs.data[(*position)++] : NULL;
}

struct program *store_program(struct native_store *store, struct image *image)
{
	uint64_t *known = u64map_get(&store->by_token, image_token(image));
	struct program *program;

	if (known) {
		program = (struct program *)(uintptr_t)*known;
		program->used = ++store->tick;
		return program;
	}
	program = program_new(image);
	if (!program)
		return NULL;
	if (!vec_reserve(&store->programs, 1) ||
	    !u64map_set(&store->by_token, image_token(image), (uintptr_t)program)) {
		program_free(program);
		return NULL;
	}
	store->programs.data[store->programs.len++] = program;
	program->used = ++store->tick;
	return program;
}

static int compare_use(const void *a, const void *b)
{
	const struct program *x = *(struct program *const *)a, *y = *(struct program *const *)b;

	return x->used > y->used ? -1 : x->used < y->used;
}

/* Newest first; what is over a limit goes. An open reader costs more than the tables it makes. */
void native_store_trim(struct native_store *store)
{
	size_t bytes = 0, readers = 0, kept = 0, total = 0;

	if (!store)
		return;
	for (size_t i = 0; i < store->programs.len; i++) {
		total += program_bytes(store->programs.data[i]);
		readers += store->programs.data[i]->reader.dwarf != NULL;
	}
	if (store->programs.len <= PROGRAMS_MAX && readers <= READERS_MAX && total <= bytes_max)
		return;
	readers = 0;
	qsort(store->programs.data, store->programs.len, sizeof(*store->programs.data),
	      compare_use);
	for (size_t i = 0; i < store->programs.len; i++) {
		struct program *program = store->programs.data[i];

		if (program->reader.dwarf && ++readers > READERS_MAX)
			dwarf_reader_close(&program->reader);
		bytes += program_bytes(program);
		if (i && (bytes > bytes_max || kept >= PROGRAMS_MAX)) {
			u64map_remove(&store->by_token, image_token(program->image));
			program_free(program);
			continue;
		}
		store->programs.data[kept++] = program;
	}
	store->programs.len = kept;
}

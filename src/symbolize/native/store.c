/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_MAX = 256, READERS_MAX = 4 };
static const size_t bytes_max = 256 << 20;

struct native_store {
	struct image_debug_options debug;
	struct image_roots roots;
	char *sysroot;
	bool servers_silent;
	VEC(struct program *) programs;
	struct u64map by_token;
	uint64_t tick;
};

static bool find_roots(struct native_store *store, const char *list)
{
	struct spulse_error *error = NULL;
	int r = list ? image_roots_add(&store->roots, list, &error) :
		       image_roots_default(&store->roots, &error);

	spulse_error_free(error);
	return r >= 0;
}

struct native_store *native_store_new(const struct native_options *options)
{
	struct native_store *store = calloc(1, sizeof(*store));
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (!store)
		return NULL;
	if (options->sysroot)
		store->sysroot = strdup(options->sysroot);
	if ((options->sysroot && !store->sysroot) || !find_roots(store, options->debug_dirs)) {
		native_store_free(store);
		return NULL;
	}
	store->debug.roots = &store->roots;
	store->debug.sysroot = store->sysroot;
	store->debug.debuginfod = options->servers && servers && *servers;
	store->debug.timeout_s = options->server_timeout_s;
	store->debug.servers_silent = &store->servers_silent;
	store->debug.progress = options->progress;
	store->debug.progress_data = options->progress_data;
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
	image_roots_release(&store->roots);
	free(store->sysroot);
	free(store);
}

const struct image_roots *native_store_roots(const struct native_store *store)
{
	return store ? &store->roots : NULL;
}

const struct image_debug_options *store_options(const struct native_store *store)
{
	return &store->debug;
}

struct program *store_next(struct native_store *store, size_t *position)
{
	return *position < store->programs.len ? store->programs.data[(*position)++] : NULL;
}

struct program *store_program(struct native_store *store,
			      const struct spulse_native_module *module)
{
	struct image *image = module->image;
	uint64_t *known = u64map_get(&store->by_token, image_token(image));
	struct program *program;

	if (known) {
		program = (struct program *)(uintptr_t)*known;
		program->used = ++store->tick;
		return program;
	}
	program = program_new(image, module->normalized);
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

bool native_store_function_start(struct native_store *store, const struct native_place *place,
				 uint64_t *start)
{
	struct program *program = store_program(store, place->module);

	return program && program_function_start(program, place->image_address, start);
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
		readers += store->programs.data[i]->reader.info != NULL;
	}
	if (store->programs.len <= PROGRAMS_MAX && readers <= READERS_MAX && total <= bytes_max)
		return;
	readers = 0;
	qsort(store->programs.data, store->programs.len, sizeof(*store->programs.data),
	      compare_use);
	for (size_t i = 0; i < store->programs.len; i++) {
		struct program *program = store->programs.data[i];

		if (program->reader.info && ++readers > READERS_MAX)
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

void native_store_describe(struct native_store *store, const struct spulse_native_module *module,
			   struct strbuf *sb)
{
	struct program *program = store_program(store, module);

	if (!program)
		return;
	program_load(program, store_options(store));
	program_describe(program, sb);
}

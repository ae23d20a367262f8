/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The built-in backend: the public functions over a symbolizer's store of programs. */
#include <stdlib.h>

#include "../keysort.h"
#include "program.h"

enum { WORTH_SORTING = 64 };

static int builtin_open(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	(void)data;
	(void)pid;
	(void)err;
	*state_out = NULL;
	return 0;
}

static bool is_ascending(const struct spulse_native_lookup *const *lookups, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (lookups[i]->image_address < lookups[i - 1]->image_address)
			return false;
	return true;
}

/*
 * Neighbours share what is in the cache: many lookups are made in the order of addresses. NULL:
 * they are so already, or too few, or memory ran out; the memory is to be freed at *keys_out.
 */
static const struct sort_key *choose_order(const struct spulse_native_lookup *const *lookups,
					   size_t count, struct sort_key **keys_out)
{
	struct sort_key *keys = NULL;

	*keys_out = NULL;
	if (count < WORTH_SORTING || is_ascending(lookups, count))
		return NULL;
	keys = malloc(2 * count * sizeof(*keys));
	*keys_out = keys;
	if (!keys)
		return NULL;
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct sort_key){ lookups[i]->image_address, i };
	return sort_keys(keys, keys + count, count);
}

static int resolve_one(const struct spulse_native_lookup *lookup, size_t index,
		       struct spulse_native_results *results, struct spulse_error **err)
{
	const struct spulse_native_module *module = lookup->module;
	struct program *program;

	if (!module->store || !module->image)
		return 0;
	program = store_program(module->store, module);
	if (!program)
		return err_no_memory(err);
	program_load(program, store_options(module->store));
	return program_resolve(program, lookup->image_address, module->python, index, results, err);
}

/* Images are shared by processes through the modules' store: there is nothing per process. */
static int builtin_symbolize(void *state, const struct spulse_native_lookup *const *lookups,
			     size_t count, struct spulse_native_results *results,
			     struct spulse_error **err)
{
	struct sort_key *keys;
	const struct sort_key *order = choose_order(lookups, count, &keys);
	int r = 0;

	(void)state;
	for (size_t i = 0; i < count && r >= 0; i++) {
		size_t index = order ? order[i].index : i;

		r = resolve_one(lookups[index], index, results, err);
	}
	free(keys);
	return MIN(r, 0);
}

/* There for those who wrap the backend and pass every call on. */
static void builtin_retire(void *state, const struct spulse_native_module *module)
{
	(void)state;
	(void)module;
}

static void builtin_close(void *state)
{
	(void)state;
}

static const struct spulse_native_backend builtin_backend = {
	.size = sizeof(builtin_backend),
	.name = "elfutils",
	.open = builtin_open,
	.symbolize = builtin_symbolize,
	.retire_module = builtin_retire,
	.close = builtin_close,
};

const struct spulse_native_backend *spulse_native_default(void)
{
	return &builtin_backend;
}

bool native_is_builtin(const struct spulse_native_backend *backend)
{
	return backend == &builtin_backend;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The built-in backend: the public functions over a symbolizer's store of programs. */
#include "program.h"

static int builtin_open(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	(void)data;
	(void)pid;
	(void)err;
	*state_out = NULL;
	return 0;
}

/* Images are shared by processes through the modules' store: there is nothing per process. */
static int builtin_symbolize(void *state, const struct spulse_native_lookup *const *lookups,
			     size_t count, struct spulse_native_results *results,
			     struct spulse_error **err)
{
	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct spulse_native_module *module = lookups[i]->module;
		struct program *program;
		int r;

		if (!module->store || !module->image)
			continue;
		program = store_program(module->store, module);
		if (!program)
			return err_no_memory(err);
		program_load(program, store_options(module->store));
		r = program_resolve(program, lookups[i]->image_address, module->python, i, results,
				    err);
		if (r < 0)
			return r;
	}
	return 0;
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

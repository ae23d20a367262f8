/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One ELF file without a process: a module that spans all addresses and lies where the file says,
 * so that an address of the file is its own address in the process.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolizer.h"

/* Debug files may be neighbours of where the file really is. */
static int make_module(struct spulse_symbolizer *sym, const char *path, struct spulse_error **err)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = 1,
		.end = UINT64_MAX,
		.path = real ? real : path,
	};

	fields.path_len = strlen(fields.path);
	return spulse_module_new(&fields, &sym->file_module, err);
}

int spulse_symbolizer_new_for_file(const char *path, const struct spulse_symbolizer_options *opts,
				   struct spulse_symbolizer **symbolizer_out,
				   struct spulse_error **err)
{
	struct spulse_symbolizer *sym = NULL;
	struct image *image = NULL;
	int r;

	if (!path)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no path");
	r = symbolizer_make(opts, &sym, err);
	if (r < 0)
		return r;
	r = image_open_path(path, &image, err);
	if (!r)
		r = make_module(sym, path, err);
	if (!r) {
		sym->modules = malloc(sizeof(struct spulse_module *));
		if (!sym->modules)
			r = err_no_memory(err);
	}
	if (r < 0) {
		image_unref(image);
		sym->backend = NULL;
		spulse_symbolizer_free(sym);
		return r;
	}
	sym->modules[sym->module_count++] = sym->file_module;
	if (!module_adopt(sym, sym->file_module, image)) {
		sym->backend = NULL;
		spulse_symbolizer_free(sym);
		return err_no_memory(err);
	}
	*symbolizer_out = sym;
	return 0;
}

int spulse_symbolizer_resolve_addresses(struct spulse_symbolizer *sym, const uint64_t *addresses,
					size_t count, const struct spulse_resolved **resolved_out,
					struct spulse_error **err)
{
	if (!sym->file_module)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "this symbolizer was not made for a file");
	sym->foreign.len = 0;
	for (size_t i = 0; i < count; i++)
		if (!vec_push(&sym->foreign, (struct spulse_frame){
				.file_relative_ip = addresses[i],
				.abs_ip = addresses[i],
				.module_id = SPULSE_NO_MODULE,
				.mode = SPULSE_FRAME_USER,
			}))
			return err_no_memory(err);
	return spulse_symbolizer_resolve_raw(sym, spulse_module_pid(sym->file_module),
					     sym->foreign.data, count, resolved_out, err);
}

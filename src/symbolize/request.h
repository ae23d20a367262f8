/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_REQUEST_H
#define SPULSE_SYMBOLIZE_REQUEST_H

#include "../base/base.h"
#include "../image/image.h"
#include "symbolize.h"

/* What a backend is asked and answers. */

struct native_store;

struct spulse_native_module {
	unsigned int refs; /* atomic: a backend may keep it for its own threads */
	char *path, *normalized;
	size_t path_len;
	const char *name; /* in normalized */
	uint64_t start, end, bias;
	struct spulse_image_base base;
	struct spulse_file_identity identity;
	uint64_t mapping_id, image_id;
	bool python;
	struct image *image; /* NULL for synthetic ones */
	char *image_path;    /* NULL without a descriptor */
	struct native_store *store; /* the built-in backend's memory; NULL for synthetic ones */
};

struct spulse_native_lookup {
	pid_t pid;
	const struct spulse_native_module *module;
	uint64_t address, relative, image_address;
};

struct module_facts {
	const char *path;
	size_t path_len;
	uint64_t start, end;
	struct spulse_file_identity identity;
	uint64_t mapping_id;
};

/* A module with an open image, whose reference is taken over; NULL when memory ran out. */
struct spulse_native_module *native_module_make(const struct module_facts *facts,
						struct image *image, uint64_t bias,
						struct native_store *store);

struct result_entry {
	struct spulse_native_symbol symbol;
	uint32_t next; /* entry of the next outer level, or UINT32_MAX */
};

struct result_chain {
	uint32_t first, last;
};

struct spulse_native_results {
	size_t count;
	struct result_chain *chains;
	VEC(struct result_entry) entries;
	struct arena strings;
	bool borrows; /* strings stay where they are until the results were read */
};

/* Empties and sizes results for reuse; false when memory ran out. */
bool results_reset(struct spulse_native_results *results, size_t count);
void results_release(struct spulse_native_results *results);

#endif

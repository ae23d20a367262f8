/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../codemap/codemap.h"

static const char deleted_suffix[] = " (deleted)";

/* ---- modules ---- */

static char *copy_bytes(const char *bytes, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, bytes, len);
	copy[len] = 0;
	return copy;
}

/* Names are for people: one that is not text is not shown. */
static bool is_utf8(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		size_t more = *p < 0x80 ? 0 : (*p & 0xe0) == 0xc0 && *p >= 0xc2 ? 1 :
			      (*p & 0xf0) == 0xe0 ? 2 : (*p & 0xf8) == 0xf0 && *p < 0xf5 ? 3 : 4;

		if (more == 4)
			return false;
		for (p++; more; more--)
			if ((*p++ & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static bool set_paths(struct spulse_native_module *module, const char *path, size_t len)
{
	size_t cut = sizeof(deleted_suffix) - 1;
	const char *slash;

	module->path = copy_bytes(path, len);
	module->path_len = len;
	if (len >= cut && !memcmp(path + len - cut, deleted_suffix, cut))
		len -= cut;
	module->normalized = copy_bytes(path, len);
	if (!module->path || !module->normalized)
		return false;
	slash = strrchr(module->normalized, '/');
	module->name = slash ? slash + 1 : module->normalized;
	if (!is_utf8(module->name))
		module->name = "<unknown>";
	module->python = codemap_is_python_basename(module->name, strlen(module->name));
	return true;
}

static void module_destroy(struct spulse_native_module *module)
{
	image_unref(module->image);
	free(module->path);
	free(module->normalized);
	free(module->image_path);
	free(module);
}

struct spulse_native_module *native_module_make(const struct module_facts *facts,
						struct image *image, uint64_t bias,
						struct native_store *store)
{
	struct spulse_native_module *module = calloc(1, sizeof(*module));
	struct strbuf path = { 0 };

	if (!module) {
		image_unref(image);
		return NULL;
	}
	module->refs = 1;
	module->image = image;
	module->store = store;
	module->start = facts->start;
	module->end = facts->end;
	module->bias = bias;
	module->base.file = image_first_vaddr(image);
	module->base.runtime = module->base.file + bias;
	module->identity = facts->identity;
	module->mapping_id = facts->mapping_id;
	module->image_id = image_token(image);
	if (image_fd(image) >= 0) {
		strbuf_printf(&path, "/proc/self/fd/%d", image_fd(image));
		module->image_path = strbuf_take(&path);
	}
	if (!set_paths(module, facts->path, facts->path_len)) {
		module_destroy(module);
		return NULL;
	}
	return module;
}

int spulse_native_module_new(const char *path, struct spulse_native_module **module_out,
			     struct spulse_error **err)
{
	static uint64_t next_id = 1ull << 63;
	struct spulse_native_module *module;

	if (!path)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "a module needs a path");
	module = calloc(1, sizeof(*module));
	if (!module)
		return err_no_memory(err);
	module->refs = 1;
	module->end = UINT64_MAX;
	module->image_id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	module->mapping_id = module->image_id;
	if (!set_paths(module, path, strlen(path))) {
		module_destroy(module);
		return err_no_memory(err);
	}
	*module_out = module;
	return 0;
}

const struct spulse_native_module *
spulse_native_module_ref(const struct spulse_native_module *module)
{
	__atomic_add_fetch(&((struct spulse_native_module *)module)->refs, 1, __ATOMIC_RELAXED);
	return module;
}

void spulse_native_module_unref(const struct spulse_native_module *module)
{
	struct spulse_native_module *m = (struct spulse_native_module *)module;

	if (m && !__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
		module_destroy(m);
}

void spulse_native_module_free(struct spulse_native_module *module)
{
	spulse_native_module_unref(module);
}

const char *spulse_native_module_path(const struct spulse_native_module *module)
{
	return module->path;
}

size_t spulse_native_module_path_len(const struct spulse_native_module *module)
{
	return module->path_len;
}

const char *spulse_native_module_normalized_path(const struct spulse_native_module *module)
{
	return module->normalized;
}

const char *spulse_native_module_name(const struct spulse_native_module *module)
{
	return module->name;
}

const char *spulse_native_module_image_path(const struct spulse_native_module *module)
{
	return module->image_path;
}

int spulse_native_module_image_fd(const struct spulse_native_module *module)
{
	return module->image ? image_fd(module->image) : -1;
}

enum spulse_image_source
spulse_native_module_image_source(const struct spulse_native_module *module)
{
	if (!module->image)
		return SPULSE_IMAGE_NONE;
	return image_is_vdso(module->image) ? SPULSE_IMAGE_VDSO : SPULSE_IMAGE_FILE;
}

uint64_t spulse_native_module_start(const struct spulse_native_module *module)
{
	return module->start;
}

uint64_t spulse_native_module_end(const struct spulse_native_module *module)
{
	return module->end;
}

struct spulse_image_base
spulse_native_module_image_base(const struct spulse_native_module *module)
{
	return module->base;
}

bool spulse_native_module_is_python_runtime(const struct spulse_native_module *module)
{
	return module->python;
}

uint64_t spulse_native_module_mapping_id(const struct spulse_native_module *module)
{
	return module->mapping_id;
}

uint64_t spulse_native_module_image_id(const struct spulse_native_module *module)
{
	return module->image_id;
}

struct spulse_file_identity
spulse_native_module_file_identity(const struct spulse_native_module *module)
{
	return module->identity;
}

/* ---- lookups ---- */

int spulse_native_lookup_new(pid_t pid, const struct spulse_native_module *module,
			     uint64_t address, uint64_t relative_address, uint64_t image_address,
			     struct spulse_native_lookup **lookup_out, struct spulse_error **err)
{
	struct spulse_native_lookup *lookup;

	if (pid <= 0 || !module)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a lookup needs a process id above 0 and a module");
	lookup = malloc(sizeof(*lookup));
	if (!lookup)
		return err_no_memory(err);
	*lookup = (struct spulse_native_lookup){ pid, spulse_native_module_ref(module), address,
						 relative_address, image_address };
	*lookup_out = lookup;
	return 0;
}

void spulse_native_lookup_free(struct spulse_native_lookup *lookup)
{
	if (!lookup)
		return;
	spulse_native_module_unref(lookup->module);
	free(lookup);
}

pid_t spulse_native_lookup_pid(const struct spulse_native_lookup *lookup)
{
	return lookup->pid;
}

const struct spulse_native_module *
spulse_native_lookup_module(const struct spulse_native_lookup *lookup)
{
	return lookup->module;
}

uint64_t spulse_native_lookup_address(const struct spulse_native_lookup *lookup)
{
	return lookup->address;
}

uint64_t spulse_native_lookup_relative_address(const struct spulse_native_lookup *lookup)
{
	return lookup->relative;
}

uint64_t spulse_native_lookup_image_address(const struct spulse_native_lookup *lookup)
{
	return lookup->image_address;
}

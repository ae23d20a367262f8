/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Whether a file is the one that was recorded. The recorder's own open image is, whatever became
 * of the file since. Else the build ID decides where the recording holds one; only without it
 * must device and inode do, which say nothing on another host.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolizer.h"

static const char build_id_key[] = "build-id/";

/* What is equal for mappings of one file: a fork's copies have no annotation of their own. */
static uint64_t file_hash(const struct spulse_module *module)
{
	uint64_t device = (uint64_t)spulse_module_device_major(module) << 32 |
			  spulse_module_device_minor(module);
	uint64_t salt = hash_salt();
	uint64_t hash = hash_bytes(spulse_module_path(module), spulse_module_path_len(module),
				   salt);

	hash = hash_salted(hash ^ spulse_module_inode(module), salt);
	hash = hash_salted(hash ^ device, salt);
	return hash_salted(hash ^ spulse_module_inode_generation(module), salt) | 1ull << 63;
}

/* Annotations only ever grow in number: new ones are read, in a tail too. */
static void read_build_ids(struct spulse_symbolizer *sym)
{
	size_t count, prefix = sizeof(build_id_key) - 1;
	const struct spulse_annotation *list = spulse_source_annotations(sym->source, &count);

	for (; sym->annotations_seen < count; sym->annotations_seen++) {
		const struct spulse_annotation *a = &list[sym->annotations_seen];
		const struct spulse_module *module;
		unsigned long id;
		char *end;

		if (a->pid != -1 || strncmp(a->key, build_id_key, prefix))
			continue;
		id = strtoul(a->key + prefix, &end, 10);
		if (end == a->key + prefix || *end || id >= SPULSE_NO_MODULE)
			continue;
		module = spulse_source_module_by_id(sym->source, id);
		if (!module)
			continue;
		u64map_set(&sym->build_ids, id, sym->annotations_seen);
		u64map_set(&sym->build_ids, file_hash(module), sym->annotations_seen);
	}
}

/* In lower-case hexadecimal digits; NULL when the recording does not say. */
static const char *recorded_build_id(struct spulse_symbolizer *sym,
				     const struct spulse_module *module)
{
	const uint64_t *index;
	size_t count;

	if (!sym->source)
		return NULL;
	read_build_ids(sym);
	index = u64map_get(&sym->build_ids, spulse_module_id(module));
	if (!index)
		index = u64map_get(&sym->build_ids, file_hash(module));
	return index ? spulse_source_annotations(sym->source, &count)[*index].value : NULL;
}

static void format_build_id(const struct image *image, struct strbuf *sb)
{
	size_t len;
	const uint8_t *id = image_build_id(image, &len);

	for (size_t i = 0; id && i < len; i++)
		strbuf_printf(sb, "%02x", id[i]);
}

/* Compares; the refusal names both. */
static bool is_recorded(struct module_state *state, const struct image *image, const char *want)
{
	struct strbuf have = { 0 };
	bool same;

	format_build_id(image, &have);
	same = !have.failed && have.len && !strcasecmp(have.data, want);
	if (!same) {
		spulse_error_free(state->refusal);
		state->refusal = NULL;
		err_set(&state->refusal, SPULSE_ERROR_UNSUPPORTED,
			"%s is another file: its build ID is %s, recorded was %s",
			image_path(image), have.len ? have.data : "absent", want);
	}
	strbuf_release(&have);
	return same;
}

static enum image_failure refuse_image(struct image **image)
{
	image_unref(*image);
	*image = NULL;
	return IMAGE_UNSUPPORTED;
}

static enum image_failure try_open(struct spulse_symbolizer *sym, struct module_state *state,
				   bool by_path, struct image **image_out)
{
	const struct spulse_module *module = state->module;
	struct image_request request = {
		.start = spulse_module_start(module),
		.end = spulse_module_end(module),
		.file_offset = spulse_module_file_offset(module),
		.path = spulse_module_path(module),
		.sysroot = sym->sysroot,
	};

	if (!by_path) {
		request.pid = spulse_module_pid(module);
		request.inode = spulse_module_inode(module);
		request.generation = spulse_module_inode_generation(module);
		request.dev_major = spulse_module_device_major(module);
		request.dev_minor = spulse_module_device_minor(module);
	}
	spulse_error_free(state->refusal);
	state->refusal = NULL;
	return image_open(sym->images, &request, image_out, &state->refusal);
}

/* Every kernel has its own: this process's copy serves only where it is known to be the same. */
static enum image_failure check_vdso(struct module_state *state, const char *recorded,
				     struct image **image)
{
	const struct spulse_module *module = state->module;

	if (recorded ? is_recorded(state, *image, recorded) :
		       image_equals_memory(*image, spulse_module_pid(module),
					   spulse_module_start(module),
					   spulse_module_end(module)))
		return IMAGE_OK;
	if (!recorded)
		err_set(&state->refusal, SPULSE_ERROR_UNSUPPORTED,
			"the recording does not say which vDSO it was");
	return refuse_image(image);
}

enum image_failure module_image(struct spulse_symbolizer *sym, struct module_state *state,
				struct image **image_out)
{
	const char *recorded = recorded_build_id(sym, state->module);
	bool sysroot = sym->sysroot && *sym->sysroot;
	enum image_failure failure;
	struct spulse_error *first;

	*image_out = image_handover_get(sym->handover, spulse_module_id(state->module));
	state->trusted = *image_out;
	if (state->trusted)
		return IMAGE_OK;
	failure = try_open(sym, state, false, image_out);
	if (failure == IMAGE_OK && image_is_vdso(*image_out))
		return check_vdso(state, recorded, image_out);
	state->unverified = sysroot && !recorded;
	if (!recorded)
		return failure;
	if (failure == IMAGE_OK)
		return is_recorded(state, *image_out, recorded) ? IMAGE_OK
								: refuse_image(image_out);
	if (failure == IMAGE_RETRY || sysroot)
		return failure;
	/* Another file by its numbers may still have the same content: copied, or reinstalled. */
	first = state->refusal;
	state->refusal = NULL;
	failure = try_open(sym, state, true, image_out);
	if (failure == IMAGE_OK) {
		spulse_error_free(first);
		return is_recorded(state, *image_out, recorded) ? IMAGE_OK
								: refuse_image(image_out);
	}
	spulse_error_free(state->refusal);
	state->refusal = first;
	return failure;
}

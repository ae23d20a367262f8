/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables behind modules. The image cache knows one image for each file; the tables
 * compiled from it are kept here for the processes that map it later.
 */
#include "recorder.h"

#include <string.h>

/* As many as the cache keeps images. */
enum { MAX_RULES = 256 };

/* Mappings that no file stands behind, other than the vDSO. */
static bool has_image(const struct rec_mapping *mapping)
{
	if (mapping->path[0] == '[')
		return mapping->path_len == 6 && !memcmp(mapping->path, "[vdso]", 6);
	return mapping->path[0] == '/' && mapping->path[1] != '/';
}

/* Remembers the tables of an image, in place of the oldest ones. */
static void keep_rules(struct spulse_recorder *rec, uint64_t token, struct unw_image *rules)
{
	if (rec->rules.len < MAX_RULES) {
		if (!u64map_set(&rec->rule_of_image, token, rec->rules.len))
			return;
		if (vec_push(&rec->rules, rules))
			unw_image_ref(rules);
		else
			u64map_remove(&rec->rule_of_image, token);
		return;
	}
	for (size_t i = 0; i < rec->rule_of_image.mask + 1; i++) {
		struct u64map_slot *slot = &rec->rule_of_image.slots[i];

		if (slot->used && slot->value == rec->rules_next) {
			u64map_remove(&rec->rule_of_image, slot->key);
			break;
		}
	}
	unw_image_unref(rec->rules.data[rec->rules_next]);
	rec->rules.data[rec->rules_next] = unw_image_ref(rules);
	u64map_set(&rec->rule_of_image, token, rec->rules_next);
	rec->rules_next = (rec->rules_next + 1) % MAX_RULES;
}

/* The tables of an image, with a reference; NULL when it has none that can be used. */
static struct unw_image *rules_of(struct spulse_recorder *rec, struct image *image)
{
	uint64_t token = image_token(image), *known = u64map_get(&rec->rule_of_image, token);
	struct unw_image *rules = NULL;

	if (known)
		return unw_image_ref(rec->rules.data[*known]);
	if (unw_image_new(image, &rules, NULL) < 0)
		return NULL;
	keep_rules(rec, token, rules);
	return rules;
}

/* The vDSO is our own one: that of the process may be another, with other names. */
static bool is_exact(const struct rec_process *process, const struct rec_mapping *map,
		     const struct image *image)
{
	return !image_is_vdso(image) ||
	       image_equals_memory(image, process->pid, map->start, map->end);
}

/* A file that may have been replaced since: its build ID decides, where it was recorded. */
static bool is_recorded(const struct rec_mapping *map, const struct image *image)
{
	size_t len = 0;
	const uint8_t *id = image_build_id(image, &len);

	return !map->build_id_len ||
	       (id && len == map->build_id_len && !memcmp(id, map->build_id, len));
}

void images_attach(struct spulse_recorder *rec, struct rec_process *process,
		   struct rec_module *module)
{
	const struct rec_mapping *map = &module->map;
	struct spulse_error *why = NULL;
	const struct image_request request = {
		.pid = rec->offline ? 0 : process->pid,
		.start = map->start,
		.end = map->end,
		.file_offset = map->offset,
		.inode = map->inode,
		.generation = map->generation,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.path = map->path,
	};
	struct image *image = NULL;
	enum image_failure failure;

	if (!has_image(map)) {
		module->opens_left = 0;
		return;
	}
	failure = image_open(rec->images, &request, &image, &why);
	if (failure != IMAGE_OK) {
		log_debug("no unwind tables for %s in process %d: %s", map->path, process->pid,
			  spulse_error_message(why));
		module->opens_left = failure == IMAGE_RETRY ? module->opens_left - 1 : 0;
		spulse_error_free(why);
		return;
	}
	module->opens_left = 0;
	if (rec->offline && !is_recorded(map, image)) {
		image_unref(image);
		return;
	}
	if (image_bias(image, map->start, map->end, map->offset, &module->bias))
		module->image = rules_of(rec, image);
	image_unref(module->file);
	module->file = is_exact(process, map, image) ? image_ref(image) : NULL;
	image_unref(image);
}

void images_release(struct spulse_recorder *rec)
{
	for (size_t i = 0; i < rec->rules.len; i++)
		unw_image_unref(rec->rules.data[i]);
	vec_free(&rec->rules);
	u64map_release(&rec->rule_of_image);
	image_cache_unref(rec->images);
	image_handover_unref(rec->handover);
}

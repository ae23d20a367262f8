/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which modules' frames had to be found by the frame pointer, and why. Counted by path, which is
 * interned: a library's count is that of all processes.
 */
#include "recorder.h"

#include <stdlib.h>

void fallbacks_count(void *data, const struct unw_map *map, uint64_t address,
		     enum spulse_unwind_fallback cause)
{
	struct spulse_recorder *rec = data;
	const struct rec_module *module =
		map ? modules_find(&rec->walking->modules, address) : NULL;
	struct spulse_module_fallbacks *found;
	const char *path = module ? module->map.path : NULL;
	bool added;
	uint64_t *index;

	/* Only the breakdown is incomplete without memory; the summary has the sum. */
	if (!vec_reserve(&rec->fallbacks, 1))
		return;
	index = u64map_add(&rec->fallback_of, (uint64_t)(uintptr_t)path << 5 | cause, &added);
	if (!index)
		return;
	if (added) {
		*index = rec->fallbacks.len;
		vec_push(&rec->fallbacks,
			 (struct spulse_module_fallbacks){.module = path, .cause = cause});
	}
	found = &rec->fallbacks.data[*index];
	found->frames++;
}

static int compare(const void *a, const void *b)
{
	const struct spulse_module_fallbacks *x = a, *y = b;

	if (x->frames != y->frames)
		return x->frames < y->frames ? 1 : -1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return strcmp(x->module ? x->module : "", y->module ? y->module : "");
}

const struct spulse_module_fallbacks *
spulse_recorder_unwind_fallbacks(struct spulse_recorder *rec, size_t *count_out)
{
	size_t count = rec->fallbacks.len;

	*count_out = rec->fallback_list.len = 0;
	if (!count || !vec_reserve(&rec->fallback_list, count))
		return NULL;
	memcpy(rec->fallback_list.data, rec->fallbacks.data,
	       count * sizeof(struct spulse_module_fallbacks));
	qsort(rec->fallback_list.data, count, sizeof(struct spulse_module_fallbacks), compare);
	*count_out = rec->fallback_list.len = count;
	return rec->fallback_list.data;
}

void fallbacks_free(struct spulse_recorder *rec)
{
	vec_free(&rec->fallbacks);
	vec_free(&rec->fallback_list);
	u64map_release(&rec->fallback_of);
}

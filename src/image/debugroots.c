/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "debugfile.h"

#include <stdlib.h>

#include "config.h"

static const char usual_root[] = "/usr/lib/debug";

int image_roots_add(struct image_roots *roots, const char *list, struct spulse_error **err)
{
	while (*list) {
		size_t len = strcspn(list, ":");
		char *path;

		if (len > 0) {
			path = strndup(list, len);
			if (!path || !vec_push(&roots->paths, path)) {
				free(path);
				return err_no_memory(err);
			}
		}
		list += len + (list[len] == ':');
	}
	return 0;
}

int image_roots_default(struct image_roots *roots, struct spulse_error **err)
{
	const char *wanted = getenv("STACKPULSE_DEBUG_DIRS");
	size_t before = roots->paths.len;
	int r = wanted ? image_roots_add(roots, wanted, err) : 0;

	if (r == 0 && roots->paths.len == before)
		r = image_roots_add(roots, SPULSE_DEFAULT_DEBUG_DIRS, err);
	if (r == 0 && roots->paths.len == before && access(usual_root, X_OK) == 0)
		r = image_roots_add(roots, usual_root, err);
	return r;
}

void image_roots_release(struct image_roots *roots)
{
	for (size_t i = 0; i < roots->paths.len; i++)
		free(roots->paths.data[i]);
	vec_free(&roots->paths);
}

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

/* A list without any folder in it (":") means none; an empty one, what everybody has. */
int image_roots_default(struct image_roots *roots, struct spulse_error **err)
{
	const char *wanted = getenv("STACKPULSE_DEBUG_DIRS");
	const char *list = wanted ? wanted : SPULSE_DEFAULT_DEBUG_DIRS;

	if (!*list)
		list = access(usual_root, X_OK) == 0 ? usual_root : ":";
	return image_roots_add(roots, list, err);
}

void image_roots_release(struct image_roots *roots)
{
	for (size_t i = 0; i < roots->paths.len; i++)
		free(roots->paths.data[i]);
	vec_free(&roots->paths);
}

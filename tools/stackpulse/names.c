/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "names.h"

static const char thread_key[] = "thread-name/";

static void remember(struct names *names, struct idmap *map, uint64_t key, const char *text)
{
	int is_new;
	uint32_t at = idmap_intern(map, key, (uint32_t)names->count, &is_new);

	if (is_new)
		MEM_PUSH(names->texts, names->count, names->cap) = text;
	else
		names->texts[at] = text;
}

void names_load(struct names *names, const struct spulse_source *source)
{
	size_t count;
	const struct spulse_annotation *annotations = spulse_source_annotations(source, &count);

	for (size_t i = 0; i < count; i++) {
		const struct spulse_annotation *annotation = &annotations[i];
		uint64_t tid;

		if (annotation->pid < 0 || !annotation->value_len)
			continue;
		if (!strcmp(annotation->key, "comm"))
			remember(names, &names->processes, (uint64_t)annotation->pid,
				 annotation->value);
		else if (!strncmp(annotation->key, thread_key, sizeof(thread_key) - 1) &&
			 cli_parse_number(annotation->key + sizeof(thread_key) - 1, &tid) &&
			 tid <= INT32_MAX)
			remember(names, &names->threads, (uint64_t)annotation->pid << 32 | tid,
				 annotation->value);
	}
}

static const char *find(const struct names *names, const struct idmap *map, uint64_t key)
{
	uint32_t at;

	return idmap_find(map, key, &at) ? names->texts[at] : NULL;
}

const char *names_process(const struct names *names, pid_t pid)
{
	return find(names, &names->processes, (uint64_t)pid);
}

const char *names_thread(const struct names *names, pid_t pid, pid_t tid)
{
	const char *name = find(names, &names->threads, (uint64_t)pid << 32 | (uint32_t)tid);

	return name ? name : names_process(names, pid);
}

void names_release(struct names *names)
{
	free(names->texts);
	idmap_release(&names->processes);
	idmap_release(&names->threads);
	*names = (struct names){0};
}

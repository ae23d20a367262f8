/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "procfs.h"

static int compare_ids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static pid_t id_of_name(const char *name)
{
	long value = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9' || value > INT_MAX / 10)
			return 0;
		value = value * 10 + (*name - '0');
	}
	return value <= INT_MAX ? value : 0;
}

int proc_list_numbers(const char *path, struct proc_tids *numbers)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = dir ? 0 : -errno;

	numbers->tids.len = 0;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		pid_t id = id_of_name(entry->d_name);

		if (id && !vec_push(&numbers->tids, id))
			r = -ENOMEM;
	}
	if (r == 0 && errno)
		r = -errno;
	if (dir)
		closedir(dir);
	if (r == 0 && numbers->tids.len)
		qsort(numbers->tids.data, numbers->tids.len, sizeof(pid_t), compare_ids);
	return r;
}

int proc_threads(pid_t pid, struct proc_tids *tids)
{
	char path[PROC_PATH_MAX];

	proc_path(path, pid, 0, "task");
	return proc_list_numbers(path, tids);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_CODEMAP_PERFOPEN_H
#define SPULSE_CODEMAP_PERFOPEN_H

#include "codemap.h"

enum { PERFMAP_MAX = 64 << 20 };

/* Where a process's map may be: below a root folder when it sees another file tree than we do. */
struct perfmap_place {
	char root[32]; /* "" or /proc/PID/root */
	char *path;	/* below root */
};

/* Places in the order to try; 1 or 2 of them. 0 when memory ran out. */
int perfmap_places(const char *dir, pid_t pid, struct perfmap_place places[2]);
void perfmap_place_release(struct perfmap_place *place);

/* What a file was when it was read. */
struct perfmap_stamp {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

/*
 * Opens a map that may be believed: a regular file, not behind a link, of at most 64 MiB, whose
 * owner could speak for the process. Everybody may create files in /tmp: without a look at the
 * owner any user could give names to the code of any other user's process. Accepted are root,
 * ourselves, the process's own users while it lives, whoever called sudo, and anybody in a folder
 * in which only root and ourselves may create files. -1 with a reason otherwise.
 */
int perfmap_open(const struct perfmap_place *place, pid_t pid, struct perfmap_stamp *stamp,
		 const char **reason);
bool perfmap_place_exists(const struct perfmap_place *place);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_PIDMAP_H
#define SPULSE_SPOOL_PIDMAP_H

#include "../base/base.h"

#include <sys/types.h>

/* Process ids in first-seen order, each with a number. Small: there is one byte of file for few of
 * these. `struct pidmap m = {0};` is empty. */
struct pidmap {
	VEC(pid_t) pids;
	struct pidmap_slot {
		pid_t pid; /* 0 = free */
		uint32_t value;
	} *slots;
	size_t mask;
	uint64_t salt; /* of the hash */
};

/* The number of a process, UINT32_MAX when it is new; NULL when memory ran out. The pointer lives
 * until the next call. */
uint32_t *pidmap_add(struct pidmap *map, pid_t pid);
/* Forgets all, keeping the memory. */
void pidmap_clear(struct pidmap *map);
void pidmap_release(struct pidmap *map);

#endif

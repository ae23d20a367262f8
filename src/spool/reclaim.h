/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_RECLAIM_H
#define SPULSE_SPOOL_RECLAIM_H

#include "spool.h"

/* Gives the space of what a tail consumed back to the file system: whole pages become a hole. */
struct reclaimer {
	enum spulse_reclamation state;
	uint64_t mark; /* everything before it is a hole */
	uint64_t reclaimed;
};

void reclaimer_init(struct reclaimer *reclaimer, bool enabled);
/* Frees everything before `end`, rounded down to a page. */
int reclaimer_punch(struct reclaimer *reclaimer, int fd, const char *path, uint64_t end,
		    struct spulse_error **err);
/* The same, but a file system that cannot switches it off for good instead of failing. */
int reclaimer_advance(struct reclaimer *reclaimer, int fd, const char *path, uint64_t end,
		      struct spulse_error **err);

#endif

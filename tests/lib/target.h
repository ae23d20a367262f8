/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TARGET_H
#define TESTS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process that does what a test needs, until it is killed or its function returns. */
struct target {
	pid_t pid;
	int to, from; /* pipes */
};

/* Starts `body` in a child; returns when the child called target_ready(). */
struct target target_start(void (*body)(struct target *self));
/* In the child: says that it is ready. */
void target_ready(struct target *self);
/* Sends and waits for one byte, from either side. */
void target_tell(struct target *t);
void target_listen(struct target *t);
/* Kills and reaps. */
void target_end(struct target *t);
/* State letter of /proc. */
char target_state(pid_t pid);
/* Number of open descriptors of this process. */
size_t open_descriptors(void);
/* Burns CPU for some milliseconds of it. */
void burn(long milliseconds);
/* Whether this machine lets us sample at all. */
bool can_sample(void);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_NAMES_H
#define TOOL_NAMES_H

/* Names of processes and threads, from a recording's annotations; the last one said wins. */

#include <stackpulse/stackpulse.h>

#include "mem.h"

struct names {
	/* Borrowed from the source. */
	const char **texts;
	size_t count, cap;
	struct idmap processes;
	struct idmap threads;
};

void names_load(struct names *names, const struct spulse_source *source);
/* Command name of a process, or NULL. */
const char *names_process(const struct names *names, pid_t pid);
/* Name of a thread, its process's command name without one, or NULL. */
const char *names_thread(const struct names *names, pid_t pid, pid_t tid);
void names_release(struct names *names);

#endif

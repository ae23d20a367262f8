/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_CUTS_H
#define TOOL_CUTS_H

/* Why stacks are incomplete, as far as a recording's raw frames tell. */

#include <stdbool.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

struct cuts {
	/* Samples whose outer frames are missing. */
	uint64_t truncated;
	/* Of these, samples whose outermost known frame is code made at run time. */
	uint64_t generated;
};

/* Whether a module's path is that of code without a file; NULL is, too. */
bool cuts_is_generated(const char *path);
/* Reads the recording at path. */
int cuts_count(struct cuts *cuts, const char *path, struct spulse_error **err);

#endif

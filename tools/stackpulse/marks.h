/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the frames of a stack are, as far as it decides which of them are shown. Stacks share
 * callers: each node of the file is looked at once.
 */
#ifndef TOOL_MARKS_H
#define TOOL_MARKS_H

#include <stackpulse/stackpulse.h>

/* A stack was looked at; it has a Python function by name; it has code of a Python interpreter. */
enum { MARK_KNOWN = 1, MARK_PYTHON = 2, MARK_INTERPRETER = 4 };

/* All zero: empty. */
struct marks {
	/* Of each node and its callers. A forked process that shares nodes counts as its parent. */
	unsigned char *of;
	size_t count, cap;
	/* Nodes that are not known yet, innermost first. */
	uint32_t *path;
	size_t path_cap;
};

/* The set of MARK_... of a stack. */
int marks_of_stack(struct marks *marks, const struct spulse_source *source,
		   struct spulse_symbolizer *symbolizer, struct spulse_stack_key key,
		   unsigned int *marks_out, struct spulse_error **err);
void marks_release(struct marks *marks);

#endif

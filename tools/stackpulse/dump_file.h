/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_DUMP_FILE_H
#define TOOL_DUMP_FILE_H

/* A spool as one JSON document, through any of the three readers. */

#include "json.h"
#include "tool.h"

enum dump_reader { DUMP_SNAPSHOT, DUMP_REPLAY, DUMP_TAIL };

/* Lengths of the file to make visible one after the other. */
struct grow_steps {
	uint64_t *lengths;
	size_t count;
	size_t capacity;
};

/* Prints the document, or an object with "error". Returns the exit status. */
int dump_file(struct json *json, const char *path, enum dump_reader reader);
/* Plays a growing file to a tail: prints the batches that each step gives. */
int dump_growing(struct json *json, const char *path, const struct grow_steps *grow);

#endif

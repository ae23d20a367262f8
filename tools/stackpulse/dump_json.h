/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_DUMP_JSON_H
#define TOOL_DUMP_JSON_H

/* The raw content of a spool as JSON: numbers and addresses as they stand in the file. */

#include "json.h"
#include "tool.h"

/* What a tail delivered, kept: its stacks live only until the next poll. */
struct kept_stack {
	struct spulse_sample sample;
	uint32_t node;
};

/* A field "error" with class, reason and the record's place. */
void dump_json_error(struct json *json, const struct spulse_error *error);
/* Outcome, definitions, and the beginning of the list of samples. */
void dump_json_begin_document(struct json *json, const struct spulse_source *source,
			      bool recovered);
void dump_json_end_document(struct json *json);
int dump_json_stacks(struct json *json, const struct spulse_source *source,
		     struct spulse_stacks *stacks, struct spulse_error **err);
void dump_json_kept(struct json *json, const struct spulse_source *source,
		    const struct kept_stack *kept);
void dump_json_pids(struct json *json, const pid_t *pids, size_t count);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_RECOPTS_H
#define TOOL_RECOPTS_H

/* What the command line of record asks for, and the tables of its options. */

#include <stdbool.h>
#include <stdint.h>

#include "cli.h"

struct recopts {
	/* 0 = the default. */
	uint64_t frequency;
	bool frequency_maximum;
	const char *path;
	int64_t duration_ns;
	uint64_t stack_size;
	bool kernel;
	bool everyone;
	bool off_cpu;
	const char *comm;
	bool no_children;
	bool no_annotations;
	int mode;
	int format;
	bool quiet;
	bool json;
	struct cli_pids pids;
	const char *const *command;
};

enum { RECOPTS_TARGETS = 6, RECOPTS_SAMPLES = 4, RECOPTS_OUTPUTS = 5 };

/* Each fills the table of one group; the strings are borrowed from argv. */
void recopts_targets(struct recopts *o, struct cli_option options[RECOPTS_TARGETS]);
void recopts_samples(struct recopts *o, struct cli_option options[RECOPTS_SAMPLES]);
void recopts_outputs(struct recopts *o, struct cli_option options[RECOPTS_OUTPUTS]);

#endif

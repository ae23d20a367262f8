/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_SYMOPTS_H
#define TOOL_SYMOPTS_H

/* The options about names that every command shares which shows names. */

#include <stdbool.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

#include "cli.h"

struct symopts {
	const char *sysroot;
	const char *perf_map_dir;
	const char *kallsyms;
	const char *debug_dirs;
	const char *debuginfod;
	uint64_t threads;
	bool no_perf_maps;
	bool no_kernel_symbols;
	bool no_native;
	/* Show the functions that exist, not what was inlined into them. */
	bool no_inline;
};

enum { SYMOPTS_COUNT = 10 };

/* Fills the table of a group "Names" for cli_spec; the strings are borrowed from argv. */
void symopts_options(struct symopts *symopts, struct cli_option options[SYMOPTS_COUNT]);
/* The option --debuginfod alone, for a command that has its own table. */
struct cli_option symopts_debuginfod(struct symopts *symopts);
/* What both kinds of symbolizer take: debug files and who is asked for them, and threads. */
void symopts_apply(const struct symopts *symopts, struct spulse_symbolizer_options *options);
/* Makes a symbolizer for source as the options say. */
int symopts_open(const struct symopts *symopts, const struct spulse_source *source,
		 struct spulse_symbolizer **symbolizer_out, struct spulse_error **err);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "symopts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

struct cli_option symopts_debuginfod(struct symopts *symopts)
{
	return (struct cli_option){
		0, "debuginfod", CLI_STRING, &symopts->debuginfod, "URLS",
		.help = "Ask these debuginfod servers (separated by blanks) for debug files that "
			"are not here; 'off': none. Default: $DEBUGINFOD_URLS.",
	};
}

void symopts_options(struct symopts *symopts, struct cli_option options[SYMOPTS_COUNT])
{
	const struct cli_option table[SYMOPTS_COUNT] = {
		{0, "sysroot", CLI_STRING, &symopts->sysroot, "DIR",
		 .help = "Look for the recorded files below DIR instead of below /."},
		{0, "debug-dir", CLI_STRING, &symopts->debug_dirs, "DIR[:DIR...]",
		 .help = "Folders of separate debug files. Default: $STACKPULSE_DEBUG_DIRS, else "
			 "/usr/lib/debug."},
		symopts_debuginfod(symopts),
		{0, "perf-map-dir", CLI_STRING, &symopts->perf_map_dir, "DIR",
		 .help = "Folder of perf-PID.map files. Default: /tmp."},
		{0, "kallsyms", CLI_STRING, &symopts->kallsyms, "FILE",
		 .help = "Kernel symbols in the format of /proc/kallsyms, for a recording of "
			 "another machine."},
		{0, "threads", CLI_NUMBER, &symopts->threads, "N",
		 .help = "Worker threads. Default: one per CPU.", .minimum = 1, .maximum = 1024},
		{0, "no-inline", CLI_FLAG, &symopts->no_inline, NULL,
		 .help = "Leave out inlined functions."},
		{0, "no-perf-maps", CLI_FLAG, &symopts->no_perf_maps, NULL,
		 .help = "Do not read perf maps."},
		{0, "no-kernel-symbols", CLI_FLAG, &symopts->no_kernel_symbols, NULL,
		 .help = "Show kernel frames as addresses."},
		{0, "no-native", CLI_FLAG, &symopts->no_native, NULL,
		 .help = "Do not read ELF files: show FILE+0xOFFSET."},
	};

	for (size_t i = 0; i < SYMOPTS_COUNT; i++)
		options[i] = table[i];
}

static int open_nothing(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	(void)data;
	(void)pid;
	(void)err;
	*state_out = NULL;
	return 0;
}

static int name_nothing(void *state, const struct spulse_native_lookup *const *lookups,
			size_t count, struct spulse_native_results *results,
			struct spulse_error **err)
{
	(void)state;
	(void)lookups;
	(void)count;
	(void)results;
	(void)err;
	return 0;
}

/* A backend that knows no name leaves every address to the symbolizer's fallback. */
static const struct spulse_native_backend no_names = {
	.size = sizeof(no_names),
	.name = "none",
	.open = open_nothing,
	.symbolize = name_nothing,
};

/* One line for each file: what the user waits for. Workers may fetch at the same time. */
static bool tell_fetch(void *data, const char *build_id, long done, long total)
{
	static _Thread_local char told[132];

	(void)data;
	(void)done;
	if (!strcmp(told, build_id))
		return true;
	snprintf(told, sizeof(told), "%s", build_id);
	if (total > 0)
		tool_message("fetching the debug file of build ID %s (%ld MiB)", build_id,
			     (total >> 20) + 1);
	else
		tool_message("asking for the debug file of build ID %s", build_id);
	return true;
}

void symopts_apply(const struct symopts *symopts, struct spulse_symbolizer_options *options)
{
	bool off = symopts->debuginfod && !strcmp(symopts->debuginfod, "off");

	options->threads = (uint32_t)symopts->threads;
	options->debug_dirs = symopts->debug_dirs;
	options->sysroot = symopts->sysroot;
	options->debug_servers = off ? SPULSE_DEBUG_SERVERS_NONE : SPULSE_DEBUG_SERVERS_ENVIRONMENT;
	options->fetch_progress = tell_fetch;
	/* The client knows no other way to be told; there are no other threads yet. */
	if (symopts->debuginfod && !off)
		setenv("DEBUGINFOD_URLS", symopts->debuginfod, 1);
}

int symopts_open(const struct symopts *symopts, const struct spulse_source *source,
		 struct spulse_symbolizer **symbolizer_out, struct spulse_error **err)
{
	struct spulse_symbolizer_options options = {
		.size = sizeof(options),
		.perf_maps = symopts->no_perf_maps ? SPULSE_PERF_MAPS_NONE : SPULSE_PERF_MAPS_ALL,
		.perf_map_dir = symopts->perf_map_dir,
		.kernel_symbols_path = symopts->kallsyms,
		.native = symopts->no_native ? &no_names : NULL,
	};

	symopts_apply(symopts, &options);
	if (symopts->no_kernel_symbols) {
		options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_NONE;
		options.kernel_symbols_path = NULL;
	} else if (symopts->kallsyms) {
		options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_FILE;
	}
	return spulse_symbolizer_new(source, &options, symbolizer_out, err);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which processes are Python runtimes that write a perf map: they map an interpreter, and their
 * environment or command line asks for it. The latter is read once per program.
 */
#include "recorder.h"

#include <string.h>

#include "../codemap/codemap.h"

enum { MAX_ENVIRON = 16 * 1024 * 1024 };

static bool asks_for_perf_map(const struct rec_process *process)
{
	struct strbuf environment = { 0 }, cmdline = { 0 };
	bool yes;

	if (proc_file_read(process->pid, 0, "environ", MAX_ENVIRON, &environment) < 0)
		strbuf_reset(&environment);
	if (proc_file_read(process->pid, 0, "cmdline", MAX_ENVIRON, &cmdline) < 0)
		strbuf_reset(&cmdline);
	yes = codemap_python_perf_enabled(environment.data ? environment.data : "",
					  environment.len, cmdline.data ? cmdline.data : "",
					  cmdline.len);
	strbuf_release(&environment);
	strbuf_release(&cmdline);
	return yes;
}

int python_set(struct spulse_recorder *rec, struct rec_process *process, bool on, uint64_t time,
	       struct spulse_error **err)
{
	const struct spulse_python_runtime record = {
		.timestamp_ns = time, .pid = process->pid, .is_python = on,
	};

	if (process->python == on)
		return 0;
	process->python = on;
	return spulse_spool_writer_python_runtime(rec->writer, &record, err);
}

static bool is_python_path(const char *path, size_t len)
{
	static const char deleted[] = " (deleted)";
	size_t start;

	if (len > sizeof(deleted) - 1 &&
	    !memcmp(path + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		len -= sizeof(deleted) - 1;
	for (start = len; start > 0 && path[start - 1] != '/';)
		start--;
	return codemap_is_python_basename(path + start, len - start);
}

int python_check(struct spulse_recorder *rec, struct rec_process *process,
		 const struct rec_mapping *mapping, uint64_t time, struct spulse_error **err)
{
	if (process->python || rec->options.python == SPULSE_PYTHON_OFF ||
	    process->perf_support == REC_PYTHON_NO ||
	    !is_python_path(mapping->path, mapping->path_len))
		return 0;
	if (process->perf_support == REC_PYTHON_UNKNOWN)
		process->perf_support = rec->options.python == SPULSE_PYTHON_PERFMAP ||
							(!rec->offline &&
							 asks_for_perf_map(process)) ?
						REC_PYTHON_YES :
						REC_PYTHON_NO;
	return process->perf_support == REC_PYTHON_YES ?
		       python_set(rec, process, true, time, err) :
		       0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which of the processes that the kernel samples are asked for: those whose name matches. A name
 * changes with an execve and when a process gives itself another one; each change decides anew.
 */
#include "recorder.h"

#include <fnmatch.h>
#include <string.h>

enum { MAX_COMM = 64 };

static bool read_comm(const struct spulse_recorder *rec, pid_t pid, char *name)
{
	struct strbuf comm = { 0 };
	bool known = !rec->offline && proc_file_read(pid, 0, "comm", MAX_COMM - 1, &comm) == 0;

	if (known) {
		memcpy(name, comm.data, comm.len);
		name[comm.len] = '\0';
	}
	strbuf_release(&comm);
	return known;
}

void select_process(const struct spulse_recorder *rec, struct rec_process *process,
		    const char *comm, size_t len)
{
	char name[MAX_COMM];

	if (!rec->comm_pattern)
		return;
	if (comm) {
		len = MIN(len, sizeof(name) - 1);
		memcpy(name, comm, len);
		name[len] = '\0';
	} else if (!read_comm(rec, process->pid, name)) {
		/* It is gone. What nobody can name was not asked for. */
		name[0] = '\0';
	}
	process->unwanted = fnmatch(rec->comm_pattern, name, 0) != 0;
}

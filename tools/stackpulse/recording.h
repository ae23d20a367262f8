/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_RECORDING_H
#define TOOL_RECORDING_H

/* A recording that runs: the loop, what it tells on stderr, and its end. */

#include <stdbool.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

#include "spoolfile.h"

struct recording {
	struct spulse_recorder *recorder;
	/* NULL when running processes are recorded. */
	struct spulse_launch *launch;
	const pid_t *pids;
	size_t pid_count;
	/* Every process of the machine is recorded: without a command nothing ends that. */
	bool everyone;
	bool off_cpu;
	const struct spoolfile *file;
	/* How people call what is recorded. */
	const char *target;
	/* -1: no limit. */
	int64_t duration_ns;
	bool quiet;
	/* The closing text is one JSON object. */
	bool json;
	bool kernel_wanted;
	/* Not all that was recorded is in the file. */
	bool cut_off;
	uint64_t stack_size;
	int64_t started_ns;
	int64_t status_ns;
	bool status_shown;
	/* The command ended, with this wait status. */
	bool ended;
	int wait_status;
};

/*
 * Starts to note SIGINT, SIGTERM and SIGHUP instead of being ended by them. After the launch of
 * a command, which is to have the signals as they were.
 */
void recording_catch_signals(void);
/* Number of the last noted signal, 0 without one. */
int recording_signal(void);

/* Records until the target ends, the time is up or a signal comes; then completes the spool. */
int recording_run(struct recording *recording, struct spulse_recording_summary *summary,
		  struct spulse_error **err);
/* The closing text. */
void recording_tell(const struct recording *recording,
		    const struct spulse_recording_summary *summary);
/* Waits for the command, if there is one. False when a signal made us leave it running. */
bool recording_wait(struct recording *recording);

#endif

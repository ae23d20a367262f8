/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_RECORD_OUTFILE_H
#define SPULSE_RECORD_OUTFILE_H

#include "recorder.h"

/* Where a recording goes: one of path, fd and output is set. */
struct rec_target {
	const char *path;
	int fd; /* -1 */
	const struct spulse_output *output;
	void *data;
	/* Made by output_open(): */
	struct spulse_spool_header header;
	char *name;   /* what the file will be called */
	char *hidden; /* what it is called until then, or NULL: it has no name */
	int file;     /* -1: nothing to name */
};

/* Checks what can be checked before the target process is touched. */
int output_check(const struct rec_target *target, struct spulse_error **err);
/* Creates the output, without a name, and the writer with its header. */
int output_open(struct spulse_recorder *rec, struct rec_target *target, struct spulse_error **err);
/* Gives the file its name, replacing an older one. */
int output_publish(struct rec_target *target, struct spulse_error **err);
/*
 * A recorder of events of another time. The source is its own from then on; on failure it stays
 * the caller's.
 */
int recorder_from_source(const struct spulse_recorder_options *options,
			 struct perf_source *source, struct rec_target *target,
			 struct spulse_recorder **rec_out, struct spulse_error **err);
/* Removes what was not published. */
void output_release(struct rec_target *target);

#endif

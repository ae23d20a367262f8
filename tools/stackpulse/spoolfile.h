/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_SPOOLFILE_H
#define TOOL_SPOOLFILE_H

/*
 * The file of a new recording. It has no name, or a temporary one, until the recording really
 * started; then an older file of that name is kept as NAME.old. Nothing is left behind by a
 * recording that does not start. Devices and pipes are written as they are.
 */

#include <stdbool.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

struct spoolfile {
	const char *path;
	int fd;
	/* A regular file of ours, as opposed to a device or pipe that was there. */
	bool regular;
	bool named;
	/* Set by spoolfile_publish() when NAME.old was made. */
	bool kept_old;
	char temporary[4096];
};

/* Opens the file; prints its own error and returns false when it cannot. */
bool spoolfile_open(struct spoolfile *file, const char *path);
/* Attaches a recorder that writes to the file. */
int spoolfile_attach(struct spoolfile *file, pid_t pid, enum spulse_attach_mode mode,
		     const struct spulse_recorder_options *options,
		     struct spulse_recorder **recorder_out, struct spulse_error **err);
/* Gives the file its name; prints its own error and returns false when it cannot. */
bool spoolfile_publish(struct spoolfile *file);
/* Size in bytes, 0 for what is not a regular file. */
uint64_t spoolfile_bytes(const struct spoolfile *file);
/* Closes; removes the file unless it was published. */
void spoolfile_close(struct spoolfile *file);

#endif

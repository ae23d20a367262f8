/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SPOOL_OUTPUT_H
#define TESTS_LIB_SPOOL_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include <stackpulse/spool.h>

#include "base/strbuf.h"
#include "random.h"

/* A spool output in memory that can be made to misbehave. */
struct spool_output {
	struct strbuf bytes;
	struct random rng;
	size_t piece; /* at most so many bytes go in at once; 0 = any number */
	unsigned int interrupt; /* every so many calls: EINTR; 0 = never */
	size_t room; /* after so many bytes: `error`; 0 = no limit */
	int error;
	unsigned int fail_call; /* the nth call fails with `error`, and all after it */
	unsigned int calls, flushes, closes, failures;
};

extern const struct spulse_output spool_output_functions;

/* Writes the bytes to a new file with no name and gives a path to open it by. */
struct spool_file {
	int fd;
	char path[64];
};

void spool_file_make(struct spool_file *file, const void *bytes, size_t len);
void spool_file_close(struct spool_file *file);

#endif

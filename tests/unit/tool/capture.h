/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TEST_TOOL_CAPTURE_H
#define TEST_TOOL_CAPTURE_H

/* What code under test writes, caught in files of their own. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct capture {
	char path[64];
	int number;
	int saved;
};

/* Redirects descriptor number (1 or 2) to a file. */
static inline void capture_start(struct capture *capture, int number)
{
	int fd;

	fflush(NULL);
	strcpy(capture->path, "/tmp/stackpulse-test-XXXXXX");
	fd = mkstemp(capture->path);
	assert_true(fd >= 0);
	capture->number = number;
	capture->saved = dup(number);
	assert_int_equal(dup2(fd, number), number);
	close(fd);
}

/* Ends it; gives what was written, cut to fit and terminated. */
static inline size_t capture_end(struct capture *capture, char *buf, size_t size)
{
	ssize_t n;
	int fd;

	fflush(NULL);
	dup2(capture->saved, capture->number);
	close(capture->saved);
	fd = open(capture->path, O_RDONLY | O_CLOEXEC);
	unlink(capture->path);
	n = read(fd, buf, size - 1);
	close(fd);
	assert_true(n >= 0);
	buf[n] = '\0';
	return (size_t)n;
}

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_IO_H
#define SPULSE_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "strbuf.h"

struct spulse_error;

/* Reads until len bytes or the end of the file; returns the count, or -errno. Retries EINTR. */
ssize_t read_full(int fd, void *buf, size_t len);
ssize_t pread_full(int fd, void *buf, size_t len, uint64_t offset);
/* Writes all; 0 or -errno. Retries EINTR. */
int write_full(int fd, const void *buf, size_t len);

/*
 * Reads a whole file of unknown size (/proc) into sb, which is emptied first. Fails with EFBIG
 * past max bytes. `fd_or_dir`: -1 opens path; 0 or -errno is returned, nothing is reported.
 */
int read_file(const char *path, size_t max, struct strbuf *sb);
int read_fd(int fd, size_t max, struct strbuf *sb);
/* The decimal number that a small file begins with; 0 or -errno. */
int read_file_number(const char *path, int64_t *value);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SPOOL_BYTES_H
#define TESTS_LIB_SPOOL_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Spools byte by byte, for what no writer would write. */

/* A header whose fields are all 0. */
void bytes_header(struct strbuf *out, int version);
void bytes_number(struct strbuf *out, uint64_t number);
void bytes_text(struct strbuf *out, const char *text, size_t len);
/* A tag 1 record in its shortest form: a kernel module when pid is 0. */
void bytes_module(struct strbuf *out, uint64_t id, uint64_t pid, uint64_t start, uint64_t end,
		  const char *path);

/* bytes_numbers(out, COUNT, NUMBER...); tags and flags are numbers too. */
void bytes_numbers_from(struct strbuf *out, const uint64_t *numbers, size_t count);
#define bytes_numbers(out, count, ...) \
	bytes_numbers_from(out, (const uint64_t[count]){ __VA_ARGS__ }, count)

#endif

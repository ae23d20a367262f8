/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_STRBUF_H
#define SPULSE_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <stackpulse/common.h>

/*
 * Builds a byte string: `struct strbuf sb = {0};`. When memory runs out `failed` stays set and
 * further calls do nothing, so that only the end needs a check. data is NUL-terminated once
 * anything was added.
 */
struct strbuf {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len);
void strbuf_puts(struct strbuf *sb, const char *s);
void strbuf_putc(struct strbuf *sb, char c);
void strbuf_printf(struct strbuf *sb, const char *format, ...) SPULSE_PRINTF(2, 3);
void strbuf_vprintf(struct strbuf *sb, const char *format, va_list args);
/* Empties it, keeping the memory. */
void strbuf_reset(struct strbuf *sb);
/* Hands the string over (to be freed); NULL when memory ran out. Never NULL for an empty one. */
char *strbuf_take(struct strbuf *sb);
void strbuf_release(struct strbuf *sb);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

/* Bytes of foreign names made fit for a line of text, a terminal or a column. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_mode {
	/* A name in a file: backslash, ';', LF and CR as \xNN; every other byte as it is. */
	TEXT_NAME,
	/* A name on a terminal: also control characters and bytes that are not UTF-8. */
	TEXT_NAME_TERMINAL,
	/* A message in a file: LF and CR only. */
	TEXT_LINE,
	/* A message on a terminal: control characters and bytes that are not UTF-8. */
	TEXT_TERMINAL,
};

/*
 * Length of the well-formed UTF-8 sequence at text[0], 1 to 4, with its code point; 0 when the
 * bytes are none (then code_point_out is untouched).
 */
size_t text_utf8_length(const char *text, size_t len, uint32_t *code_point_out);
bool text_is_utf8(const char *text, size_t len);
/* Control characters, and those that reorder what a terminal shows. */
bool text_is_control(uint32_t code_point);

/* A hash; equal texts have equal ones, and different ones may. */
uint64_t text_hash(const char *text, size_t len);

/* Escapes into buf, cut to fit at a whole character, terminated. Returns the length written. */
size_t text_escape(char *buf, size_t size, const char *text, size_t len, enum text_mode mode);

/* "1,234,567" into buf (at least 27 bytes); returns buf. */
char *text_count(char *buf, uint64_t value);
/* "12.3 MiB" into buf (at least 16 bytes); returns buf. */
char *text_bytes(char *buf, uint64_t value);
/* "1.5 s", "2 min 03 s", "1 h 02 min" into buf (at least 32 bytes); returns buf. */
char *text_duration(char *buf, uint64_t ns);
/* The last part of a path. */
const char *text_basename(const char *path);
/* Of count names the one that text is most likely a slip of the pen for, or NULL. */
const char *text_closest(const char *text, const char *const *names, size_t count);

#endif

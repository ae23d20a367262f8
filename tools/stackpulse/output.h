/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

/*
 * Checked output: what a command prints goes through one of these. Writing never fails in
 * between; the first error is kept, the rest is thrown away, and out_close() tells. A reader of
 * our pipe that went away is no failure: long loops ask out_stopped() and leave early.
 */

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

struct out;

enum out_color { OUT_COLOR_AUTO, OUT_COLOR_ALWAYS, OUT_COLOR_NEVER };

/* Starts writing to stdout. Never fails. */
struct out *out_stdout(void);
struct out *out_stderr(void);
/*
 * Starts writing to a file that is put in place by out_close(): until then an existing file
 * stays as it was. "-" is stdout. Prints its own error and returns NULL when it cannot, or when
 * path is the file input, which a slip on the command line must not cost.
 */
struct out *out_file(const char *path, const char *input);
/* Whether both are the same regular file; says so. */
bool out_would_replace(const char *path, const char *input);
/* Decides on colours: AUTO means on a terminal unless $NO_COLOR is set. */
void out_set_color(struct out *out, enum out_color color);
bool out_color(const struct out *out);
bool out_terminal(const struct out *out);
/* Columns of the terminal; 0 when it is none. */
unsigned int out_columns(const struct out *out);

void out_write(struct out *out, const void *bytes, size_t len);
void out_puts(struct out *out, const char *text);
void out_printf(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A foreign name, escaped for text: see text.h. */
void out_name(struct out *out, const char *name, size_t len);
/* The same for a path or message, in which ';' and backslash stay. */
void out_line(struct out *out, const char *text, size_t len);
/* Switches a colour ("1;31") on; NULL switches off. Nothing without colours. */
void out_style(struct out *out, const char *sgr);

/* Hands everything to the system now, for output that somebody follows. */
void out_flush(struct out *out);
/* Whether writing more is pointless. */
bool out_stopped(const struct out *out);
/* Whether a pipe's other end is closed, which writing would only find with something to write. */
bool out_reader_left(const struct out *out);
/*
 * Finishes and frees. Returns the exit status: failed (TOOL_DONE stays as it is given) when
 * something could not be written, after printing why.
 */
int out_close(struct out *out, int status);
/* Frees without putting a file in place; for a command that failed. Returns status. */
int out_abandon(struct out *out, int status);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_SHORTEN_H
#define TOOL_SHORTEN_H

/*
 * Long names of C++ and Rust functions made readable. What tells functions apart stands at the
 * end of such a name, so template arguments go first, the inner ones before the outer ones, then
 * parameters, and only then the middle of what remains.
 */

#include <stddef.h>

/* Bytes of a buffer that holds any shortened name of that many columns. */
#define SHORTEN_SIZE(columns) ((columns) * 4 + 8)

/*
 * Writes name into buf (size bytes, at least SHORTEN_SIZE(columns)), shortened to at most so many
 * characters (at least 8); what is left out becomes an ellipsis. Returns its length in bytes.
 */
size_t shorten_name(char *buf, size_t size, const char *name, size_t len, size_t columns);

#endif

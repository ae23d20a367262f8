/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

/*
 * A streaming JSON writer. Commas are its business; the caller opens and closes in order.
 * Strings are bytes: control characters are escaped, what is not UTF-8 becomes U+FFFD.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output.h"

enum { JSON_DEPTH = 32 };

struct json {
	struct out *out;
	unsigned int depth;
	/* Escape '<', '>' and '&' as well, for text inside of an HTML page. */
	bool html_safe;
	bool after_key;
	/* Whether something was written at this depth. */
	bool filled[JSON_DEPTH];
};

void json_init(struct json *json, struct out *out);
void json_begin_object(struct json *json);
void json_end_object(struct json *json);
void json_begin_array(struct json *json);
void json_end_array(struct json *json);
/* The key of the next value; plain text. */
void json_key(struct json *json, const char *key);
void json_string(struct json *json, const char *text, size_t len);
/* NULL gives null. */
void json_text(struct json *json, const char *text);
void json_uint(struct json *json, uint64_t value);
void json_int(struct json *json, int64_t value);
/* An address as a string: "0x1f". */
void json_hex(struct json *json, uint64_t value);
/* Any bytes as a string of hex digits. */
void json_hex_bytes(struct json *json, const char *bytes, size_t len);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
/* decimals digits after the point. */
void json_number(struct json *json, double value, int decimals);
/* Ends a document of its own: a line end; the next value starts afresh. */
void json_end_line(struct json *json);

/* Key and value in one. */
void json_field_text(struct json *json, const char *key, const char *text);
void json_field_string(struct json *json, const char *key, const char *text, size_t len);
/* A path or other bytes: when they are not UTF-8 a field "KEY_hex" with all of them follows. */
void json_field_bytes(struct json *json, const char *key, const char *bytes, size_t len);
void json_field_uint(struct json *json, const char *key, uint64_t value);
void json_field_int(struct json *json, const char *key, int64_t value);
void json_field_hex(struct json *json, const char *key, uint64_t value);
void json_field_bool(struct json *json, const char *key, bool value);

#endif

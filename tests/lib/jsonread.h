/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_JSONREAD_H
#define TESTS_LIB_JSONREAD_H

#include <stddef.h>

/*
 * A small JSON reader for test data. Objects keep their keys as `name` of their children; numbers
 * keep their text. Strings know \" \\ \/ \n \t only.
 */
enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	char *name; /* of an object's member */
	char *text; /* of strings, numbers and true, false */
	struct json *children;
	size_t count;
};

/* NULL when it is not well-formed. */
struct json *json_parse(const char *text);
void json_free(struct json *json);
/* Member of an object by path "a.b"; NULL without one. */
const struct json *json_get(const struct json *json, const char *path);
/* Text of a member; "" without one. */
const char *json_text(const struct json *json, const char *path);
/* Number of a member, also from a string with 0x; 0 without one. */
unsigned long long json_number(const struct json *json, const char *path);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "jsonread.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

static void skip_space(const char **p)
{
	*p += strspn(*p, " \t\r\n");
}

static char unescape(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

static bool parse_string(const char **p, char **out)
{
	char *text = malloc(strlen(*p) + 1), *end = text;
	const char *c = *p + 1;

	if (!text || **p != '"') {
		free(text);
		return false;
	}
	for (; *c && *c != '"'; c++) {
		if (*c == '\\' && !strchr("\"\\/nt", *++c))
			break;
		*end++ = c[-1] == '\\' ? unescape(*c) : *c;
	}
	*end = '\0';
	*out = text;
	*p = c + 1;
	return *c == '"';
}

static bool parse_value(const char **p, struct json *out, int depth);

static bool parse_members(const char **p, struct json *out, char close, int depth)
{
	(*p)++;
	skip_space(p);
	while (**p != close) {
		struct json *grown, *child;

		grown = realloc(out->children, (out->count + 1) * sizeof(*grown));
		if (!grown)
			return false;
		out->children = grown;
		child = &grown[out->count++];
		*child = (struct json){0};
		skip_space(p);
		if (close == '}') {
			if (!parse_string(p, &child->name))
				return false;
			skip_space(p);
			if (*(*p)++ != ':')
				return false;
		}
		if (!parse_value(p, child, depth + 1))
			return false;
		skip_space(p);
		if (**p == ',')
			(*p)++;
		else if (**p != close)
			return false;
	}
	(*p)++;
	return true;
}

static bool parse_word(const char **p, struct json *out)
{
	size_t len = strcspn(*p, ",]} \t\r\n");

	if (!len)
		return false;
	out->kind = **p == 'n' ? JSON_NULL : **p == 't' || **p == 'f' ? JSON_BOOL : JSON_NUMBER;
	out->text = strndup(*p, len);
	*p += len;
	return out->text;
}

static bool parse_value(const char **p, struct json *out, int depth)
{
	skip_space(p);
	if (depth > MAX_DEPTH)
		return false;
	switch (**p) {
	case '{':
		out->kind = JSON_OBJECT;
		return parse_members(p, out, '}', depth);
	case '[':
		out->kind = JSON_ARRAY;
		return parse_members(p, out, ']', depth);
	case '"':
		out->kind = JSON_STRING;
		return parse_string(p, &out->text);
	default:
		return parse_word(p, out);
	}
}

static void release(struct json *json)
{
	for (size_t i = 0; i < json->count; i++)
		release(&json->children[i]);
	free(json->children);
	free(json->name);
	free(json->text);
}

struct json *json_parse(const char *text)
{
	struct json *json = calloc(1, sizeof(*json));

	if (!json)
		return NULL;
	if (parse_value(&text, json, 0)) {
		skip_space(&text);
		if (!*text)
			return json;
	}
	json_free(json);
	return NULL;
}

void json_free(struct json *json)
{
	if (!json)
		return;
	release(json);
	free(json);
}

const struct json *json_get(const struct json *json, const char *path)
{
	while (json && *path) {
		size_t len = strcspn(path, ".");
		const struct json *found = NULL;

		for (size_t i = 0; i < json->count && !found; i++)
			if (json->children[i].name && strlen(json->children[i].name) == len &&
			    memcmp(json->children[i].name, path, len) == 0)
				found = &json->children[i];
		json = found;
		path += len + (path[len] == '.');
	}
	return json;
}

const char *json_text(const struct json *json, const char *path)
{
	const struct json *found = json_get(json, path);

	return found && found->text ? found->text : "";
}

unsigned long long json_number(const struct json *json, const char *path)
{
	return strtoull(json_text(json, path), NULL, 0);
}

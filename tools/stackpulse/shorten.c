/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "shorten.h"
#include "text.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* What is left out of a name. */
struct level {
	/* Template arguments nested deeper than this. */
	int depth;
	bool parameters;
};

static const struct level levels[] = {{2, false}, {1, false}, {0, false}, {0, true}};

struct collapse {
	const char *name;
	size_t len;
	/* As long as the name. */
	char *to;
	size_t used;
};

static size_t columns_of(const char *text, size_t len)
{
	size_t columns = 0;

	for (size_t at = 0; at < len; columns++) {
		uint32_t code_point;
		size_t step = text_utf8_length(text + at, len - at, &code_point);

		at += step ? step : 1;
	}
	return columns;
}

static void put(struct collapse *c, const char *text, size_t len)
{
	memcpy(c->to + c->used, text, len);
	c->used += len;
}

static bool starts(const struct collapse *c, size_t at, const char *text)
{
	size_t len = strlen(text);

	return c->len - at >= len && !memcmp(c->name + at, text, len);
}

/* Length of what looks like brackets at `at` but is none: "operator<<", "operator()", "->". */
static size_t no_bracket(const struct collapse *c, size_t at)
{
	static const char word[] = "operator";
	size_t end = at + sizeof(word) - 1;

	if (starts(c, at, "->"))
		return 2;
	if (!starts(c, at, word) || (at && c->name[at - 1] != ':' && c->name[at - 1] != ' '))
		return 0;
	if (starts(c, end, "()"))
		return end + 2 - at;
	while (end < c->len && strchr("<>=-", c->name[end]))
		end++;
	return end - at;
}

/* Index behind the bracket that closes the one at `at`; 0 when there is none. */
static size_t closing(const struct collapse *c, size_t at)
{
	char open = c->name[at], close = open == '<' ? '>' : ')';
	size_t depth = 0;

	while (at < c->len) {
		size_t skipped = no_bracket(c, at);

		if (skipped) {
			at += skipped;
			continue;
		}
		depth += c->name[at] == open;
		depth -= c->name[at] == close;
		at++;
		if (!depth)
			return at;
	}
	return 0;
}

/* False when brackets do not match: then it is no name of the kind that is understood. */
static bool collapse_name(struct collapse *c, const struct level *level)
{
	int depth = 0;

	for (size_t at = 0; at < c->len;) {
		size_t skipped = no_bracket(c, at), end;
		char byte = c->name[at];
		bool parameters = byte == '(' && level->parameters && !depth &&
				  !starts(c, at, "(anonymous namespace)");

		if (skipped) {
			put(c, c->name + at, skipped);
			at += skipped;
		} else if ((byte == '<' && depth == level->depth) || parameters) {
			end = closing(c, at);
			if (!end)
				return false;
			/* Never longer than what it stands for. */
			if (end - at > 2 + strlen(ELLIPSIS)) {
				put(c, &byte, 1);
				put(c, ELLIPSIS, strlen(ELLIPSIS));
				put(c, c->name + end - 1, 1);
			} else {
				put(c, c->name + at, end - at);
			}
			at = end;
		} else {
			depth += byte == '<';
			depth -= byte == '>';
			if (depth < 0)
				return false;
			put(c, &byte, 1);
			at++;
		}
	}
	return !depth;
}

/* Bytes of the first so many characters. */
static size_t prefix(const char *text, size_t len, size_t columns)
{
	size_t at = 0;

	while (at < len && columns--) {
		uint32_t code_point;
		size_t step = text_utf8_length(text + at, len - at, &code_point);

		at += step ? step : 1;
	}
	return at;
}

/* Leaves out the middle: one third stays of the start, two of the end. */
static size_t cut(char *buf, const char *text, size_t len, size_t columns)
{
	size_t all = columns_of(text, len), head = prefix(text, len, columns / 3);
	size_t tail = prefix(text, len, all - (columns - 1 - columns / 3));

	memcpy(buf, text, head);
	memcpy(buf + head, ELLIPSIS, strlen(ELLIPSIS));
	memcpy(buf + head + strlen(ELLIPSIS), text + tail, len - tail);
	return head + strlen(ELLIPSIS) + len - tail;
}

size_t shorten_name(char *buf, size_t size, const char *name, size_t len, size_t columns)
{
	struct collapse c = {.name = name, .len = len};
	const char *best = name;
	size_t best_len = len;
	char *room;

	if (columns < 8)
		columns = 8;
	if (columns_of(name, len) <= columns && len <= size) {
		memcpy(buf, name, len);
		return len;
	}
	room = mem_alloc(2 * len);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		c.to = room + (i % 2) * len;
		c.used = 0;
		if (!collapse_name(&c, &levels[i]))
			break;
		best = c.to;
		best_len = c.used;
		if (columns_of(best, best_len) <= columns)
			break;
	}
	if (columns_of(best, best_len) <= columns)
		memcpy(buf, best, best_len);
	else
		best_len = cut(buf, best, best_len, columns);
	free(room);
	return best_len;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "perfline.h"

static const char python_prefix[] = "py::";

/* Blank in the sense of the format: any ASCII space but the vertical tab. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hexadecimal number, "0x" before it or not (writers have been seen to print it twice). */
static bool parse_hex(const char *p, const char *end, uint64_t *value)
{
	uint64_t n = 0;

	while (end - p >= 2 && p[0] == '0' && p[1] == 'x')
		p += 2;
	if (p < end && *p == '+')
		p++;
	if (p == end)
		return false;
	for (; p < end; p++) {
		int digit = hex_digit(*p);

		if (digit < 0 || n >> 60)
			return false;
		n = n << 4 | (unsigned int)digit;
	}
	*value = n;
	return true;
}

/* One number and the single blank behind it; the place behind that, or NULL. */
static const char *take_number(const char *p, const char *end, uint64_t *value)
{
	const char *field;

	while (p < end && is_blank(*p))
		p++;
	field = p;
	while (p < end && !is_blank(*p))
		p++;
	return p < end && parse_hex(field, p, value) ? p + 1 : NULL;
}

bool perfline_parse(const char *line, size_t len, uint64_t *start, uint64_t *end,
		    struct perfmap_text *name)
{
	const char *stop = line + len, *p = take_number(line, stop, start);
	uint64_t span;

	if (!p || !(p = take_number(p, stop, &span)) || p == stop || span == 0 ||
	    add_overflows(*start, span, end))
		return false;
	*name = (struct perfmap_text){p, stop - p};
	return true;
}

static struct perfmap_text trim(const char *p, const char *end)
{
	while (p < end && (is_blank(*p) || *p == '\v'))
		p++;
	while (p < end && (is_blank(end[-1]) || end[-1] == '\v'))
		end--;
	return (struct perfmap_text){p, end - p};
}

/* Drops ":LINE" at the end when something stands before it. */
static void drop_line_number(struct perfmap_text *file)
{
	size_t at = file->len;

	while (at > 0 && file->bytes[at - 1] >= '0' && file->bytes[at - 1] <= '9')
		at--;
	if (at < file->len && at > 1 && file->bytes[at - 1] == ':')
		file->len = at - 1;
}

bool perfline_python(const struct perfmap_text *name, struct perfmap_text *function,
		     struct perfmap_text *file)
{
	size_t prefix = strlen(python_prefix);
	struct perfmap_text rest;
	const char *end, *colon, *space, *split;

	if (name->len < prefix || memcmp(name->bytes, python_prefix, prefix) != 0)
		return false;
	rest = trim(name->bytes + prefix, name->bytes + name->len);
	end = rest.bytes + rest.len;
	colon = memchr(rest.bytes, ':', rest.len);
	space = memchr(rest.bytes, ' ', rest.len);
	split = colon && (!space || colon < space) ? colon : space;
	*function = trim(rest.bytes, split ? split : end);
	*file = split ? trim(split + 1, end) : (struct perfmap_text){0};
	drop_line_number(file);
	if (file->len == 0)
		*file = (struct perfmap_text){"~", 1};
	return function->len > 0;
}

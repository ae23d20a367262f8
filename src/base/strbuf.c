/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vec.h"

static bool strbuf_room(struct strbuf *sb, size_t more)
{
	if (sb->failed)
		return false;
	if (sb->cap - sb->len > more)
		return true;
	if (more == SIZE_MAX || !vec_grow((void **)&sb->data, &sb->cap, sb->len, more + 1, 1))
		sb->failed = true;
	return !sb->failed;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len)
{
	if (!strbuf_room(sb, len))
		return;
	if (len)
		memcpy(sb->data + sb->len, bytes, len);
	sb->len += len;
	sb->data[sb->len] = '\0';
}

void strbuf_puts(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

void strbuf_putc(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_vprintf(struct strbuf *sb, const char *format, va_list args)
{
	va_list again;
	int need;

	va_copy(again, args);
	need = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (need < 0) {
		sb->failed = true;
		return;
	}
	if (!strbuf_room(sb, need))
		return;
	vsnprintf(sb->data + sb->len, need + 1, format, args);
	sb->len += need;
}

void strbuf_printf(struct strbuf *sb, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	strbuf_vprintf(sb, format, args);
	va_end(args);
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	sb->failed = false;
	if (sb->data)
		sb->data[0] = '\0';
}

char *strbuf_take(struct strbuf *sb)
{
	char *s;

	strbuf_add(sb, "", 0);
	s = sb->failed ? NULL : sb->data;
	if (sb->failed)
		free(sb->data);
	*sb = (struct strbuf){ 0 };
	return s;
}

void strbuf_release(struct strbuf *sb)
{
	free(sb->data);
	*sb = (struct strbuf){ 0 };
}

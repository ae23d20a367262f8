/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "failalloc.h"

#include <errno.h>
#include <stddef.h>

static long countdown, tried;
static bool keep_failing, hit;

void failalloc_set(long nth, bool all)
{
	countdown = nth;
	keep_failing = all;
	hit = false;
	tried = 0;
}

bool failalloc_hit(void)
{
	return hit;
}

long failalloc_count(void)
{
	return tried;
}

static bool fails(void)
{
	tried++;
	if (countdown > 0 && --countdown == 0)
		hit = true;
	else if (!hit || !keep_failing)
		return false;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

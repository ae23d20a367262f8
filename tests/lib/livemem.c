/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "livemem.h"

#include <malloc.h>
#include <stdint.h>

static size_t live, base, peak;

void livemem_reset(void)
{
	base = peak = live;
}

size_t livemem_peak(void)
{
	return peak - base;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *p);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);

static void *gained(void *p)
{
	live += p ? malloc_usable_size(p) : 0;
	if (live > peak)
		peak = live;
	return p;
}

static void lost(void *p)
{
	size_t size = p ? malloc_usable_size(p) : 0;

	/* What came from elsewhere was never counted. */
	live -= size < live ? size : live;
}

void *__wrap_malloc(size_t size)
{
	return gained(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return gained(__real_calloc(count, size));
}

/* Counted as if both blocks were there while one is copied. */
void *__wrap_realloc(void *old, size_t size)
{
	size_t old_size = old ? malloc_usable_size(old) : 0;
	void *p = gained(__real_realloc(old, size));

	if (p)
		live -= old_size < live ? old_size : live;
	return p;
}

void __wrap_free(void *p)
{
	lost(p);
	__real_free(p);
}

char *__wrap_strdup(const char *s)
{
	return gained(__real_strdup(s));
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "strpool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../base/base.h"

static struct pool_string *pool_string_of(const char *string)
{
	return (struct pool_string *)(string - offsetof(struct pool_string, bytes));
}

static bool strpool_grow(struct strpool *pool)
{
	size_t count = pool->slots ? (pool->mask + 1) * 2 : 256;
	struct pool_string **slots = calloc(count, sizeof(struct pool_string *));

	if (!slots)
		return false;
	for (size_t i = 0; pool->slots && i <= pool->mask; i++) {
		struct pool_string *s = pool->slots[i];
		size_t at;

		if (!s)
			continue;
		for (at = s->hash & (count - 1); slots[at]; at = (at + 1) & (count - 1))
			;
		slots[at] = s;
	}
	if (!pool->slots)
		pool->salt = hash_salt();
	free(pool->slots);
	pool->slots = slots;
	pool->mask = count - 1;
	return true;
}

const char *strpool_get(struct strpool *pool, const char *bytes, size_t len)
{
	struct pool_string *s;
	uint32_t hash;
	size_t at;

	if (len >= UINT32_MAX ||
	    ((pool->count + 1) * 4 > (pool->slots ? pool->mask + 1 : 0) * 3 && !strpool_grow(pool)))
		return NULL;
	hash = hash_bytes(bytes, len, pool->salt);
	for (at = hash & pool->mask; (s = pool->slots[at]); at = (at + 1) & pool->mask) {
		if (s->hash == hash && s->len == len && !memcmp(s->bytes, bytes, len)) {
			s->refs++;
			return s->bytes;
		}
	}
	s = malloc(sizeof(*s) + len + 1);
	if (!s)
		return NULL;
	*s = (struct pool_string){ .refs = 1, .len = len, .hash = hash };
	if (len)
		memcpy(s->bytes, bytes, len);
	s->bytes[len] = 0;
	pool->slots[at] = s;
	pool->count++;
	return s->bytes;
}

const char *strpool_ref(const char *string)
{
	if (string)
		pool_string_of(string)->refs++;
	return string;
}

uint32_t strpool_len(const char *string)
{
	return pool_string_of(string)->len;
}

/* Takes a slot out and moves later members of its chain up, so that no search breaks off. */
static void strpool_remove(struct strpool *pool, size_t at)
{
	size_t next = at;

	for (;;) {
		size_t home;

		next = (next + 1) & pool->mask;
		if (!pool->slots[next])
			break;
		home = pool->slots[next]->hash & pool->mask;
		if (((next - home) & pool->mask) < ((next - at) & pool->mask))
			continue;
		pool->slots[at] = pool->slots[next];
		at = next;
	}
	pool->slots[at] = NULL;
	pool->count--;
}

void strpool_put(struct strpool *pool, const char *string)
{
	struct pool_string *s;
	size_t at;

	if (!string)
		return;
	s = pool_string_of(string);
	if (--s->refs)
		return;
	for (at = s->hash & pool->mask; pool->slots[at] != s; at = (at + 1) & pool->mask)
		;
	strpool_remove(pool, at);
	free(s);
}

void strpool_release(struct strpool *pool)
{
	for (size_t i = 0; pool->slots && i <= pool->mask; i++)
		free(pool->slots[i]);
	free(pool->slots);
	*pool = (struct strpool){ 0 };
}

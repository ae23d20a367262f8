/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "intern.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

static size_t interner_slot(const struct interner *in, uint32_t hash, const char *bytes,
			    size_t len)
{
	size_t i = hash & in->mask;

	for (; in->slots[i]; i = (i + 1) & in->mask) {
		const struct interned *s = &in->strings.data[in->slots[i] - 1];

		if (s->hash == hash && s->len == len && !memcmp(s->bytes, bytes, len))
			break;
	}
	return i;
}

static bool interner_grow(struct interner *in)
{
	size_t count = in->slots ? (in->mask + 1) * 2 : 64;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	if (!in->slots)
		in->salt = hash_salt();
	free(in->slots);
	in->slots = slots;
	in->mask = count - 1;
	for (size_t k = 0; k < in->strings.len; k++) {
		size_t i = in->strings.data[k].hash & in->mask;

		while (slots[i])
			i = (i + 1) & in->mask;
		slots[i] = k + 1;
	}
	return true;
}

uint32_t intern(struct interner *in, const char *bytes, size_t len)
{
	uint32_t hash;
	char *copy;
	size_t i;

	if (len >= UINT32_MAX || in->strings.len >= UINT32_MAX - 1)
		return UINT32_MAX;
	if ((in->strings.len + 1) * 4 > (in->slots ? in->mask + 1 : 0) * 3 && !interner_grow(in))
		return UINT32_MAX;
	hash = hash_bytes(bytes, len, in->salt);
	i = interner_slot(in, hash, bytes, len);
	if (in->slots[i])
		return in->slots[i] - 1;
	copy = arena_strndup(&in->arena, bytes, len);
	if (!copy ||
	    !vec_push(&in->strings,
		      (struct interned){ .bytes = copy, .len = len, .hash = hash }))
		return UINT32_MAX;
	in->slots[i] = in->strings.len;
	return in->strings.len - 1;
}

const char *intern_string(struct interner *in, const char *bytes, size_t len)
{
	uint32_t id = intern(in, bytes, len);

	return id == UINT32_MAX ? NULL : in->strings.data[id].bytes;
}

void interner_release(struct interner *in)
{
	arena_release(&in->arena);
	vec_free(&in->strings);
	free(in->slots);
	*in = (struct interner){ 0 };
}

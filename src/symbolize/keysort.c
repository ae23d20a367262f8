/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "keysort.h"

#include <string.h>

enum { BUCKETS = 256 };

static void sort_byte(const struct sort_key *from, struct sort_key *to, size_t count,
		      unsigned int shift)
{
	size_t places[BUCKETS] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		places[from[i].key >> shift & 0xff]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		size_t n = places[i];

		places[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].key >> shift & 0xff]++] = from[i];
}

struct sort_key *sort_keys(struct sort_key *keys, struct sort_key *scratch, size_t count)
{
	uint64_t differing = 0;

	for (size_t i = 1; i < count; i++)
		differing |= keys[i].key ^ keys[0].key;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		struct sort_key *sorted = scratch;

		if (!(differing >> shift & 0xff))
			continue;
		sort_byte(keys, sorted, count, shift);
		scratch = keys;
		keys = sorted;
	}
	return keys;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_KEYSORT_H
#define SPULSE_SYMBOLIZE_KEYSORT_H

#include <stddef.h>
#include <stdint.h>

/* An address and what it belongs to. */
struct sort_key {
	uint64_t key;
	uint32_t index;
};

/*
 * Sorts by key and keeps the order of equal ones, byte by byte and only where keys differ: the
 * addresses of a program do in few bytes. `scratch` is as large as `keys`; the result is in the
 * one that is returned.
 */
struct sort_key *sort_keys(struct sort_key *keys, struct sort_key *scratch, size_t count);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdint.h>

/* A small generator with the same numbers on every machine: `struct random rng = { .state = 1 };`. */
struct random {
	uint64_t state;
};

static inline uint64_t random_u64(struct random *rng)
{
	uint64_t x = rng->state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t random_below(struct random *rng, uint64_t limit)
{
	return random_u64(rng) % limit;
}

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_HASH_H
#define SPULSE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	return x;
}

/* Mixes a second word in. */
static inline uint64_t hash_two(uint64_t a, uint64_t b)
{
	return hash_u64(a * 0xc2b2ae3d27d4eb4fu + hash_u64(b));
}

/*
 * A number of this process that no file knows, for the hash of what files name: else one could
 * name keys that all have the same place.
 */
uint64_t hash_salt(void);

/*
 * Hashes of what someone else chose. The salt is a factor: only mixed in by XOR it would leave
 * keys together whose plain hashes meet. All bits of the result depend on all bits of the key.
 */
static inline uint64_t hash_pair_salted(uint64_t a, uint64_t b, uint64_t salt)
{
	uint64_t other = (salt << 32 | salt >> 32) ^ 0x9e3779b97f4a7c15u;
	unsigned __int128 product = (unsigned __int128)(a ^ salt) * (b ^ other);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_salted(uint64_t x, uint64_t salt)
{
	return hash_pair_salted(x, 0, salt);
}

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t salt);

/*
 * A map from 64-bit keys to 64-bit values; any key and value is allowed, from files too. Open
 * addressing, at most 3/4 full. `struct u64map m = {0};` is empty. Pointers to values live until
 * the next insert or remove.
 */
struct u64map {
	struct u64map_slot *slots;
	size_t count; /* keys present */
	size_t mask;  /* slots - 1, or 0 while there are none */
	uint64_t salt; /* of the hash */
};

struct u64map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

/* NULL when absent. */
uint64_t *u64map_get(const struct u64map *map, uint64_t key);
/* Finds or adds (value 0); NULL when memory ran out. *added may be NULL. */
uint64_t *u64map_add(struct u64map *map, uint64_t key, bool *added);
/* Sets; false when memory ran out. */
bool u64map_set(struct u64map *map, uint64_t key, uint64_t value);
/* Returns whether it was there. */
bool u64map_remove(struct u64map *map, uint64_t key);
/* Walk: start with *i = 0; NULL at the end. No insert or remove meanwhile. */
struct u64map_slot *u64map_next(const struct u64map *map, size_t *i);
void u64map_release(struct u64map *map);

#endif

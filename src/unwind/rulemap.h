/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_RULEMAP_H
#define SPULSE_UNWIND_RULEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Compiled rules of one image by file address: open addressing, at most half full. It forgets all
 * at a million entries (16 MiB), which no ordinary program reaches.
 */
struct rulemap {
	struct rulemap_slot *slots;
	size_t count, mask;
	uint64_t salt; /* of the hash */
};

struct rulemap_slot {
	uint64_t key; /* UINT64_MAX: empty */
	uint64_t rule;
};

bool rulemap_get(const struct rulemap *map, uint64_t key, uint64_t *rule);
/* Adds an absent key; one that does not fit for want of memory is only not remembered. */
void rulemap_add(struct rulemap *map, uint64_t key, uint64_t rule);
void rulemap_release(struct rulemap *map);

#endif

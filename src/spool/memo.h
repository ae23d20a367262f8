/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_MEMO_H
#define SPULSE_SPOOL_MEMO_H

#include "../base/base.h"

/*
 * Whole stacks that were written lately, by the words that they were given as: one probe gives
 * the node of a stack that comes again. Memory is fixed; new stacks take the place of old ones.
 */

struct memo_slot {
	uint64_t hash;
	uint32_t begin, count; /* its words; count 0 = free */
	uint32_t kind, node;
	uint32_t era; /* of the words */
	uint32_t epoch; /* it holds in this one only, or MEMO_ALWAYS */
};

struct memo {
	struct memo_slot *slots;
	uint32_t *words;
	size_t used, most; /* words */
	uint32_t era;
};

/* One that is looked for. */
struct memo_key {
	const uint32_t *words;
	size_t count;
	uint32_t kind; /* words of different kinds are never equal */
	uint64_t hash;
};

#define MEMO_ALWAYS UINT32_MAX

bool memo_init(struct memo *memo);
/* Keeps no more than this many words from now on; there were none yet. */
void memo_limit(struct memo *memo, size_t words);
void memo_release(struct memo *memo);
struct memo_key memo_key(const uint32_t *words, size_t count, uint32_t kind);
/* Its node, or UINT32_MAX. */
uint32_t memo_find(const struct memo *memo, const struct memo_key *key, uint32_t epoch);
void memo_add(struct memo *memo, const struct memo_key *key, uint32_t node, uint32_t epoch);

#endif

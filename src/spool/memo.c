/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "memo.h"

enum {
	BUCKETS = 16384,
	WAYS = 2,
	WORDS = 1 << 20,
	LANES = 4,
};

bool memo_init(struct memo *memo)
{
	memo->slots = calloc(BUCKETS * WAYS, sizeof(*memo->slots));
	/* Pages that no stack needs are never touched. */
	memo->words = malloc(WORDS * sizeof(*memo->words));
	memo->most = WORDS;
	return memo->slots && memo->words;
}

void memo_limit(struct memo *memo, size_t words)
{
	memo->most = MIN(words, (size_t)WORDS);
}

void memo_release(struct memo *memo)
{
	free(memo->slots);
	free(memo->words);
}

struct memo_key memo_key(const uint32_t *words, size_t count, uint32_t kind)
{
	static const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t lane[LANES] = { kind, 1, 2, 3 };
	size_t i = 0;

	/* Independent lanes hide each other's latency. */
	for (; count - i >= 2 * LANES; i += 2 * LANES)
#pragma GCC unroll 4
		for (int k = 0; k < LANES; k++) {
			lane[k] = (lane[k] ^ load_u64(words + i + 2 * k)) * factor;
			lane[k] ^= lane[k] >> 32;
		}
	for (; i < count; i++)
		lane[i % LANES] = hash_two(lane[i % LANES], words[i]);
	return (struct memo_key){
		words, count, kind,
		hash_two(hash_two(lane[0], lane[1]), hash_two(lane[2], lane[3]) + count),
	};
}

static struct memo_slot *bucket_of(const struct memo *memo, const struct memo_key *key)
{
	return &memo->slots[key->hash % BUCKETS * WAYS];
}

static bool holds(const struct memo *memo, const struct memo_slot *slot,
		  const struct memo_key *key, uint32_t epoch)
{
	return slot->hash == key->hash && slot->count == key->count && slot->kind == key->kind &&
	       slot->era == memo->era && (slot->epoch == epoch || slot->epoch == MEMO_ALWAYS) &&
	       !memcmp(memo->words + slot->begin, key->words, key->count * sizeof(*key->words));
}

uint32_t memo_find(const struct memo *memo, const struct memo_key *key, uint32_t epoch)
{
	const struct memo_slot *bucket = bucket_of(memo, key);

	for (int i = 0; i < WAYS; i++)
		if (holds(memo, &bucket[i], key, epoch))
			return bucket[i].node;
	return UINT32_MAX;
}

void memo_add(struct memo *memo, const struct memo_key *key, uint32_t node, uint32_t epoch)
{
	struct memo_slot *bucket = bucket_of(memo, key);

	if (key->count > memo->most - memo->used) {
		/* All are forgotten; those that come again are soon back. */
		memo->era++;
		memo->used = 0;
	}
	if (key->count > memo->most)
		return;
	memcpy(memo->words + memo->used, key->words, key->count * sizeof(*key->words));
	bucket[1] = bucket[0];
	bucket[0] = (struct memo_slot){ key->hash, memo->used, key->count, key->kind,
					node, memo->era, epoch };
	memo->used += key->count;
}

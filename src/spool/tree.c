/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "tree.h"

enum { NODES_PER_START = 64, FIRST_FORKS = 1024 };

void tree_init(struct tree *tree)
{
	*tree = (struct tree){0};
}

void tree_release(struct tree *tree)
{
	vec_free(&tree->frames);
	vec_free(&tree->starts);
	vec_free(&tree->runs);
	free(tree->forks);
}

static size_t fork_slot(const struct tree *tree, uint32_t prefix, uint32_t frame)
{
	uint64_t key = (uint64_t)prefix << 32 | frame;
	size_t i = hash_salted(key, tree->salt) & tree->forks_mask;

	while (tree->forks[i]) {
		const struct tree_run *run = &tree->runs.data[tree->forks[i] - 1];

		if (run->prefix == prefix && run->frame == frame)
			break;
		i = (i + 1) & tree->forks_mask;
	}
	return i;
}

/* Room for one more run at no more than half full. */
static bool forks_reserve(struct tree *tree)
{
	size_t need = (tree->runs.len + 1) * 2, size = FIRST_FORKS;
	uint32_t *forks;

	if (tree->forks && need <= tree->forks_mask + 1)
		return true;
	while (size < need)
		size *= 2;
	forks = calloc(size, sizeof(*forks));
	if (!forks)
		return false;
	if (!tree->forks)
		tree->salt = hash_salt();
	free(tree->forks);
	tree->forks = forks;
	tree->forks_mask = size - 1;
	for (size_t i = 0; i < tree->runs.len; i++) {
		const struct tree_run *run = &tree->runs.data[i];

		forks[fork_slot(tree, run->prefix, run->frame)] = (uint32_t)i + 1;
	}
	return true;
}

/* Blocks up to a node; those that begin no run yet count the runs so far. */
static bool starts_reserve(struct tree *tree, size_t nodes)
{
	size_t need = (nodes + NODES_PER_START - 1) / NODES_PER_START;

	if (need > tree->starts.len && !vec_reserve(&tree->starts, need - tree->starts.len))
		return false;
	return true;
}

bool tree_reserve(struct tree *tree, size_t count)
{
	return vec_reserve(&tree->frames, count) && vec_reserve(&tree->runs, 1) &&
	       starts_reserve(tree, tree->frames.len + count) && forks_reserve(tree);
}

static bool starts_run(const struct tree *tree, uint32_t node)
{
	size_t block = node / NODES_PER_START;

	return block < tree->starts.len &&
	       (tree->starts.data[block].bits >> node % NODES_PER_START & 1);
}

uint32_t tree_find(const struct tree *tree, uint32_t prefix, uint32_t frame)
{
	uint32_t next = prefix + 1, run;

	if (prefix != NODE_NONE && next < tree->frames.len && tree->frames.data[next] == frame &&
	    !starts_run(tree, next))
		return next;
	if (!tree->forks)
		return NODE_NONE;
	run = tree->forks[fork_slot(tree, prefix, frame)];
	return run ? tree->runs.data[run - 1].first : NODE_NONE;
}

uint32_t tree_add(struct tree *tree, uint32_t prefix, uint32_t frame)
{
	uint32_t id = (uint32_t)tree->frames.len, run = (uint32_t)tree->runs.len;
	size_t block = id / NODES_PER_START;

	if (prefix != NODE_NONE && prefix + 1 == id)
		return tree_extend(tree, frame);
	tree->frames.len++;
	/* Blocks without a beginning were passed over. */
	while (tree->starts.len <= block)
		vec_push(&tree->starts, (struct tree_starts){.before = run});
	tree->starts.data[block].bits |= UINT64_C(1) << id % NODES_PER_START;
	tree->frames.data[id] = frame;
	tree->forks[fork_slot(tree, prefix, frame)] = run + 1;
	vec_push(&tree->runs, (struct tree_run){id, frame, prefix});
	return id;
}

uint32_t tree_prefix(const struct tree *tree, uint32_t node)
{
	const struct tree_starts *starts;
	uint64_t below;

	if (!starts_run(tree, node))
		return node - 1;
	starts = &tree->starts.data[node / NODES_PER_START];
	below = starts->bits & ((UINT64_C(1) << node % NODES_PER_START) - 1);
	return tree->runs.data[starts->before + (unsigned int)__builtin_popcountll(below)].prefix;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_SOURCE_H
#define SPULSE_SPOOL_SOURCE_H

#include "codec.h"
#include "pidmap.h"
#include "spool.h"

#include <stdatomic.h>

/* What a spool defines, whoever reads it. Everything is numbered from 0 in file order. */

struct spulse_module {
	uint64_t start, end, file_offset;
	uint64_t inode, inode_generation;
	uint32_t device_major, device_minor;
	uint32_t id;
	pid_t pid; /* -1 for a kernel module */
	uint32_t retired_at; /* frames that were defined by then, or NEVER_RETIRED */
	uint32_t older; /* the process's previous module that may still be active */
	uint32_t symbol_count;
	bool is_kernel, is_jit, is_annotation;
	const char *path;
	size_t path_len;
	struct spulse_jit_symbol *symbols; /* by start */
};

/* From frame `first_frame` on, `modules` modules were defined. */
struct frame_epoch {
	uint32_t first_frame, modules;
};

enum { DEPTH_IN_DEEP = UINT16_MAX };

/* A node with more above it than 16 bits count: hardly any recording has one. */
struct deep_node {
	uint32_t id, depth;
};

/* Modules with a range, for binding addresses, in levels that get shorter: see bind.c. */
struct bind_level;
struct bind_index {
	VEC(struct bind_level) levels;
	size_t seen; /* modules looked at so far */
};

struct bind_cache_entry {
	_Atomic uint64_t check, value;
};

struct annotation_text {
	char *value;
	size_t cap;
};

struct spulse_source {
	char *path;
	uint64_t number;
	struct header header;
	bool recovered;
	bool has_first_sample;
	uint64_t first_sample_ns;
	struct spool_attachment *attachment;
	struct arena arena;
	struct interner paths;
	VEC(struct spulse_module *) modules;
	VEC(uint32_t) plain; /* ids without annotations, once there is an annotation */
	VEC(struct spulse_frame) frames;
	VEC(struct frame_epoch) epochs;
	VEC(struct spulse_stack_node) nodes;
	VEC(uint16_t) depths; /* of nodes, or DEPTH_IN_DEEP */
	VEC(struct deep_node) deep; /* by id */
	VEC(struct spulse_thread) threads;
	VEC(struct spulse_python_runtime) pythons;
	VEC(struct spulse_annotation) annotations;
	VEC(struct annotation_text) annotation_texts;
	struct pidmap processes; /* value: newest module that may be active, or NO_MODULE */
	VEC(pid_t) sorted_processes; /* only its room is used */
	atomic_size_t sorted; /* how many are there */
	struct bind_index bind;
	struct bind_cache_entry *bind_cache;
};

int source_init(struct spulse_source *source, const char *path, struct spulse_error **err);
void source_release(struct spulse_source *source);
/* Brings the index up to date and makes room for what is derived later; false: no memory. */
bool source_settle(struct spulse_source *source);
/*
 * Sorted when asked for, by any thread: a tail settles once per batch, and a batch may be one
 * record.
 */
const pid_t *source_sorted_processes(const struct spulse_source *source, size_t *count_out);

/* Additions by the decoder, which checked everything; false when memory ran out. */
bool source_add_module(struct spulse_source *source, const struct spulse_module *module);
bool source_add_frame(struct spulse_source *source, const struct spulse_frame *frame);
/* The frame at `value` of a module; false when the module has no such address. */
bool source_pin(const struct spulse_module *module, uint64_t value, struct spulse_frame *frame);
bool source_add_node(struct spulse_source *source, uint32_t prefix, uint32_t frame);
bool source_reserve_nodes(struct spulse_source *source, size_t count);
uint32_t source_deep_depth(const struct spulse_source *source, uint32_t node);

/* Frames of the stack that ends with the node. */
static inline uint32_t source_depth(const struct spulse_source *source, uint32_t node)
{
	uint32_t depth = source->depths.data[node];

	return likely(depth != DEPTH_IN_DEEP) ? depth : source_deep_depth(source, node);
}

/* As source_add_node() where there is room. */
static inline void source_push_node(struct spulse_source *source, uint32_t prefix, uint32_t frame)
{
	uint32_t depth = prefix == NODE_ROOT ? 1 : source_depth(source, prefix) + 1;

	if (unlikely(depth >= DEPTH_IN_DEEP)) {
		source->deep.data[source->deep.len++] =
			(struct deep_node){ source->nodes.len, depth };
		depth = DEPTH_IN_DEEP;
	}
	source->depths.data[source->depths.len++] = depth;
	source->nodes.data[source->nodes.len++] = (struct spulse_stack_node){ prefix, frame };
}
bool source_add_thread(struct spulse_source *source, struct spulse_thread thread);
bool source_add_python(struct spulse_source *source, const struct spulse_python_runtime *record);
bool source_retire_process(struct spulse_source *source, pid_t pid);
void source_retire_module(struct spulse_source *source, uint32_t id);

/* bind.c */
bool bind_index_update(struct spulse_source *source);
void bind_index_release(struct bind_index *index);
/* The unpinned frame's module, or NULL. */
const struct spulse_module *bind_find(const struct spulse_source *source, pid_t pid,
				      uint32_t frame_id);

/* annotation.c */
bool annotation_shaped(uint64_t start, uint64_t end, uint64_t file_offset, uint64_t inode,
		       const void *path, size_t path_len);
bool annotation_add(struct spulse_source *source, const struct spulse_module *module);
void annotations_release(struct spulse_source *source);

#endif

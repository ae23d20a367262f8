/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_RESOLVED_H
#define SPULSE_SYMBOLIZE_RESOLVED_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/base.h"
#include "strpool.h"
#include "symbolize.h"

/*
 * Resolved frames live in slabs and have a 32-bit index; a raw frame gives a run of consecutive
 * ones (its inlined calls). Freed runs are kept for runs of the same length. Frames that a caller
 * holds keep the store alive after its symbolizer.
 */
enum { RUN_MAX = 256, SLAB_FRAMES = 1024 };

struct spulse_resolved_frame {
	struct frame_store *store;
	const char *name; /* NULL: address only */
	const char *module, *file, *suffix; /* file may be NULL */
	uint64_t pc, offset, serial;
	int32_t line, column; /* -1 unknown */
	union {
		struct {
			int32_t function_line, function_column; /* -1 unknown */
		};
		uint64_t function_start; /* of a frame without a symbol; UINT64_MAX unknown */
	};
	uint32_t refs;	/* the cache's own included; 0 = free */
	uint32_t run;	/* index of the run's first frame */
	uint16_t inline_depth;
	uint16_t run_length;
	uint8_t kind, origin, flags;
	bool should_ignore;
};

static inline bool frame_is_nameless(const struct spulse_resolved_frame *frame)
{
	return frame->origin == SPULSE_ORIGIN_ADDRESS_ONLY;
}

struct frame_store {
	struct strpool strings;
	VEC(struct spulse_resolved_frame *) slabs;
	VEC(uint32_t) free_runs[RUN_MAX + 1];
	uint32_t used_in_slab; /* of the last one */
	uint64_t next_serial;
	uint64_t live_frames;
	uint64_t held_frames; /* by callers */
	bool orphaned; /* the symbolizer is gone */
};

struct frame_store *frame_store_new(void);
/* Called by the symbolizer; the memory goes with the last held frame. */
void frame_store_drop(struct frame_store *store);

static inline struct spulse_resolved_frame *frame_at(const struct frame_store *store,
						     uint32_t index)
{
	return &store->slabs.data[index / SLAB_FRAMES][index % SLAB_FRAMES];
}

/* A run of zeroed frames with fresh serials, each with one reference; false without memory. */
bool frame_run_new(struct frame_store *store, unsigned int length, uint32_t *first_out);
/* Gives the cache's reference to each frame of a run back. */
void frame_run_put(struct frame_store *store, uint32_t first);

struct spulse_resolved {
	const struct frame_store *store;
	const uint32_t *frames;
	uint32_t count;
	bool provisional;
	uint64_t owner;
};

/* Each is false when memory ran out. */
bool frame_set_name(struct spulse_resolved_frame *frame, const char *name, size_t len);
bool frame_set_module(struct spulse_resolved_frame *frame, const char *module, size_t len);

#endif

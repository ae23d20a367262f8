/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_WRITER_H
#define SPULSE_SPOOL_WRITER_H

#include "codec.h"
#include "memo.h"
#include "spool.h"
#include "tree.h"

/* Bytes on their way to the output. The first error is kept; after it nothing is written. */
struct sink {
	struct spulse_output output;
	void *data;
	uint8_t *buf;
	size_t len;
	uint64_t written; /* handed to the output */
	struct spulse_error *failed;
};

enum { SINK_SIZE = 256 << 10 };

int sink_check_output(const struct spulse_output *output, struct spulse_error **err);
bool sink_init(struct sink *sink, const struct spulse_output *output, void *data);
/* Room for one small record; NULL after an error, which *err then is. */
uint8_t *sink_room(struct sink *sink, struct spulse_error **err);
static inline void sink_used(struct sink *sink, const uint8_t *end)
{
	sink->len = end - sink->buf;
}
/* Bytes of any number. */
int sink_put(struct sink *sink, const void *bytes, size_t len, struct spulse_error **err);
int sink_put_module(struct sink *sink, uint8_t tag, uint32_t id,
		    const struct spulse_module_fields *fields, struct spulse_error **err);
int sink_flush(struct sink *sink, struct spulse_error **err);
/* Stops the sink with an error of another cause. */
int sink_fail(struct sink *sink, struct spulse_error *error, struct spulse_error **err);
void sink_release(struct sink *sink);

/*
 * Distinct frames, numbered for the caller; each with the id that it has in the file at the
 * moment. Unpinned frames lose theirs when the modules change, so that the next use writes a
 * record that captures the new state.
 */
struct frame_slot {
	uint64_t value;
	uint64_t kind; /* as in the file */
	uint32_t id; /* in the file, or FRAME_UNWRITTEN */
};

#define FRAME_UNWRITTEN UINT32_MAX

struct frame_table {
	VEC(struct frame_slot) slots;
	uint32_t *index; /* slot + 1, 0 = free */
	size_t mask;
	uint64_t salt; /* of the hash */
	VEC(uint32_t) live_user, live_kernel; /* unpinned ones that have an id */
	uint32_t next_id;
	uint32_t epoch; /* how often unpinned ones lost their ids */
};

struct frame_key {
	uint64_t kind, value;
};

/* Number of a frame; UINT32_MAX when memory ran out. */
uint32_t frame_table_intern(struct frame_table *table, struct frame_key key);
/* Numbers of many frames, whose places in memory are waited for together. */
bool frame_table_intern_all(struct frame_table *table, const struct frame_key *keys, size_t count,
			    uint32_t *numbers);
/* Gives a frame its next id. Room in the live lists was reserved. */
void frame_table_written(struct frame_table *table, struct frame_slot *slot);
bool frame_table_reserve(struct frame_table *table, size_t count);
void frame_table_forget(struct frame_table *table, bool kernel_too);
void frame_table_release(struct frame_table *table);

/* What the writer knows of a module it wrote. */
struct written_module {
	uint64_t file_offset, size;
	bool is_kernel, is_retired;
};

struct thread_state {
	pid_t pid, tid;
	uint32_t id; /* in the file */
	uint32_t depth, cap;
	uint32_t leaf; /* node of the previous stack */
	bool leaf_only; /* the path below was not followed to the leaf yet */
	uint32_t *frames, *nodes; /* of the previous stack, outermost first */
};

struct spulse_spool_writer {
	struct sink sink;
	uint32_t format;
	uint64_t last_ns;
	struct frame_table frames;
	struct tree tree;
	struct memo memo;
	VEC(struct written_module) modules;
	struct u64map threads; /* pid and tid: index in thread_states */
	VEC(struct thread_state) thread_states;
	uint32_t last_thread;
	uint32_t threads_written;
	VEC(uint32_t) ids; /* scratch: the sample's frames */
	VEC(uint32_t) numbers; /* scratch: frames of a public call */
	VEC(uint64_t) packed; /* scratch: those frames as words of a key */
	VEC(struct frame_key) keys; /* scratch: the same, as they are in the file */
};

/* Kinds of keys in the memo: frames as numbers, or as packed words. */
enum { KEY_NUMBERS, KEY_PACKED };

/*
 * writer_stack.c. A stack that was written before, if it is known by that key: 1, or 0 when it
 * is not and has to be written in full.
 */
int writer_put_known(struct spulse_spool_writer *writer, const struct spulse_sample *sample,
		     const struct memo_key *key, struct spulse_error **err);
/* Writes a sample whose frames were interned. With a key the stack is known by it from now on. */
int writer_put_sample(struct spulse_spool_writer *writer, const struct spulse_sample *sample,
		      const uint32_t *frames, size_t count, const struct memo_key *key,
		      struct spulse_error **err);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_SPOOL_H
#define STACKPULSE_SPOOL_H

#include <stackpulse/common.h>

/**
 * @file
 * The spool: what a recorder writes and what Snapshot (random access), Replay (sequential, low
 * memory) and Tail (a growing file) read. A handle is used by one thread at a time, except that
 * calls taking a const handle may run in parallel. Times are nanoseconds unless a name says
 * otherwise; a sample's timestamp is CLOCK_MONOTONIC.
 */

struct spulse_module;
struct spulse_source;
struct spulse_snapshot;
struct spulse_replay;
struct spulse_tail;
struct spulse_batch;
struct spulse_stack;
struct spulse_stacks;
struct spulse_samples;
struct spulse_records;
struct spulse_spool_writer;
struct spulse_recording_summary;

/** Version of the file format. */
enum spulse_spool_format {
	/** The default: SPULSE4. */
	SPULSE_SPOOL_FORMAT_DEFAULT = 0,
	/** SPULSE3, as stackpulse 0.10 reads it. */
	SPULSE_SPOOL_FORMAT_3 = 3,
	/** SPULSE4, as stackpulse 0.11 and later read it. */
	SPULSE_SPOOL_FORMAT_4 = 4,
};

/** Module id of a frame that has none. */
#define SPULSE_NO_MODULE UINT32_MAX

/** What a frame's address belongs to. */
enum spulse_frame_mode {
	/** User space. */
	SPULSE_FRAME_USER = 0,
	/** The kernel. */
	SPULSE_FRAME_KERNEL = 1,
	/** No address: outer frames of this stack are missing from here on. */
	SPULSE_FRAME_TRUNCATED = 2,
};

/** One recorded instruction address. Frozen: 24 bytes. */
struct spulse_frame {
	/** Address in file-offset space of the pinned module; equal to abs_ip without one. */
	uint64_t file_relative_ip;
	/** Address in the process. Return addresses are stored minus one. */
	uint64_t abs_ip;
	/** Id of the pinned module, or SPULSE_NO_MODULE. */
	uint32_t module_id;
	/** enum spulse_frame_mode. */
	uint32_t mode;
};

/** One timestamped observation of one thread. Frozen: 16 bytes. */
struct spulse_sample {
	/** CLOCK_MONOTONIC nanoseconds. */
	uint64_t timestamp_ns;
	/** Process. */
	pid_t pid;
	/** Thread. */
	pid_t tid;
};

/** A thread that has samples. Frozen: 8 bytes. */
struct spulse_thread {
	/** Process. */
	pid_t pid;
	/** Thread. */
	pid_t tid;
};

/** A process became, or stopped being, a Python runtime that writes a perf map. Frozen. */
struct spulse_python_runtime {
	/** CLOCK_MONOTONIC nanoseconds; 0 for one that was there at the attach. */
	uint64_t timestamp_ns;
	/** Process. */
	pid_t pid;
	/** 1: became one; 0: no longer is one. */
	uint32_t is_python;
};

/** A thread name, command line, build ID or the like: see spulse_source_annotations(). */
struct spulse_annotation {
	/** The process it is about; -1: the recording. */
	pid_t pid;
	/** Id of the module record that carries it. */
	uint32_t id;
	/** Key, for example "comm" or "thread-name/123". NUL-terminated. */
	const char *key;
	/** Decoded bytes, NUL-terminated for convenience. */
	const char *value;
	/** Length of value. */
	size_t value_len;
};

/** A node of the stack tree, as the file has it. */
struct spulse_stack_node {
	/** Node of the caller; UINT32_MAX for an outermost frame. */
	uint32_t prefix;
	/** Index of the frame. */
	uint32_t frame;
};

/** One symbol of a recorded JIT module. */
struct spulse_jit_symbol {
	/** First address. */
	uint64_t start;
	/** Address after the last. */
	uint64_t end;
	/** Name, NUL-terminated. */
	const char *name;
	/** Length of name. */
	size_t name_len;
};

/** A point of wall-clock time. */
struct spulse_wall_time {
	/** Seconds since the Unix epoch, rounded down. */
	int64_t seconds;
	/** Nanoseconds after that second. */
	uint32_t nanoseconds;
};

/** Fields of a module record, for spulse_module_new() and spulse_spool_writer_module(). */
struct spulse_module_fields {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Process; ignored for kernel modules. */
	pid_t pid;
	/** 1 for a kernel module. */
	uint32_t is_kernel;
	/** First address. */
	uint64_t start;
	/** Address after the last. */
	uint64_t end;
	/** File offset of start. */
	uint64_t file_offset;
	/** Inode, 0 = unknown. */
	uint64_t inode;
	/** Inode generation, 0 = unknown. */
	uint64_t inode_generation;
	/** Device. */
	uint32_t device_major;
	/** Device. */
	uint32_t device_minor;
	/** Path bytes; need not be NUL-terminated. */
	const char *path;
	/** Length of path. */
	size_t path_len;
};

/** Where spool bytes go. */
struct spulse_output {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Writes up to @p len bytes; returns how many (at least 1), or -errno. */
	ssize_t (*write)(void *data, const void *bytes, size_t len);
	/** Makes what was written visible to readers; 0 or -errno. NULL: nothing to do. */
	int (*flush)(void *data);
	/** Called once, when the owner is freed; 0 or -errno. NULL: nothing to do. */
	int (*close)(void *data);
};

/** Value that is equal for equal stacks of one process within one reader. Frozen: 16 bytes. */
struct spulse_stack_key {
	/** Number of the reader. */
	uint64_t source;
	/** Process. */
	pid_t pid;
	/** Stack node. */
	uint32_t node;
};

/** Walks the frames of one stack; made by spulse_stack_frames(). Plain value, nothing to free. */
struct spulse_frame_iter {
	/** Private. */
	const struct spulse_source *source;
	/** Private. */
	const struct spulse_stack_node *nodes;
	/** Private. */
	const struct spulse_frame *frames;
	/** Private. */
	pid_t pid;
	/** Private. */
	uint32_t node;
};

/** A frame together with the module that it belonged to when it was recorded. */
struct spulse_frame_context {
	/** The frame; lives as long as the reader (a tail: until its next poll). */
	const struct spulse_frame *frame;
	/** Its module, or NULL. Lives as long as the reader. */
	const struct spulse_module *module;
	/** Address in the module's file-offset space; equal to frame->abs_ip without a module. */
	uint64_t file_relative_ip;
};

/** Kind of a record: the tag it has in the file. */
enum spulse_record_kind {
	/** A module; id is the module's. */
	SPULSE_RECORD_MODULE = 1,
	/** A frame; id is the frame's. */
	SPULSE_RECORD_FRAME = 2,
	/** A stack node; id is the node's. */
	SPULSE_RECORD_STACK_NODE = 3,
	/** A thread; id is its index among spulse_source_threads(). */
	SPULSE_RECORD_THREAD = 4,
	/** A sample; its stack is in spulse_record::stack. */
	SPULSE_RECORD_SAMPLE = 5,
	/** A Python runtime record; id is its index among spulse_source_python_runtimes(). */
	SPULSE_RECORD_PYTHON_RUNTIME = 6,
	/** All modules of spulse_record::pid retire. */
	SPULSE_RECORD_RETIRE_PROCESS = 7,
	/** Module id retires. */
	SPULSE_RECORD_RETIRE_MODULE = 8,
	/** A JIT module; id is the module's. */
	SPULSE_RECORD_JIT_MODULE = 9,
};

/** One record of a spool, in file order. Set size before the call. */
struct spulse_record {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Where the record begins in the file. */
	uint64_t offset;
	/** enum spulse_record_kind. */
	uint32_t kind;
	/** Meaning depends on kind. */
	uint32_t id;
	/** For SPULSE_RECORD_RETIRE_PROCESS. */
	pid_t pid;
	/** Zero. */
	uint32_t unused;
	/** For SPULSE_RECORD_SAMPLE: lives until the next call on the walk; else NULL. */
	const struct spulse_stack *stack;
};

/** What spulse_tail_wait() found. */
enum spulse_tail_state {
	/** The writer goes on. */
	SPULSE_TAIL_OPEN = 0,
	/** The recording is complete. */
	SPULSE_TAIL_FINISHED = 1,
};

/** Whether a tail gives back the space of what it consumed. */
enum spulse_reclamation {
	/** The spool is kept. */
	SPULSE_RECLAMATION_RETAINED = 0,
	/** Consumed pages are freed. */
	SPULSE_RECLAMATION_ENABLED = 1,
	/** The file system cannot. */
	SPULSE_RECLAMATION_UNSUPPORTED = 2,
};

/** Numbers of a tail. Set size before the call. */
struct spulse_tail_stats {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Bytes that the writer made visible. */
	uint64_t published_bytes;
	/** Bytes that were decoded. */
	uint64_t consumed_bytes;
	/** Bytes that were given back to the file system. */
	uint64_t reclaimed_bytes;
	/** Frames kept in memory. */
	uint64_t frames;
	/** Stack nodes kept in memory. */
	uint64_t stack_nodes;
	/** Modules kept in memory. */
	uint64_t modules;
	/** Whether consumed pages are freed. */
	enum spulse_reclamation reclamation;
	/** Zero. */
	uint32_t unused;
};

SPULSE_BEGIN_DECLS

/* ---- definitions -------------------------------------------------------------------------- */

/** Microseconds since the epoch of the profile's start; 0 when the file has no anchor. */
SPULSE_API uint64_t spulse_source_start_timestamp_us(const struct spulse_source *source);
/** Nominal sampling interval in microseconds, rounded down; 0 when absent or shorter. */
SPULSE_API uint64_t spulse_source_sample_interval_us(const struct spulse_source *source);
/**
 * Nominal sampling interval in nanoseconds; 0 when absent. UINT64_MAX stands for any longer one of
 * version 3: spulse_source_sample_interval_us() is exact then.
 */
SPULSE_API uint64_t spulse_source_interval_ns(const struct spulse_source *source);
/** Whether the file ended inside its last record, which was left out. */
SPULSE_API bool spulse_source_recovered_from_truncated_tail(const struct spulse_source *source);
/** Version of the file. */
SPULSE_API enum spulse_spool_format spulse_source_format(const struct spulse_source *source);
/** Path that the reader was opened with, or NULL. */
SPULSE_API const char *spulse_source_path(const struct spulse_source *source);
/** Wall time of the recording's start: 1, or 0 when the file does not say. */
SPULSE_API int spulse_source_started_at(const struct spulse_source *source,
					struct spulse_wall_time *wall_out);
/** The pair of clocks in a version 4 header: 1, or 0 when the file has none. */
SPULSE_API int spulse_source_clock_origin(const struct spulse_source *source,
					  uint64_t *monotonic_ns_out,
					  struct spulse_wall_time *wall_out);
/** The two header numbers as stored (version 4: its unused start slot and nanoseconds). */
SPULSE_API void spulse_source_raw_header(const struct spulse_source *source,
					 uint64_t *start_out, uint64_t *interval_out);
/** Wall time of @p sample: 1; 0 without an origin; INVALID_INPUT outside of 64-bit seconds. */
SPULSE_API int spulse_source_wall_time(const struct spulse_source *source,
				       const struct spulse_sample *sample,
				       struct spulse_wall_time *wall_out,
				       struct spulse_error **err);
/**
 * Microseconds since the epoch of @p sample: 1, or 0 without an anchor. Version 3: the anchor
 * plus the time since the first written sample, never below the anchor.
 */
SPULSE_API int spulse_source_timestamp_us(const struct spulse_source *source,
					  const struct spulse_sample *sample, uint64_t *us_out);

/** Number of modules, annotations left out. */
SPULSE_API size_t spulse_source_module_count(const struct spulse_source *source);
/** Module number @p index in file order, or NULL past the end. */
SPULSE_API const struct spulse_module *spulse_source_module(const struct spulse_source *source,
							    size_t index);
/** Module with record id @p id, annotations included, or NULL. */
SPULSE_API const struct spulse_module *
spulse_source_module_by_id(const struct spulse_source *source, uint32_t id);
/** Module records in file order, annotations included: @p count_out of them, by index = id. */
SPULSE_API size_t spulse_source_raw_module_count(const struct spulse_source *source);
/** All frames by id; lives until the reader is freed (a tail: until its next poll). */
SPULSE_API const struct spulse_frame *spulse_source_frames(const struct spulse_source *source,
							   size_t *count_out);
/** All stack nodes by id; lifetime as spulse_source_frames(). */
SPULSE_API const struct spulse_stack_node *
spulse_source_stack_nodes(const struct spulse_source *source, size_t *count_out);
/** All threads by id; lifetime as spulse_source_frames(). */
SPULSE_API const struct spulse_thread *spulse_source_threads(const struct spulse_source *source,
							     size_t *count_out);
/** All Python runtime records in file order; lifetime as spulse_source_frames(). */
SPULSE_API const struct spulse_python_runtime *
spulse_source_python_runtimes(const struct spulse_source *source, size_t *count_out);
/** All process ids that the file names, sorted; lifetime as spulse_source_frames(). */
SPULSE_API const pid_t *spulse_source_processes(const struct spulse_source *source,
						size_t *count_out);
/** Annotations in file order; lifetime as spulse_source_frames(). */
SPULSE_API const struct spulse_annotation *
spulse_source_annotations(const struct spulse_source *source, size_t *count_out);
/**
 * Walks the absolute addresses of kernel frames: set *position to 0, then call until it
 * returns false.
 */
SPULSE_API bool spulse_source_next_kernel_address(const struct spulse_source *source,
						  size_t *position, uint64_t *address_out);
/** Symbols of a recorded JIT module, or NULL. Live as long as the reader. */
SPULSE_API const struct spulse_jit_symbol *
spulse_source_jit_symbols(const struct spulse_source *source, uint32_t module_id,
			  size_t *count_out);
/**
 * Binds an address to the module that held it: the pinned one, else by the rules of the format
 * for process @p pid. Returns false when there is none.
 */
SPULSE_API bool spulse_source_bind(const struct spulse_source *source, pid_t pid,
				   uint32_t frame_id, struct spulse_frame_context *context_out);

/* ---- modules and frames ------------------------------------------------------------------- */

/**
 * Makes a module that is not in a file. The path is copied. INVALID_INPUT when start >= end, or for
 * a process id below 1.
 */
SPULSE_API int spulse_module_new(const struct spulse_module_fields *fields,
				 struct spulse_module **module_out, struct spulse_error **err);
/** Frees a module made by spulse_module_new(); NULL is allowed. */
SPULSE_API void spulse_module_free(struct spulse_module *module);
SPULSE_DEFINE_CLEANUP(module)
/** Record id; SPULSE_NO_MODULE for one that was made. */
SPULSE_API uint32_t spulse_module_id(const struct spulse_module *module);
/** Process; -1 for a kernel module. */
SPULSE_API pid_t spulse_module_pid(const struct spulse_module *module);
/** First address. */
SPULSE_API uint64_t spulse_module_start(const struct spulse_module *module);
/** Address after the last. */
SPULSE_API uint64_t spulse_module_end(const struct spulse_module *module);
/** File offset of the first address. */
SPULSE_API uint64_t spulse_module_file_offset(const struct spulse_module *module);
/** Inode, 0 = unknown. */
SPULSE_API uint64_t spulse_module_inode(const struct spulse_module *module);
/** Device. */
SPULSE_API uint32_t spulse_module_device_major(const struct spulse_module *module);
/** Device. */
SPULSE_API uint32_t spulse_module_device_minor(const struct spulse_module *module);
/** Inode generation, 0 = unknown. */
SPULSE_API uint64_t spulse_module_inode_generation(const struct spulse_module *module);
/** Path bytes, NUL-terminated (they may hold more NULs). Live as long as the module. */
SPULSE_API const char *spulse_module_path(const struct spulse_module *module);
/** Length of the path. */
SPULSE_API size_t spulse_module_path_len(const struct spulse_module *module);
/** Whether it is kernel code. */
SPULSE_API bool spulse_module_is_kernel(const struct spulse_module *module);

/** The frame that marks a cut stack. */
SPULSE_API struct spulse_frame spulse_frame_truncated_marker(void);
/** Whether @p frame is that marker. */
SPULSE_API bool spulse_frame_is_truncated_marker(const struct spulse_frame *frame);

/* ---- stacks ------------------------------------------------------------------------------- */

/** The sample that the stack belongs to. Lives as long as the stack. */
SPULSE_API const struct spulse_sample *spulse_stack_sample(const struct spulse_stack *stack);
/** Process. */
SPULSE_API pid_t spulse_stack_pid(const struct spulse_stack *stack);
/** Thread. */
SPULSE_API pid_t spulse_stack_tid(const struct spulse_stack *stack);
/** Time of the sample. */
SPULSE_API uint64_t spulse_stack_timestamp_ns(const struct spulse_stack *stack);
/** Equal for equal stacks of one process. */
SPULSE_API struct spulse_stack_key spulse_stack_key(const struct spulse_stack *stack);
/** Number of frames, a truncation marker included. */
SPULSE_API uint32_t spulse_stack_depth(const struct spulse_stack *stack);
/** The source that the stack was read from. */
SPULSE_API const struct spulse_source *spulse_stack_source(const struct spulse_stack *stack);
/** Starts a walk from the innermost frame to the outermost. */
SPULSE_API struct spulse_frame_iter spulse_stack_frames(const struct spulse_stack *stack);
/** The next frame, or NULL at the end. */
SPULSE_API const struct spulse_frame *spulse_frame_iter_next(struct spulse_frame_iter *iter);
/** The next frame with its module; false at the end. */
SPULSE_API bool spulse_frame_iter_next_context(struct spulse_frame_iter *iter,
					       struct spulse_frame_context *context_out);

/** Next stack: 1; 0 at the end. It lives until the next call on @p stacks. */
SPULSE_API int spulse_stacks_next(struct spulse_stacks *stacks,
				  const struct spulse_stack **stack_out,
				  struct spulse_error **err);
/**
 * All frames at once of the stack that was given last: their ids, the index into
 * spulse_source_frames(), innermost first. INVALID_INPUT before the first stack. They live until
 * the next call on @p stacks.
 */
SPULSE_API int spulse_stacks_frame_ids(struct spulse_stacks *stacks, const uint32_t **ids_out,
				       size_t *count_out, struct spulse_error **err);
/** How many are left. */
SPULSE_API uint64_t spulse_stacks_remaining(const struct spulse_stacks *stacks);
/** Frees the iterator; NULL is allowed. Free it before its reader. */
SPULSE_API void spulse_stacks_free(struct spulse_stacks *stacks);
SPULSE_DEFINE_CLEANUP(stacks)
/** Next sample: 1; 0 at the end. */
SPULSE_API int spulse_samples_next(struct spulse_samples *samples,
				   struct spulse_sample *sample_out, struct spulse_error **err);
/**
 * Next samples, as many as are decoded at once: 1, with at least one in @p block_out; 0 at the
 * end. They live until the next call on @p samples.
 */
SPULSE_API int spulse_samples_next_block(struct spulse_samples *samples,
					 const struct spulse_sample **block_out,
					 size_t *count_out, struct spulse_error **err);
/** How many are left. */
SPULSE_API uint64_t spulse_samples_remaining(const struct spulse_samples *samples);
/** Frees the iterator; NULL is allowed. Free it before its reader. */
SPULSE_API void spulse_samples_free(struct spulse_samples *samples);
SPULSE_DEFINE_CLEANUP(samples)

/* ---- Snapshot ----------------------------------------------------------------------------- */

/**
 * Reads and checks a whole spool into memory. IO or PERMISSION when the file cannot be read,
 * CORRUPT_SPOOL when its content breaks the format. A last record that is cut off is left out:
 * see spulse_source_recovered_from_truncated_tail().
 */
SPULSE_API int spulse_snapshot_open(const char *path, struct spulse_snapshot **snapshot_out,
				    struct spulse_error **err);
/** Frees the reader and all that was borrowed from it; NULL is allowed. */
SPULSE_API void spulse_snapshot_free(struct spulse_snapshot *snapshot);
SPULSE_DEFINE_CLEANUP(snapshot)
/** What the spool defines. Borrowed. */
SPULSE_API const struct spulse_source *
spulse_snapshot_source(const struct spulse_snapshot *snapshot);
/**
 * All samples in file order. Borrowed. The array is made at the first call; NULL, with a count of
 * 0, when memory runs out.
 */
SPULSE_API const struct spulse_sample *
spulse_snapshot_samples(const struct spulse_snapshot *snapshot, size_t *count_out);
/** Stack of sample @p index: 1; 0 past the end. Lives until the next call of this function. */
SPULSE_API int spulse_snapshot_stack(struct spulse_snapshot *snapshot, size_t index,
				     const struct spulse_stack **stack_out,
				     struct spulse_error **err);
/** Walks all stacks in file order. */
SPULSE_API int spulse_snapshot_stacks(const struct spulse_snapshot *snapshot,
				      struct spulse_stacks **stacks_out,
				      struct spulse_error **err);

/* ---- Replay ------------------------------------------------------------------------------- */

/**
 * Checks a whole spool and keeps its definitions; samples are decoded again as they are asked
 * for. Errors as spulse_snapshot_open(). A file that shrinks later gives an error at the next
 * read.
 */
SPULSE_API int spulse_replay_open(const char *path, struct spulse_replay **replay_out,
				  struct spulse_error **err);
/** Frees the reader; NULL is allowed. */
SPULSE_API void spulse_replay_free(struct spulse_replay *replay);
SPULSE_DEFINE_CLEANUP(replay)
/** What the spool defines. Borrowed. */
SPULSE_API const struct spulse_source *spulse_replay_source(const struct spulse_replay *replay);
/** Number of samples. */
SPULSE_API uint64_t spulse_replay_sample_count(const struct spulse_replay *replay);
/** Walks all stacks in file order; several walks may be open at once. */
SPULSE_API int spulse_replay_stacks(const struct spulse_replay *replay,
				    struct spulse_stacks **stacks_out,
				    struct spulse_error **err);
/** Walks all samples without their stacks. */
SPULSE_API int spulse_replay_samples(const struct spulse_replay *replay,
				     struct spulse_samples **samples_out,
				     struct spulse_error **err);

/** Walks all records in file order: for tools that copy or explain a spool. */
SPULSE_API int spulse_replay_records(const struct spulse_replay *replay,
				     struct spulse_records **records_out,
				     struct spulse_error **err);
/** Next record: 1; 0 at the end. Set record->size first. */
SPULSE_API int spulse_records_next(struct spulse_records *records, struct spulse_record *record,
				   struct spulse_error **err);
/** Frees the walk; NULL is allowed. Free it before its reader. */
SPULSE_API void spulse_records_free(struct spulse_records *records);
SPULSE_DEFINE_CLEANUP(records)

/* ---- Tail --------------------------------------------------------------------------------- */

/**
 * Opens a spool that still grows and decodes its first batch. Needs a complete header, else
 * CORRUPT_SPOOL.
 *
 * A later record may refer to any definition before it, those of ended processes too, so that a
 * tail keeps them all: 24 bytes for each distinct frame, 10 for each stack node and about 150 for
 * each module. Samples are not kept. A process that ends after 40 different stacks of 24 frames
 * leaves some 20 KB behind; spulse_tail_stats() tells the counts.
 */
SPULSE_API int spulse_tail_open(const char *path, struct spulse_tail **tail_out,
				struct spulse_error **err);
/** Frees the reader; NULL is allowed. A recorder's tail may be freed before or after it. */
SPULSE_API void spulse_tail_free(struct spulse_tail *tail);
SPULSE_DEFINE_CLEANUP(tail)
/** What was read so far. Borrowed. */
SPULSE_API const struct spulse_source *spulse_tail_source(const struct spulse_tail *tail);
/**
 * Decodes the next batch: at most 16,384 samples, ending after a record that retires modules.
 * The batch lives until the next poll. CORRUPT_SPOOL repeats at the next call.
 */
SPULSE_API int spulse_tail_poll(struct spulse_tail *tail, const struct spulse_batch **batch_out,
				struct spulse_error **err);
/**
 * Waits until a poll will deliver: 1. 0: timed out (state OPEN) or at the end (FINISHED). A
 * failed recording gives the recorder's own error once everything published was delivered.
 *
 * @param timeout_ns  -1 waits for ever, 0 only looks
 */
SPULSE_API int spulse_tail_wait(struct spulse_tail *tail, int64_t timeout_ns,
				enum spulse_tail_state *state_out, struct spulse_error **err);
/** An eventfd that becomes readable when there is something to poll; -1 for a foreign file. */
SPULSE_API int spulse_tail_fd(const struct spulse_tail *tail);
/** The finished recording's counters: 1; 0 while it is open or for a foreign file. */
SPULSE_API int spulse_tail_summary(const struct spulse_tail *tail,
				   struct spulse_recording_summary *summary_out);
/** Numbers; set stats->size first. */
SPULSE_API void spulse_tail_stats(const struct spulse_tail *tail,
				  struct spulse_tail_stats *stats);
/**
 * Frees the file space of what was consumed, in whole pages; the file can then no longer be
 * opened from its start. PERMISSION for a tail that is not a recorder's, UNSUPPORTED where the
 * file system cannot.
 */
SPULSE_API int spulse_tail_discard_consumed(struct spulse_tail *tail, struct spulse_error **err);

/** Walks the stacks of a batch. */
SPULSE_API int spulse_batch_stacks(const struct spulse_batch *batch,
				   struct spulse_stacks **stacks_out,
				   struct spulse_error **err);
/** Processes that the batch names, in first-seen order. Borrowed until the next poll. */
SPULSE_API const pid_t *spulse_batch_processes(const struct spulse_batch *batch,
					       size_t *count_out);
/** Whether more is there already; false does not mean that the writer ended. */
SPULSE_API bool spulse_batch_has_more(const struct spulse_batch *batch);

SPULSE_END_DECLS

#include <stackpulse/spool_writer.h>

#endif

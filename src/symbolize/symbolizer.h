/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_SYMBOLIZER_H
#define SPULSE_SYMBOLIZE_SYMBOLIZER_H

#include "../codemap/codemap.h"
#include "../image/image.h"
#include "../spool/spool.h"
#include "kernel.h"
#include "native/store.h"
#include "request.h"
#include "resolved.h"

/*
 * The symbolizer's memory. Frames and stacks are cached per process, so that an ended process
 * takes its memory with it; kernel frames are shared by all. A cached raw frame is the index of
 * its run of resolved frames.
 */

enum {
	FRAME_ON_PERF_MAP = 1 << 0,	/* a perf map was, or might have been, its source */
	FRAME_PROVISIONAL = 1 << 1,	/* dropped at the end of the call */
	FRAME_RAW = 1 << 2,		/* has no id in the spool */
};

static inline uint64_t frame_value(uint32_t first, unsigned int flags)
{
	return first | (uint64_t)flags << 32;
}

struct process {
	pid_t pid;
	struct u64map frames; /* raw frame key -> frame_value() */
	struct u64map stacks; /* stack node -> offset in lists */
	struct u64map jit;    /* module id -> struct spans * of its JIT symbols */
	VEC(uint32_t) lists;  /* count, then that many frame indices, for each stack */
	struct perfmap *map;  /* NULL: none that is usable */
	const char *map_reason;
	bool map_tried;
	bool has_raw; /* some frames came without a spool's ids */
	bool backend_open;
	void *backend;
	uint64_t generation;
};

/* A module that reached, or tried to reach, a native lookup. */
struct module_state {
	const struct spulse_module *module;
	struct spulse_native_module *native; /* NULL while there is no open image */
	struct spulse_error *refusal;	     /* of the last attempt to open */
	struct image_identity identity;      /* once opened: no other file will do */
	bool opened, unsupported;
	bool trusted;	  /* the recorder's own image: the file's later fate does not matter */
	bool unverified;  /* below a system root, and the recording holds no build ID */
	uint8_t attempts;
	uint64_t checked; /* call in which the image was last found to be the same */
	uint64_t failed;  /* call in which it could not be opened */
};


/*
 * Where the text of a backend's answer is among our strings: neighbouring answers share names and
 * files. Known by its place, which means something only as long as the answers are there.
 */
struct text_memo {
	const char *from, *pooled;
	uint64_t call;
};
enum { TEXT_MEMO = 256 };

/* A process ended, or became another program: its modules with ids below `end` are gone. */
struct retired_process {
	pid_t pid;
	uint32_t end;
};

struct spulse_invalidation {
	bool all;
	bool told; /* by an update that did not fail */
	VEC(pid_t) processes;
};

struct spulse_symbolizer {
	const struct spulse_source *source; /* NULL: module list */
	uint64_t source_number;		    /* UINT64_MAX: not known yet */
	const struct spulse_module **modules; /* of a module list */
	size_t module_count;
	struct spulse_module *file_module; /* of a symbolizer for one file */

	enum spulse_perf_maps perf_maps;
	pid_t *perf_map_pids; /* sorted */
	size_t perf_map_pid_count;
	char *perf_map_dir;
	char *sysroot;
	unsigned int threads;
	bool cache_stacks;

	const struct spulse_native_backend *backend; /* NULL: none */
	void *backend_data;
	struct native_store *store;
	struct image_cache *images;
	struct u64map build_ids; /* module id, or hash of its file -> annotation index */
	size_t annotations_seen;
	struct image_handover *handover; /* images of the recorder at work; borrowed */

	enum spulse_kernel_symbols kernel_source;
	struct kernel_table *kernel;
	int kernel_fd; /* of a given file; -1: none */
	bool kernel_loaded;
	struct spulse_native_module *vmlinux; /* the kernel's own image; NULL: none */
	uint64_t vmlinux_slide; /* run address - file address, once placed */
	bool vmlinux_tried, vmlinux_placed;
	unsigned int vmlinux_tries;
	struct spulse_native_results vmlinux_results;

	uint64_t owner;
	struct frame_store *frames;
	struct u64map processes; /* pid -> struct process * */
	struct process *last_process;
	struct u64map kernel_frames;
	struct interner raw_frames; /* keys of frames that have no id */
	struct u64map module_states; /* struct spulse_module * -> struct module_state * */
	uint32_t open_images;
	size_t stack_memory; /* entries in all lists */
	uint64_t call;

	bool live; /* updated by the batches of a tail */
	uint32_t modules_seen;
	VEC(uint32_t) retired_modules;	/* by the previous batch */
	VEC(struct retired_process) retired_processes;
	/* What earlier updates took away: single modules, and of a process all below an id. */
	struct u64map gone_modules, gone_below;
	struct spulse_invalidation invalidation;

	struct spulse_resolved resolved;
	VEC(uint32_t) scratch;
	VEC(struct pending) pending;
	VEC(struct spulse_frame) foreign; /* frames of the stack being walked */
	struct spulse_native_results results;
	struct strbuf report;
	bool ending; /* nobody holds a frame: all go at once */
	struct text_memo texts[TEXT_MEMO];
	uint64_t texts_call; /* the backend's call that they are of */
	struct u64map *serials; /* for spulse_symbolizer_frame(); NULL until asked */
};

/* What a raw frame was found to be. */
enum pending_kind {
	PENDING_MARKER,
	PENDING_KERNEL,
	PENDING_BARE,
	PENDING_MODULE,
	PENDING_PERF_MAP,
	PENDING_JIT,
};

struct pending {
	struct process *process;
	struct u64map *cache;
	uint64_t key;
	const struct spulse_frame *frame;
	uint32_t frame_id; /* UINT32_MAX: raw */
	const struct spulse_module *module;
	uint64_t file_relative_ip;
	enum pending_kind kind;
	unsigned int flags;
	struct perfmap_entry entry;
	const struct spulse_jit_symbol *jit;
	bool has_lookup;
	struct spulse_native_lookup lookup;
};

enum { STACK_MEMORY_MAX = 4 << 20 };

/* The record of a process, added when new; NULL when memory ran out. */
struct process *symbolizer_process(struct spulse_symbolizer *sym, pid_t pid);
/* Gives a process's frames back; `perf_map_only` those that a perf map may rename. */
void process_drop_frames(struct spulse_symbolizer *sym, struct process *process,
			 bool perf_map_only);
/* Gives back what was resolved of frames without ids. */
void process_drop_raw(struct spulse_symbolizer *sym, struct process *process);
void process_drop_stacks(struct spulse_symbolizer *sym, struct process *process);
/* Forgets the process: frames, stacks, map and backend. */
void process_forget(struct spulse_symbolizer *sym, struct process *process);
bool perf_maps_allowed(const struct spulse_symbolizer *sym, pid_t pid);
int process_load_map(struct spulse_symbolizer *sym, struct process *process,
		     struct spulse_error **err);
int process_open_backend(struct spulse_symbolizer *sym, struct process *process,
			 struct spulse_error **err);

/* The JIT symbol of a module (they stand by start) over an address; NULL where there is none. */
int jit_find(struct process *process, uint32_t module, const struct spulse_jit_symbol *symbols,
	     size_t count, uint64_t address, const struct spulse_jit_symbol **symbol_out,
	     struct spulse_error **err);
void jit_forget_module(struct process *process, uint32_t module);
void jit_forget(struct process *process);
/* Decides what a raw frame is and, where a backend is to be asked, fills its lookup. */
int classify_frame(struct spulse_symbolizer *sym, struct pending *pending,
		   struct spulse_error **err);
/* What a call starts with: the provisional frames of the one before are given up. */
void symbolizer_begin(struct spulse_symbolizer *sym);
/* Brings memory back under its limits. */
void symbolizer_end(struct spulse_symbolizer *sym);
/* Takes the marks of unresolved frames out of the caches. */
void abandon_pending(struct spulse_symbolizer *sym);
/* Resolves the frames of the source with ids in [from, to), with threads. */
int prepare_frames(struct spulse_symbolizer *sym, uint32_t from, uint32_t to,
		   struct spulse_error **err);
/* Resolves all of sym->pending and caches the results; on failure nothing is cached. */
int resolve_pending(struct spulse_symbolizer *sym, struct spulse_error **err);
/* The same where everything was read ahead already. */
int resolve_read(struct spulse_symbolizer *sym, struct spulse_error **err);
/* Empties the list. Frames that may get a better name are not kept for the next call. */
void drop_pending(struct spulse_symbolizer *sym);
/* Makes the resolved frames of one raw frame. `results` may be NULL. */
bool build_frames(struct spulse_symbolizer *sym, const struct pending *pending,
		  const struct spulse_native_results *results, size_t index,
		  uint32_t *first_out);

/*
 * What the kernel's own image says of an address that kernel symbols have as `hit`: levels in
 * chain 0, valid until the next call. NULL: no image, or it does not fit.
 */
const struct spulse_native_results *vmlinux_lookup(struct spulse_symbolizer *sym, uint64_t address,
						   const struct kernel_hit *hit);
/* Prepares a native lookup; false when the module cannot be asked. */
bool module_lookup(struct spulse_symbolizer *sym, struct pending *pending,
		   const struct spulse_module *module);
/* Module number `index` of the source or list, or NULL. */
const struct spulse_module *symbolizer_module(const struct spulse_symbolizer *sym, size_t index);
/* The state of a module whose image was opened if that is possible; NULL without memory. */
struct module_state *module_open(struct spulse_symbolizer *sym,
				 const struct spulse_module *module);
struct module_state *module_state_of(struct spulse_symbolizer *sym,
				     const struct spulse_module *module);
/* Tells the backend that a mapping is gone and forgets it. */
void module_retire(struct spulse_symbolizer *sym, const struct spulse_module *module);
/* Closes images over the limit; between calls. */
void modules_trim(struct spulse_symbolizer *sym);
void symbolizer_release_modules(struct spulse_symbolizer *sym);

/* Opens the file that a module was mapped from; the error goes to state->refusal. */
enum image_failure module_image(struct spulse_symbolizer *sym, struct module_state *state,
				struct image **image_out);

/* Options checked and applied, nothing to resolve yet. */
int symbolizer_make(const struct spulse_symbolizer_options *opts, struct spulse_symbolizer **out,
		    struct spulse_error **err);
/* Takes an image over as that of a module, at the file's own addresses. */
bool module_adopt(struct spulse_symbolizer *sym, const struct spulse_module *module,
		  struct image *image);
/* Reads what the pending lookups need with several threads, where that is worth it. */
int read_ahead(struct spulse_symbolizer *sym, struct spulse_error **err);

/* The kernel symbol at an address, loading the table at the first call. */
bool symbolizer_kernel(struct spulse_symbolizer *sym, uint64_t address, struct kernel_hit *hit);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_SYMBOLIZE_H
#define STACKPULSE_SYMBOLIZE_H

#include <stackpulse/common.h>

/**
 * @file
 * The symbolizer: raw frames in, names, inlined calls and source lines out. Missing symbols,
 * files or perf maps are never errors: the frame keeps what is known. One symbolizer serves one
 * profile and one thread at a time. It borrows its source: free it before the reader.
 */

struct spulse_symbolizer;
struct spulse_resolved;
struct spulse_resolved_frame;
struct spulse_invalidation;
struct spulse_native_backend;
struct spulse_source;
struct spulse_module;
struct spulse_stack;
struct spulse_batch;
struct spulse_frame;
struct spulse_stack_key;
struct spulse_stack_cache;

/** Called with each value that a stack cache gives up. It must not call into the cache. */
typedef void (*spulse_stack_drop_fn)(void *data, void *value);

/** Which processes' perf maps are read. */
enum spulse_perf_maps {
	/** All. */
	SPULSE_PERF_MAPS_ALL = 0,
	/** None. */
	SPULSE_PERF_MAPS_NONE = 1,
	/** Those in perf_map_pids. */
	SPULSE_PERF_MAPS_LISTED = 2,
};

/** Where kernel symbols come from. */
enum spulse_kernel_symbols {
	/** This host: /proc/kallsyms, else its System.map. */
	SPULSE_KERNEL_SYMBOLS_HOST = 0,
	/** kernel_symbols_path, in the format of /proc/kallsyms. */
	SPULSE_KERNEL_SYMBOLS_FILE = 1,
	/** Nowhere. */
	SPULSE_KERNEL_SYMBOLS_NONE = 2,
};

/** Who keeps resolved stacks. */
enum spulse_stack_cache_mode {
	/** The symbolizer. */
	SPULSE_CACHE_INTERNAL = 0,
	/** The caller, who applies each invalidation. */
	SPULSE_CACHE_EXTERNAL = 1,
};

/** Which servers are asked for debug files that this host does not have. */
enum spulse_debug_servers {
	/** Those that DEBUGINFOD_URLS names; none when it is not set. */
	SPULSE_DEBUG_SERVERS_ENVIRONMENT = 0,
	/** None. */
	SPULSE_DEBUG_SERVERS_NONE = 1,
};

/**
 * Called now and then while a debug file is fetched, maybe by a worker thread. @p build_id is the
 * file's, in hexadecimal; @p done and @p total are bytes, @p total 0 while it is not known.
 * Returning false gives the file up. It must not call into the symbolizer.
 */
typedef bool (*spulse_fetch_progress_fn)(void *data, const char *build_id, long done, long total);

/** How to symbolize. All-zero is the default. Strings are copied. */
struct spulse_symbolizer_options {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** enum spulse_perf_maps. */
	uint32_t perf_maps;
	/** enum spulse_kernel_symbols. */
	uint32_t kernel_symbols;
	/** enum spulse_stack_cache_mode. */
	uint32_t stack_cache;
	/** Worker threads of spulse_symbolizer_prepare(); 0 = one per CPU. */
	uint32_t threads;
	/** For SPULSE_PERF_MAPS_LISTED. */
	const pid_t *perf_map_pids;
	/** Length of perf_map_pids. */
	size_t perf_map_pid_count;
	/** Folder of the perf maps; NULL = /tmp. */
	const char *perf_map_dir;
	/** For SPULSE_KERNEL_SYMBOLS_FILE. */
	const char *kernel_symbols_path;
	/** Native backend; NULL = the built-in one. */
	const struct spulse_native_backend *native;
	/** Data of the backend. */
	void *native_data;
	/** Colon-separated folders of debug files; NULL: $STACKPULSE_DEBUG_DIRS or the build's. */
	const char *debug_dirs;
	/** Folder that recorded paths are looked up under; NULL = the host's root. */
	const char *sysroot;
	/**
	 * enum spulse_debug_servers. Needs libdebuginfod, loaded when it is first asked. Its cache
	 * is that of the system's client, or the folder in $STACKPULSE_DEBUGINFOD_CACHE_DIR.
	 */
	uint32_t debug_servers;
	/** Seconds that one file may take; 0 = 90. After one that took longer nobody is asked. */
	uint32_t debug_server_timeout_s;
	/** Called while a file is fetched; may be NULL. */
	spulse_fetch_progress_fn fetch_progress;
	/** Passed to fetch_progress. */
	void *fetch_progress_data;
};

/** Identity of a resolved frame; never used twice. Frozen: 16 bytes. */
struct spulse_frame_id {
	/** Number of the symbolizer. */
	uint64_t owner;
	/** Number of the frame. */
	uint64_t serial;
};

SPULSE_BEGIN_DECLS

/**
 * Makes @p options all-zero, which is the default, but for their size: what SPULSE_OPTS() does, for
 * languages that cannot use that. @p size is sizeof the struct as the caller knows it.
 */
SPULSE_API void spulse_symbolizer_options_init(struct spulse_symbolizer_options *options,
					       size_t size);

/**
 * Makes a symbolizer for everything that @p source defines. INVALID_INPUT for options out of
 * range or a kernel symbol file that is not regular; IO or PERMISSION when that file cannot be
 * read.
 */
SPULSE_API int spulse_symbolizer_new(const struct spulse_source *source,
				     const struct spulse_symbolizer_options *opts,
				     struct spulse_symbolizer **symbolizer_out,
				     struct spulse_error **err);
/**
 * Makes a symbolizer for modules without a spool, for spulse_symbolizer_resolve_raw(). The modules
 * are borrowed: free them after it. Errors as of spulse_symbolizer_new().
 */
SPULSE_API int spulse_symbolizer_new_for_modules(const struct spulse_module *const *modules,
						 size_t count,
						 const struct spulse_symbolizer_options *opts,
						 struct spulse_symbolizer **symbolizer_out,
						 struct spulse_error **err);
/**
 * Makes a symbolizer for the addresses of one ELF file, as its own tables state them: see
 * spulse_symbolizer_resolve_addresses(). IO, PERMISSION or UNSUPPORTED when it cannot be read.
 */
SPULSE_API int spulse_symbolizer_new_for_file(const char *path,
					      const struct spulse_symbolizer_options *opts,
					      struct spulse_symbolizer **symbolizer_out,
					      struct spulse_error **err);
/** Frees the symbolizer and all it returned; NULL is allowed. */
SPULSE_API void spulse_symbolizer_free(struct spulse_symbolizer *symbolizer);
SPULSE_DEFINE_CLEANUP(symbolizer)
/** Whether ELF and DWARF names can be found: built in, or given as an option. */
SPULSE_API bool spulse_symbolizer_has_native_backend(const struct spulse_symbolizer *symbolizer);
/**
 * Resolves a stack. The list lives until the next call on @p symbolizer. INVALID_INPUT for a
 * stack of another reader; NATIVE_SYMBOLIZER when the backend failed: nothing is kept then.
 */
SPULSE_API int spulse_symbolizer_resolve(struct spulse_symbolizer *symbolizer,
					 const struct spulse_stack *stack,
					 const struct spulse_resolved **resolved_out,
					 struct spulse_error **err);
/**
 * Resolves one frame of the source, by its index in spulse_source_frames(), as it is bound in
 * process @p pid: the calls inlined there and the function. Stacks share callers: who goes over
 * spulse_source_stack_nodes() meets each only once, however many stacks end in it. The list lives
 * until the next call on @p symbolizer. INVALID_INPUT past the last frame, or without a source;
 * NATIVE_SYMBOLIZER as in spulse_symbolizer_resolve().
 */
SPULSE_API int spulse_symbolizer_resolve_frame(struct spulse_symbolizer *symbolizer, pid_t pid,
					       uint32_t frame,
					       const struct spulse_resolved **resolved_out,
					       struct spulse_error **err);
/**
 * Resolves raw frames of process @p pid, innermost first. The list lives until the next call on
 * @p symbolizer; errors as of spulse_symbolizer_resolve().
 */
SPULSE_API int spulse_symbolizer_resolve_raw(struct spulse_symbolizer *symbolizer, pid_t pid,
					     const struct spulse_frame *frames, size_t count,
					     const struct spulse_resolved **resolved_out,
					     struct spulse_error **err);
/**
 * Resolves addresses of the file of spulse_symbolizer_new_for_file(): a frame of inline depth 0
 * ends the frames of each address. INVALID_INPUT for a symbolizer that was made otherwise.
 */
SPULSE_API int spulse_symbolizer_resolve_addresses(struct spulse_symbolizer *symbolizer,
						   const uint64_t *addresses, size_t count,
						   const struct spulse_resolved **resolved_out,
						   struct spulse_error **err);
/**
 * Resolves every distinct frame of the source in advance, with the threads of the options.
 * Afterwards spulse_symbolizer_resolve() only looks up. NATIVE_SYMBOLIZER when the backend failed.
 */
SPULSE_API int spulse_symbolizer_prepare(struct spulse_symbolizer *symbolizer,
					 struct spulse_error **err);
/**
 * Live: takes over what @p batch defines; once per batch, before its stacks are resolved.
 * INVALID_INPUT for a batch of another tail. The invalidation lives until the next update.
 */
SPULSE_API int spulse_symbolizer_update(struct spulse_symbolizer *symbolizer,
					const struct spulse_batch *batch,
					const struct spulse_invalidation **invalidation_out,
					struct spulse_error **err);
/**
 * How names of a module are found, as lines of text: the file and its build ID, the debug files,
 * what was tried and why it was refused. Reads what is not read yet. The text lives until the
 * next call on @p symbolizer. INVALID_INPUT past the last module.
 *
 * @param index  as in spulse_source_module(), or in the list that the symbolizer was made for
 */
SPULSE_API int spulse_symbolizer_module_report(struct spulse_symbolizer *symbolizer, size_t index,
					       const char **text_out, struct spulse_error **err);
/** A frame by its id, or NULL when it was dropped. */
SPULSE_API const struct spulse_resolved_frame *
spulse_symbolizer_frame(const struct spulse_symbolizer *symbolizer, struct spulse_frame_id id);

/** Number of frames, inlined ones included. */
SPULSE_API size_t spulse_resolved_count(const struct spulse_resolved *resolved);
/** Frame @p index, innermost first; NULL past the end. */
SPULSE_API const struct spulse_resolved_frame *
spulse_resolved_at(const struct spulse_resolved *resolved, size_t index);
/** Id of frame @p index. */
SPULSE_API struct spulse_frame_id spulse_resolved_id(const struct spulse_resolved *resolved,
						     size_t index);
/** Whether a caller may keep the result: false while a frame may still get a better name. */
SPULSE_API bool spulse_resolved_is_cacheable(const struct spulse_resolved *resolved);
/** Keeps a frame beyond its list, in the thread of its symbolizer; returns @p frame. */
SPULSE_API const struct spulse_resolved_frame *
spulse_resolved_frame_ref(const struct spulse_resolved_frame *frame);
/** Gives it back; NULL is allowed. */
SPULSE_API void spulse_resolved_frame_unref(const struct spulse_resolved_frame *frame);

/** Whether every kept stack is outdated. */
SPULSE_API bool spulse_invalidation_all(const struct spulse_invalidation *invalidation);
/** Processes whose kept stacks are outdated. Borrowed. */
SPULSE_API const pid_t *
spulse_invalidation_processes(const struct spulse_invalidation *invalidation, size_t *count_out);
/** Whether stacks of @p pid are outdated. */
SPULSE_API bool spulse_invalidation_affects(const struct spulse_invalidation *invalidation,
					    pid_t pid);

/**
 * Makes a cache for what the caller prepared from resolved stacks: for
 * SPULSE_CACHE_EXTERNAL. Free it before its symbolizer.
 *
 * @param capacity  values to keep; a full cache is emptied by the next insert; 0 keeps none
 * @param drop      called with each value that is given up; may be NULL
 * @param data      passed to @p drop
 */
SPULSE_API int spulse_stack_cache_new(const struct spulse_symbolizer *symbolizer, size_t capacity,
				      spulse_stack_drop_fn drop, void *data,
				      struct spulse_stack_cache **cache_out,
				      struct spulse_error **err);
/** Frees the cache, dropping its values; NULL is allowed. */
SPULSE_API void spulse_stack_cache_free(struct spulse_stack_cache *cache);
SPULSE_DEFINE_CLEANUP(stack_cache)
/** Whether a value is kept for a stack: true, with the value. */
SPULSE_API bool spulse_stack_cache_lookup(const struct spulse_stack_cache *cache,
					  struct spulse_stack_key key, void **value_out);
/**
 * Keeps @p value for a stack that was resolved to @p resolved; an earlier value is dropped. 1:
 * kept. 0: not cacheable, or the capacity is 0: the value stays the caller's, as with a failure.
 * INVALID_INPUT for a stack or result of another symbolizer.
 */
SPULSE_API int spulse_stack_cache_insert(struct spulse_stack_cache *cache,
					 struct spulse_stack_key key,
					 const struct spulse_resolved *resolved, void *value,
					 struct spulse_error **err);
/** Drops what an update outdated. */
SPULSE_API void spulse_stack_cache_apply(struct spulse_stack_cache *cache,
					 const struct spulse_invalidation *invalidation);
/** Drops everything. */
SPULSE_API void spulse_stack_cache_clear(struct spulse_stack_cache *cache);
/** Number of values kept. */
SPULSE_API size_t spulse_stack_cache_count(const struct spulse_stack_cache *cache);

SPULSE_END_DECLS

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_NATIVE_H
#define STACKPULSE_NATIVE_H

#include <stackpulse/common.h>

/**
 * @file
 * Native backends: who turns an address in an ELF image into names. The built-in one reads ELF
 * symbols and DWARF; a program may give its own, or wrap the built-in one. Kernel symbols and perf
 * maps stay with the symbolizer: a backend sees native addresses only.
 *
 * A symbolizer calls its backend in the thread that called the symbolizer, one call at a time. A
 * backend that serves several symbolizers has to lock what they share. Lookups and results live
 * during the call that they are passed to; what was made by a `_new` call belongs to its caller and
 * is used by one thread at a time.
 */

struct spulse_native_lookup;
struct spulse_native_module;
struct spulse_native_results;

/** Properties of a native symbol. */
enum spulse_symbol_flag {
	/** Usually left out of a profile. */
	SPULSE_SYMBOL_HIDDEN = 1 << 0,
};

/** What a backend found for one address at one inlining level. Strings are copied. */
struct spulse_native_symbol {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Name as shown; must not be NULL. */
	const char *name;
	/** Module as shown; NULL: the file's name. */
	const char *module;
	/** Source file, or NULL. */
	const char *file;
	/** Suffix of a compiler's clone, or NULL. */
	const char *suffix;
	/** Line, 1-based; 0 unknown. */
	uint32_t line;
	/** Column, 1-based; 0 unknown. */
	uint32_t column;
	/** Line of the function's declaration; 0 unknown. */
	uint32_t function_start_line;
	/** Column of the function's declaration; 0 unknown. */
	uint32_t function_start_column;
	/** Distance from the symbol's start in bytes. */
	uint64_t offset;
	/** Set of enum spulse_symbol_flag bits. */
	uint64_t flags;
};

/** Where an image's bytes come from. */
enum spulse_image_source {
	/** There are none. */
	SPULSE_IMAGE_NONE = 0,
	/** The validated file that was mapped. */
	SPULSE_IMAGE_FILE = 1,
	/** The kernel's vDSO. */
	SPULSE_IMAGE_VDSO = 2,
};

/** Address of an image's first segment. */
struct spulse_image_base {
	/** In the process. */
	uint64_t runtime;
	/** In the file. */
	uint64_t file;
};

/** Which file it is. */
struct spulse_file_identity {
	/** Device. */
	uint32_t device_major;
	/** Device. */
	uint32_t device_minor;
	/** Inode, 0 = unknown. */
	uint64_t inode;
	/** Inode generation, 0 = unknown. */
	uint64_t inode_generation;
};

/**
 * A backend. Functions return 0 or -enum spulse_error_kind with *err set. They must not call
 * into the symbolizer that calls them.
 */
struct spulse_native_backend {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Name for messages. */
	const char *name;
	/** Called once per process at its first lookup; may fail and is then tried again. */
	int (*open)(void *data, pid_t pid, void **state_out, struct spulse_error **err);
	/**
	 * Answers @p count lookups of one process, in stack order, through
	 * spulse_native_results_add(). An index never added to is unresolved.
	 */
	int (*symbolize)(void *state, const struct spulse_native_lookup *const *lookups,
			 size_t count, struct spulse_native_results *results,
			 struct spulse_error **err);
	/** A mapping is gone: drop what was kept for it. NULL: nothing to do. */
	void (*retire_module)(void *state, const struct spulse_native_module *module);
	/** The process is gone. NULL: nothing to do. */
	void (*close)(void *state);
	/** A number that changes when earlier answers are outdated; NULL: never. */
	int (*refresh)(void *state, uint64_t *generation_out, struct spulse_error **err);
	/** Releases @p data, once, when the symbolizer is freed. NULL: nothing to do. */
	void (*release)(void *data);
};

SPULSE_BEGIN_DECLS

/** The built-in backend; NULL in a build without it. Its data is NULL. Static storage. */
SPULSE_API const struct spulse_native_backend *spulse_native_default(void);

/** Process of a lookup. */
SPULSE_API pid_t spulse_native_lookup_pid(const struct spulse_native_lookup *lookup);
/** Module of a lookup. Lives as long as the lookup. */
SPULSE_API const struct spulse_native_module *
spulse_native_lookup_module(const struct spulse_native_lookup *lookup);
/** Address in the process. */
SPULSE_API uint64_t spulse_native_lookup_address(const struct spulse_native_lookup *lookup);
/** Distance from the image's runtime base. */
SPULSE_API uint64_t
spulse_native_lookup_relative_address(const struct spulse_native_lookup *lookup);
/** Address as the file's symbol tables and DWARF state it. */
SPULSE_API uint64_t spulse_native_lookup_image_address(const struct spulse_native_lookup *lookup);

/** Path as recorded; bytes. Lives as long as the module. */
SPULSE_API const char *spulse_native_module_path(const struct spulse_native_module *module);
/** Length of that path. */
SPULSE_API size_t spulse_native_module_path_len(const struct spulse_native_module *module);
/** Path without one trailing " (deleted)". */
SPULSE_API const char *
spulse_native_module_normalized_path(const struct spulse_native_module *module);
/** Last part of the normalized path. */
SPULSE_API const char *spulse_native_module_name(const struct spulse_native_module *module);
/**
 * A path that opens exactly the validated file, or NULL. Valid as long as the module is held
 * (spulse_native_module_ref()).
 */
SPULSE_API const char *spulse_native_module_image_path(const struct spulse_native_module *module);
/** Descriptor of the validated file or vDSO copy; -1 = none. Borrowed. */
SPULSE_API int spulse_native_module_image_fd(const struct spulse_native_module *module);
/** Where the bytes come from. */
SPULSE_API enum spulse_image_source
spulse_native_module_image_source(const struct spulse_native_module *module);
/** First address of the mapping. */
SPULSE_API uint64_t spulse_native_module_start(const struct spulse_native_module *module);
/** Address after the last. */
SPULSE_API uint64_t spulse_native_module_end(const struct spulse_native_module *module);
/** Address of the image's first segment, in the process and in the file. */
SPULSE_API struct spulse_image_base
spulse_native_module_image_base(const struct spulse_native_module *module);
/** Whether the file is a Python interpreter or its library. */
SPULSE_API bool
spulse_native_module_is_python_runtime(const struct spulse_native_module *module);
/** Id of the mapping: the spool's module id. */
SPULSE_API uint64_t spulse_native_module_mapping_id(const struct spulse_native_module *module);
/** Equal for modules of one validated file, within one symbolizer. */
SPULSE_API uint64_t spulse_native_module_image_id(const struct spulse_native_module *module);
/** Recorded identity of the file. */
SPULSE_API struct spulse_file_identity
spulse_native_module_file_identity(const struct spulse_native_module *module);
/** Keeps the module and its open image; returns @p module. May be called from any thread. */
SPULSE_API const struct spulse_native_module *
spulse_native_module_ref(const struct spulse_native_module *module);
/** Gives it back; NULL is allowed. */
SPULSE_API void spulse_native_module_unref(const struct spulse_native_module *module);

/** Makes a module for tests: range 0 to 2^64-1, base 0, no image, an image id of its own. */
SPULSE_API int spulse_native_module_new(const char *path,
					struct spulse_native_module **module_out,
					struct spulse_error **err);
/** Frees what spulse_native_module_new() made; NULL is allowed. */
SPULSE_API void spulse_native_module_free(struct spulse_native_module *module);
SPULSE_DEFINE_CLEANUP(native_module)
/** Makes a lookup for tests; it holds @p module. */
SPULSE_API int spulse_native_lookup_new(pid_t pid, const struct spulse_native_module *module,
					uint64_t address, uint64_t relative_address,
					uint64_t image_address,
					struct spulse_native_lookup **lookup_out,
					struct spulse_error **err);
/** Frees what spulse_native_lookup_new() made; NULL is allowed. */
SPULSE_API void spulse_native_lookup_free(struct spulse_native_lookup *lookup);
SPULSE_DEFINE_CLEANUP(native_lookup)

/**
 * Adds the next outer level for lookup @p index (the innermost comes first). INVALID_INPUT for
 * an index out of range or a symbol without a name.
 */
SPULSE_API int spulse_native_results_add(struct spulse_native_results *results, size_t index,
					 const struct spulse_native_symbol *symbol,
					 struct spulse_error **err);
/** Makes results for @p count lookups, to call another backend with. */
SPULSE_API int spulse_native_results_new(size_t count,
					 struct spulse_native_results **results_out,
					 struct spulse_error **err);
/** Number of levels found for lookup @p index. */
SPULSE_API size_t spulse_native_results_count(const struct spulse_native_results *results,
					      size_t index);
/** Level @p level of lookup @p index, innermost first, or NULL. Lives as long as @p results. */
SPULSE_API const struct spulse_native_symbol *
spulse_native_results_at(const struct spulse_native_results *results, size_t index,
			 size_t level);
/** Frees @p results; NULL is allowed. */
SPULSE_API void spulse_native_results_free(struct spulse_native_results *results);
SPULSE_DEFINE_CLEANUP(native_results)

SPULSE_END_DECLS

#endif

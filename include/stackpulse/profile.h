/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_PROFILE_H
#define STACKPULSE_PROFILE_H

#include <stackpulse/common.h>

/**
 * @file
 * Resolved frames: what a symbolizer returns and what an aggregator, exporter or user interface
 * shows. Accessors only: they cannot fail, and any thread may use them on a frame that is held.
 * Strings live as long as their frame and are bytes (mostly UTF-8). A frame lives as long as the
 * list that it came from, or until it is given back after spulse_resolved_frame_ref().
 */

struct spulse_resolved_frame;

/** What a frame is. */
enum spulse_frame_kind {
	/** Nothing is known but an address. */
	SPULSE_FRAME_KIND_UNKNOWN = 0,
	/** Compiled code. */
	SPULSE_FRAME_KIND_NATIVE = 1,
	/** A Python function. */
	SPULSE_FRAME_KIND_PYTHON = 2,
	/** Kernel code. */
	SPULSE_FRAME_KIND_KERNEL = 3,
};

/** Where a frame's name comes from. */
enum spulse_symbol_origin {
	/** Nowhere: the name is made of the address. */
	SPULSE_ORIGIN_ADDRESS_ONLY = 0,
	/** An ELF symbol table or DWARF. */
	SPULSE_ORIGIN_ELF = 1,
	/** A perf map file. */
	SPULSE_ORIGIN_PERF_MAP = 2,
	/** The kernel's symbols. */
	SPULSE_ORIGIN_KERNEL_SYMBOLS = 3,
	/** Symbols that a JIT registered and the recorder stored. */
	SPULSE_ORIGIN_JIT = 4,
};

/** Properties of a frame. */
enum spulse_frame_flag {
	/** Code of a Python interpreter. */
	SPULSE_FRAME_PYTHON_RUNTIME = 1 << 0,
	/** Usually left out of a profile. */
	SPULSE_FRAME_HIDDEN_DEFAULT = 1 << 2,
	/** Code made at run time. */
	SPULSE_FRAME_JIT = 1 << 3,
	/** Outer frames of this stack are missing from here on. */
	SPULSE_FRAME_TRUNCATED_STACK = 1 << 4,
};

SPULSE_BEGIN_DECLS

/** What the frame is. */
SPULSE_API enum spulse_frame_kind
spulse_resolved_frame_kind(const struct spulse_resolved_frame *frame);
/** Where its name comes from. */
SPULSE_API enum spulse_symbol_origin
spulse_resolved_frame_origin(const struct spulse_resolved_frame *frame);
/** Set of enum spulse_frame_flag bits. */
SPULSE_API unsigned int spulse_resolved_frame_flags(const struct spulse_resolved_frame *frame);
/** Absolute address; 0 for the truncation marker. */
SPULSE_API uint64_t spulse_resolved_frame_pc(const struct spulse_resolved_frame *frame);
/** Whether there is a name. */
SPULSE_API bool spulse_resolved_frame_has_symbol(const struct spulse_resolved_frame *frame);
/** The name, or NULL when only an address is known. */
SPULSE_API const char *spulse_resolved_frame_name(const struct spulse_resolved_frame *frame);
/** Length of the name, 0 without one. */
SPULSE_API size_t spulse_resolved_frame_name_len(const struct spulse_resolved_frame *frame);
/**
 * The name, or `<0xADDRESS>`, into @p buf, cut to fit and always terminated when @p len > 0.
 * Returns @p buf.
 */
SPULSE_API const char *
spulse_resolved_frame_display_name(const struct spulse_resolved_frame *frame, char *buf,
				   size_t len);
/** Full length of the display name. */
SPULSE_API size_t
spulse_resolved_frame_display_name_len(const struct spulse_resolved_frame *frame);
/** Module as shown: a file name, `[kernel]`, a perf map's path; "" without one. */
SPULSE_API const char *spulse_resolved_frame_module(const struct spulse_resolved_frame *frame);
/** Last part of the module's path. */
SPULSE_API const char *
spulse_resolved_frame_module_basename(const struct spulse_resolved_frame *frame);
/** Whether the frame belongs to a Python interpreter. */
SPULSE_API bool
spulse_resolved_frame_is_python_runtime(const struct spulse_resolved_frame *frame);
/** Source file, or NULL. */
SPULSE_API const char *spulse_resolved_frame_file(const struct spulse_resolved_frame *frame);
/** Last part of the source file's path, or NULL. */
SPULSE_API const char *spulse_resolved_frame_basename(const struct spulse_resolved_frame *frame);
/** Line, 1-based; -1 unknown. */
SPULSE_API int64_t spulse_resolved_frame_line(const struct spulse_resolved_frame *frame);
/** Column, native 1-based, Python 0-based; -1 unknown. */
SPULSE_API int64_t spulse_resolved_frame_column(const struct spulse_resolved_frame *frame);
/** Last line of a Python location; -1 unknown. */
SPULSE_API int64_t spulse_resolved_frame_end_line(const struct spulse_resolved_frame *frame);
/** Last column of a Python location; -1 unknown. */
SPULSE_API int64_t spulse_resolved_frame_end_column(const struct spulse_resolved_frame *frame);
/** Line where the function is declared; -1 unknown. */
SPULSE_API int64_t
spulse_resolved_frame_function_start_line(const struct spulse_resolved_frame *frame);
/** Column where the function is declared; -1 unknown. */
SPULSE_API int64_t
spulse_resolved_frame_function_start_column(const struct spulse_resolved_frame *frame);
/**
 * Where the function of a frame without a symbol starts, as unwind tables of its file know it: an
 * offset in the file like the one in the frame's name. It tells functions of a stripped file apart
 * and names none. UINT64_MAX unknown, or the frame has a symbol.
 */
SPULSE_API uint64_t
spulse_resolved_frame_function_start(const struct spulse_resolved_frame *frame);
/** Distance from the symbol's start in bytes. */
SPULSE_API uint64_t spulse_resolved_frame_offset(const struct spulse_resolved_frame *frame);
/** Suffix of a compiler's clone such as ".cold" or ".constprop.0"; "" without one. */
SPULSE_API const char *spulse_resolved_frame_suffix(const struct spulse_resolved_frame *frame);
/** Inlining depth, 0 for the function that really exists. */
SPULSE_API uint32_t spulse_resolved_frame_inline_depth(const struct spulse_resolved_frame *frame);
/** Whether it is the Python interpreter's evaluation loop. */
SPULSE_API bool spulse_resolved_frame_is_eval_frame(const struct spulse_resolved_frame *frame);
/** Whether a backend wants it left out by default. */
SPULSE_API bool spulse_resolved_frame_should_ignore(const struct spulse_resolved_frame *frame);
/** Python opcode; -1 unknown. */
SPULSE_API int32_t spulse_resolved_frame_opcode(const struct spulse_resolved_frame *frame);
/** Whether the interpreter entered C to run this Python frame. */
SPULSE_API bool spulse_resolved_frame_is_entry(const struct spulse_resolved_frame *frame);

/** Whether a file name is a Python interpreter's or its library's, for example "python3.12". */
SPULSE_API bool spulse_is_python_runtime_basename(const char *name);
/** Name of a kind: "native", "python", "kernel", "unknown". */
SPULSE_API const char *spulse_frame_kind_name(enum spulse_frame_kind kind);
/** Name of an origin: "elf", "perf-map", "kernel-symbols", "address-only", "jit". */
SPULSE_API const char *spulse_symbol_origin_name(enum spulse_symbol_origin origin);

SPULSE_END_DECLS

#endif

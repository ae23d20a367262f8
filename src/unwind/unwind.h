/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * unwind: registers, stack bytes and images in, return addresses out, on x86-64 and AArch64.
 * Owns compiled rules, the address spaces and the rule cache. Never makes a system call; files are
 * room image's, debug files for their tables included. Code bytes of memory and known ranges come
 * as arguments or through a callback. Both architectures compile on every host.
 */
#ifndef SPULSE_UNWIND_H
#define SPULSE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

#include <stackpulse/record.h>

struct image;

enum unw_arch { UNW_X86_64, UNW_AARCH64 };

/* Most user frames of one stack; then it is cut. */
enum { UNW_MAX_FRAMES = 1024 };

/* Registers in DWARF order: x86-64 0-15 and 16 = rip; AArch64 x0-x30, 31 = sp, 32 = pc. */
enum { UNW_REGS = 33 };
struct unw_regs {
	uint64_t value[UNW_REGS];
	uint64_t known; /* bit per register */
};

/* From perf's register numbering and mask; false without pc or sp. */
bool unw_regs_from_perf(enum unw_arch arch, uint64_t mask, const uint64_t *values,
			struct unw_regs *regs);

/* ---- images: rules by file address, shared by every process ---- */

struct unw_image;
/* Takes a reference to `image`; sections are read at first use. */
int unw_image_new(struct image *image, struct unw_image **out, struct spulse_error **err);
/* From bare sections, for vectors, fuzzing and JIT code; bytes are borrowed. */
struct unw_sections {
	enum unw_arch arch;
	const uint8_t *eh_frame, *eh_frame_hdr, *debug_frame;
	size_t eh_frame_len, eh_frame_hdr_len, debug_frame_len;
	uint64_t eh_frame_addr, eh_frame_hdr_addr, debug_frame_addr, text_addr, got_addr;
	const uint8_t *text; /* code bytes at text_addr; may be NULL */
	size_t text_len;
};
int unw_image_from_sections(const struct unw_sections *sections, struct unw_image **out,
			    struct spulse_error **err);
struct unw_image *unw_image_ref(struct unw_image *image);
void unw_image_unref(struct unw_image *image);

/* ---- address spaces: copy-on-write tables of executable mappings ---- */

struct unw_space;
struct unw_map {
	uint64_t start, end, bias; /* bias: run address - file address */
	struct unw_image *image;   /* NULL: executable memory without tables */
	uint32_t module;	   /* the caller's number, handed to its callbacks */
};
int unw_space_new(struct unw_space **out, struct spulse_error **err);
/*
 * The child starts with the parent's mappings, `module` numbers included; the table is shared until
 * one of them changes it. NULL when memory ran out.
 */
struct unw_space *unw_space_fork(struct unw_space *parent);
/* Adds a mapping (takes an image reference); what it overlaps is cut. */
int unw_space_map(struct unw_space *space, const struct unw_map *map, struct spulse_error **err);
void unw_space_unmap(struct unw_space *space, uint64_t start, uint64_t end);
/* Forgets every mapping. */
void unw_space_clear(struct unw_space *space);
/*
 * Whether code may lie where no mapping is known, because the mappings could not be read: frame
 * pointers then lead there too. A space without any mapping is always so.
 */
void unw_space_set_partial(struct unw_space *space, bool partial);
const struct unw_map *unw_space_find(const struct unw_space *space, uint64_t address);
const struct unw_map *unw_space_maps(const struct unw_space *space, size_t *count);
void unw_space_free(struct unw_space *space);

/* ---- the walk ---- */

struct unw_callbacks {
	/*
	 * Number for a frame at an address (as stored: return addresses minus one), in mapping
	 * `map` or in none (NULL). Called on a cache miss only; the number is kept while the space
	 * keeps the mapping, and not at all without a mapping. UINT32_MAX: memory ran out; not
	 * kept either.
	 */
	uint32_t (*intern)(void *data, struct unw_space *space, const struct unw_map *map,
			   uint64_t address);
	/* Copies code bytes of the target; false when they cannot be read. May be NULL. */
	bool (*read_code)(void *data, struct unw_space *space, uint64_t address, void *buf,
			  size_t len);
	/* Told of each frame that is found by the frame pointer for want of a rule. May be NULL. */
	void (*fallback)(void *data, const struct unw_map *map, uint64_t address,
			 enum spulse_unwind_fallback cause);
	void *data;
};

struct unwinder; /* one per recorder: the rule cache */
int unwinder_new(enum unw_arch arch, const struct unw_callbacks *callbacks, struct unwinder **out,
		 struct spulse_error **err);
void unwinder_free(struct unwinder *unwinder);
/*
 * Which bits of a return address are the address (AArch64: the others may hold a signature).
 * 48 bits at first.
 */
void unwinder_set_address_mask(struct unwinder *unwinder, uint64_t mask);

enum unw_end { UNW_COMPLETE = 0, UNW_TRUNCATED = 1 };

struct unw_result {
	const uint32_t *frames;	   /* innermost first; lives until the next walk */
	const uint64_t *addresses; /* the stored address of each frame */
	uint32_t count;
	enum unw_end end;
	bool has_error; /* `error` counts: not set at the frame limit */
	enum spulse_sample_error error;
	uint32_t guessed; /* frames found by a heuristic */
	uint32_t fallbacks[SPULSE_UNWIND_FALLBACK_COUNT];
	/* Module that caused the last fallback of each kind. */
	uint32_t fallback_modules[SPULSE_UNWIND_FALLBACK_COUNT];
};

/*
 * Walks one stack: `stack` holds stack_len bytes from regs' sp upwards. Cannot fail; at least the
 * pc is a frame.
 */
void unw_walk(struct unwinder *unwinder, struct unw_space *space, const struct unw_regs *regs,
	      const uint8_t *stack, size_t stack_len, struct unw_result *result);

#endif

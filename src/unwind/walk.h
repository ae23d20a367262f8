/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_WALK_H
#define SPULSE_UNWIND_WALK_H

#include "guess.h"
#include "rule.h"
#include "space.h"
#include "unwind.h"
#include "unwimage.h"

/*
 * Level 1 of the rule cache: what is known of (lookup address, state of a space), the caller's
 * frame number with it. Two ways share a cache line; the newest is in way 0. The two last members
 * are the rule again, taken apart: each operation less between two loads shortens every step.
 */
struct cache_entry {
	uint64_t look;
	rule_t rule;  /* with RULE_QUICK, if it is of the common kinds */
	uint32_t tag; /* 0: empty */
	uint32_t frame;
	int32_t cfa_add; /* bytes from sp or the frame pointer to the CFA */
	int32_t fp_add;	 /* bytes from the CFA to the saved frame pointer, or NOT_SAVED */
};

#define RULE_QUICK ((rule_t)1 << 63)
/* Leads below any capture, where what is not found is kept. */
enum { FP_NOT_SAVED = -(1 << 30) };

struct cache_set {
	_Alignas(64) struct cache_entry way[2];
};

/* One step of a walk, kept so that callee-saved registers can be looked up when they are asked for.
 */
struct walk_step {
	uint64_t cfa;
	rule_t rule;
};

struct unwinder {
	enum unw_arch arch;
	struct unw_callbacks callbacks;
	uint64_t address_mask;
	struct cache_set *sets;
	size_t set_count, filled;
	size_t set_mask;	     /* of the offset of a set, in bytes */
	struct cache_entry uncached; /* the last entry that could not be kept */
	uint32_t frames[UNW_MAX_FRAMES];
	uint64_t addresses[UNW_MAX_FRAMES];
	struct walk_step steps[UNW_MAX_FRAMES];
};

enum walk_next {
	WALK_ON,   /* look, sp, fp are those of the caller */
	WALK_STOP, /* the result is set */
};

/* A walk; `n` is the frame whose caller is wanted. */
struct walk {
	struct unwinder *unwinder;
	struct unw_space *space;
	struct unw_result *result;
	const uint8_t *stack;
	uint64_t stack_start;
	uint64_t readable; /* offsets of words below this one can be read */
	/*
	 * Registers as they were in frame base_frame: the first, one entered by a signal, or one
	 * behind a row that gave its values otherwise. Later ones follow from the steps since.
	 */
	const struct unw_regs *base;
	struct unw_regs own_base;
	uint32_t base_frame;
	uint32_t n;
	uint64_t look; /* lookup address of frame n */
	uint64_t sp, fp, lr;
	bool fp_known, lr_known;
	bool exact;	 /* frame n was interrupted: look is its pc, every register its own */
	bool unreadable; /* an expression met memory that was not captured */
};

/*
 * Spreads the spaces over the sets. Of the address the low bits will do: those of return addresses
 * are as good as random, and a hash would stand between a return address and its rule.
 */
static inline uint64_t cache_seed(uint32_t tag)
{
	return (tag * UINT64_C(0xd6e8feb86659fd93) >> 32) * sizeof(struct cache_set);
}

/* `pc` is one behind the address that is looked up. */
static inline struct cache_set *cache_set(const struct unwinder *u, uint64_t pc, uint64_t seed)
{
	/* Two calls do not end within four bytes, and on AArch64 all end on a fourth. */
	size_t offset = (pc * (sizeof(struct cache_set) / 4) ^ seed) & u->set_mask;

	return (struct cache_set *)((char *)u->sets + offset);
}

/* Compiles, interns and keeps; cold. */
const struct cache_entry *cache_fill(struct unwinder *u, struct unw_space *space, uint64_t look);

/* Word of the captured stack. */
static inline bool walk_word(const struct walk *w, uint64_t address, uint64_t *value)
{
	uint64_t at = address - w->stack_start;

	if (unlikely(at >= w->readable))
		return false;
	*value = load_u64(w->stack + at);
	return true;
}

/* Outside of user space nothing returns; the first page is never mapped. */
enum { WALK_MIN_ADDRESS = 4096 };
#define WALK_MAX_ADDRESS ((UINT64_C(1) << 56) - 1)

static inline bool walk_address_possible(uint64_t address)
{
	return address - WALK_MIN_ADDRESS < WALK_MAX_ADDRESS - WALK_MIN_ADDRESS;
}

void walk_x86_64(struct walk *w);
void walk_aarch64(struct walk *w);

/* ---- shared by both (walk.c) ---- */

enum walk_next walk_complete(struct walk *w);
enum walk_next walk_fail(struct walk *w, enum spulse_sample_error error);
/* After a step: stops at the frame limit. */
enum walk_next walk_advance(struct walk *w);
/* The saved frame pointer at `address`; what cannot be read is unknown afterwards. */
void walk_load_fp(struct walk *w, uint64_t address);
/* Register of frame n by DWARF number. */
bool walk_register(struct walk *w, unsigned int reg, uint64_t *value);
/* Whether code of the process calls right before an address. */
bool walk_is_return_address(struct walk *w, uint64_t address);
/*
 * For RULE_UNCALLED: turns to the function that starts where a call would return to, and which
 * takes the frame's place. False for a pc, which is where it is: RULE_NONE holds.
 */
bool walk_uncalled(struct walk *w, enum walk_next *next);
void walk_count_fallback(struct walk *w, enum spulse_unwind_fallback reason);
/* One step by a table row that has no compiled form. */
enum walk_next walk_row(struct walk *w);
/* Caller by the frame pointer, if it looks like one; counts `reason`. */
enum walk_next walk_frame_pointer(struct walk *w, enum spulse_unwind_fallback reason);
/* Takes over registers that the kernel saved; look is the interrupted pc. */
enum walk_next walk_interrupted(struct walk *w, const struct unw_regs *regs);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_RULE_H
#define SPULSE_UNWIND_RULE_H

#include "cfi.h"

/*
 * A row compiled to 8 bytes. Offsets are in words of 8 bytes. A row that does not fit becomes
 * RULE_SLOW, whose table entry is evaluated at each use.
 *
 * x86-64: bits 0-3 kind, 4-17 n (signed), 18-23 m or register, 24-47 six nibbles x: the saved
 * register lies at CFA - 16 - 8x, 15 = not saved (rbp, rbx, r12, r13, r14, r15), 48-49 flags.
 * AArch64: bits 0-3 kind, 4-18 n (signed), 19-32 cell of x30 at CFA - 8c (0 = in x30), 33-46 cell
 * of x29 likewise (0 = kept).
 * RULE_NONE and RULE_UNCALLED on both: bits 4-11 enum spulse_unwind_fallback, 52-54 enum rule_hint.
 * RULE_DECODED: 52-54 likewise, the fallback in 56-59.
 */
typedef uint64_t rule_t;

enum rule_kind {
	RULE_SLOW = 0,
	RULE_SP,	/* CFA = sp + 8n */
	RULE_FP,	/* CFA = fp + 8n */
	RULE_PLT,	/* CFA = sp + 8, and 8 more behind byte n of each 16 */
	RULE_CELL_SP,	/* CFA = [sp + 8n] + 8m */
	RULE_CELL_FP,	/* CFA = [fp + 8n] + 8m */
	RULE_REGISTER,	/* CFA = register m + 8n */
	RULE_END,	/* outermost function */
	RULE_SIGNAL,	/* sp points to the kernel's signal frame */
	RULE_TRUNCATED, /* CFA lies above any capture */
	RULE_NONE,	/* no table knows the address */
	RULE_DECODED,	/* x86-64: what the code itself tells: n, m = 1 by fp, and cells */
	RULE_UNCALLED,	/* no call returns here: a function starts right behind the address */
};

/* What code bytes say about an address without tables; valid for an exact pc only. */
enum rule_hint {
	HINT_UNKNOWN = 0,
	HINT_ENTRY,  /* nothing is pushed yet, or all is popped: return address at sp or in x30 */
	HINT_PUSHED, /* x86-64: just behind "push rbp": return address at sp + 8 */
	HINT_LEAF,   /* x86-64: no frame was set up since the function's start */
	HINT_FRAME,  /* x86-64: the frame pointer is set up */
	HINT_RECORD, /* AArch64: behind the store of x29 and x30, which lie at sp */
};

enum {
	RULE_UNSAVED = 15,
	RULE_CELLS = 6,
	/* The kernel never captures more: a size of 16 bits, in words. */
	RULE_MAX_CAPTURE = 65528,
};

#define RULE_KEEPS_ALL ((rule_t)0xffffff << 24)
#define RULE_FP_LOST ((rule_t)1 << 48)
/* x86-64: rbp is the word at rbp (realigned stacks); other cells as ever. */
#define RULE_FP_AT_FP ((rule_t)1 << 49)
/* Frame record found by the frame pointer alone. */
#define RULE_FRAME_POINTER (RULE_FP | (rule_t)2 << 4 | (rule_t)0xfffff0 << 24)

static inline unsigned int rule_kind(rule_t rule)
{
	return rule & 15;
}

static inline int64_t rule_n(rule_t rule)
{
	return (int64_t)(rule << 46) >> 50;
}

static inline unsigned int rule_m(rule_t rule)
{
	return (rule >> 18) & 63;
}

static inline rule_t rule_make(enum rule_kind kind, int64_t n, unsigned int m)
{
	return kind | ((rule_t)n & 0x3fff) << 4 | (rule_t)m << 18 | RULE_KEEPS_ALL;
}

/* Cell number `i` of the order above. */
static inline unsigned int rule_cell(rule_t rule, unsigned int i)
{
	return (rule >> (24 + 4 * i)) & 15;
}

static inline int64_t arm_rule_n(rule_t rule)
{
	return (int64_t)(rule << 45) >> 49;
}

static inline unsigned int arm_rule_lr(rule_t rule)
{
	return (rule >> 19) & 0x3fff;
}

static inline unsigned int arm_rule_fp(rule_t rule)
{
	return (rule >> 33) & 0x3fff;
}

rule_t rule_compile(enum unw_arch arch, const struct cfi_row *row);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_GUESS_H
#define SPULSE_UNWIND_GUESS_H

#include "rule.h"

/*
 * What code bytes tell where tables are silent. A window holds the bytes around one address:
 * `before` bytes in front of it, `len` in all.
 */
enum { CODE_BEFORE = 256, CODE_BEHIND = 256 };
struct code_window {
	uint8_t bytes[CODE_BEFORE + CODE_BEHIND];
	size_t before, len;
};

/*
 * RULE_SIGNAL at the kernel's signal restorer, RULE_DECODED where the code tells the frame, else
 * RULE_NONE, both with a hint.
 */
rule_t guess_rule(enum unw_arch arch, const struct code_window *window,
		  enum spulse_unwind_fallback reason);
/* Whether the code at or directly behind the address is a signal restorer. */
bool guess_is_restorer(enum unw_arch arch, const struct code_window *window);

/* Longest call instruction that is looked for in front of a return address. */
enum { CALL_BYTES = 7 };
/* Whether `bytes`, those in front of an address, end with a call. */
bool guess_ends_with_call(enum unw_arch arch, const uint8_t bytes[CALL_BYTES]);

static inline rule_t rule_none(enum spulse_unwind_fallback reason, enum rule_hint hint)
{
	return RULE_NONE | (rule_t)reason << 4 | (rule_t)hint << 52;
}

static inline enum spulse_unwind_fallback rule_reason(rule_t rule)
{
	return (rule >> 4) & 0xff;
}

/* What to go by where a decoded frame has no return address. */
static inline rule_t rule_undecoded(rule_t rule)
{
	return RULE_NONE | (rule >> 56 & 15) << 4 | (rule & (rule_t)7 << 52);
}

static inline enum rule_hint rule_hint(rule_t rule)
{
	return (rule >> 52) & 7;
}

#endif

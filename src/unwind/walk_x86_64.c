/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The walk on x86-64. Nearly every frame takes the few lines at the top of the loop: one probe of
 * the rule cache, one or two words of the stack. Whatever is unusual leaves for slow_step().
 */
#include "walk.h"

/* Where the kernel keeps registers in a signal frame, from sp at the restorer, in DWARF order. */
static const uint8_t ucontext_offset[] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
					  48,  56,  64,	 72,  80,  88,	96,  168};

static enum walk_next to_caller(struct walk *w, uint64_t cfa, rule_t rule, uint64_t ra)
{
	w->unwinder->steps[w->n] = (struct walk_step){cfa, rule};
	w->sp = cfa;
	w->look = ra - 1;
	w->exact = false;
	return walk_advance(w);
}

/* Return address below the CFA, and the frame pointer. */
static enum walk_next by_cfa(struct walk *w, uint64_t cfa, rule_t rule)
{
	uint64_t ra;

	if (!walk_word(w, cfa - 8, &ra))
		return cfa <= w->sp ? walk_fail(w, w->sp - cfa < UINT64_C(1) << 63
							   ? SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS
							   : SPULSE_SAMPLE_ERROR_INTEGER_OVERFLOW)
				    : walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	if (cfa <= w->sp)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS);
	if (ra == 0)
		return walk_complete(w);
	if (!walk_address_possible(ra))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL);
	if (rule & RULE_FP_LOST)
		w->fp_known = false;
	else if (rule & RULE_FP_AT_FP)
		walk_load_fp(w, w->fp);
	else if (rule_cell(rule, 0) != RULE_UNSAVED)
		walk_load_fp(w, cfa - 16 - 8 * (uint64_t)rule_cell(rule, 0));
	return to_caller(w, cfa, rule, ra);
}

static enum walk_next by_cell(struct walk *w, uint64_t base, rule_t rule)
{
	uint64_t cfa;

	if (!walk_word(w, base + 8 * (uint64_t)rule_n(rule), &cfa))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	return by_cfa(w, cfa + 8 * (uint64_t)rule_m(rule), rule);
}

static enum walk_next by_register(struct walk *w, rule_t rule)
{
	uint64_t value;

	if (!walk_register(w, rule_m(rule), &value))
		return walk_frame_pointer(w, SPULSE_UNWIND_FALLBACK_NO_CFA);
	return by_cfa(w, value + 8 * (uint64_t)rule_n(rule), rule);
}

static enum walk_next by_signal_frame(struct walk *w)
{
	struct unw_regs regs = {.known = (1 << ARRAY_LEN(ucontext_offset)) - 1};

	for (size_t i = 0; i < ARRAY_LEN(ucontext_offset); i++)
		if (!walk_word(w, w->sp + ucontext_offset[i], &regs.value[i]))
			return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	return walk_interrupted(w, &regs);
}

/* The word at an address as the caller, if code calls there. */
static bool by_guess(struct walk *w, uint64_t address, enum walk_next *next)
{
	uint64_t ra;

	if (!walk_word(w, address, &ra) || !walk_is_return_address(w, ra))
		return false;
	w->result->guessed++;
	if (address != w->sp)
		walk_load_fp(w, address - 8);
	*next = to_caller(w, address + 8,
			  address != w->sp ? RULE_FRAME_POINTER : rule_make(RULE_SP, 1, 0), ra);
	return true;
}

static bool frame_pointer_plausible(struct walk *w)
{
	uint64_t ra;

	return w->fp_known && w->fp >= w->sp && w->fp % 8 == 0 && walk_word(w, w->fp + 8, &ra) &&
	       walk_is_return_address(w, ra);
}

/* No table knows the address. */
static enum walk_next without_table(struct walk *w, rule_t rule)
{
	enum walk_next next;

	if (w->exact) {
		if ((rule_hint(rule) == HINT_ENTRY || rule_hint(rule) == HINT_LEAF) &&
		    by_guess(w, w->sp, &next))
			return next;
		if (rule_hint(rule) == HINT_PUSHED && by_guess(w, w->sp + 8, &next))
			return next;
		if (!frame_pointer_plausible(w) && by_guess(w, w->sp, &next))
			return next;
	}
	return walk_frame_pointer(w, rule_reason(rule));
}

/* By what the code does until it returns, if that leads to a return address. */
static enum walk_next by_code(struct walk *w, rule_t rule)
{
	uint64_t cfa = (rule_m(rule) & 1 ? w->fp : w->sp) + 8 * (uint64_t)rule_n(rule), ra;

	if ((rule_m(rule) & 1 && !w->fp_known) || cfa <= w->sp || !walk_word(w, cfa - 8, &ra) ||
	    !walk_is_return_address(w, ra))
		return without_table(w, rule_undecoded(rule));
	w->result->guessed++;
	return by_cfa(w, cfa, rule);
}

static enum walk_next slow_step(struct walk *w, rule_t rule)
{
	enum walk_next next;
	uint64_t n = 8 * (uint64_t)rule_n(rule);
	uint64_t pc = w->exact ? w->look : w->look + 1;

	switch (rule_kind(rule)) {
	case RULE_SP:
		return by_cfa(w, w->sp + n, rule);
	case RULE_PLT:
		return by_cfa(w, w->sp + ((pc & 15) >= (uint64_t)rule_n(rule) ? 16 : 8), rule);
	case RULE_CELL_SP:
		return by_cell(w, w->sp, rule);
	case RULE_FP:
	case RULE_CELL_FP:
		if (!w->fp_known)
			return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
		return rule_kind(rule) == RULE_FP ? by_cfa(w, w->fp + n, rule)
						  : by_cell(w, w->fp, rule);
	case RULE_REGISTER:
		return by_register(w, rule);
	case RULE_END:
		return walk_complete(w);
	case RULE_SIGNAL:
		return by_signal_frame(w);
	case RULE_TRUNCATED:
		return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	case RULE_DECODED:
		return by_code(w, rule);
	case RULE_UNCALLED:
		if (walk_uncalled(w, &next))
			return next;
		return without_table(w, rule);
	case RULE_NONE:
		return without_table(w, rule);
	default:
		return walk_row(w);
	}
}

/*
 * Stands for a frame pointer that is not known. Like any other value that leads nowhere near the
 * stack it ends the quick steps where it is asked for.
 */
#define FP_UNKNOWN UINT64_C(0x8000a5a5c3c3f00f)

/* Word at a stack address that was checked; `shift` is from the address to where the bytes are. */
static inline uint64_t stack_word(uintptr_t shift, uint64_t address)
{
	return load_u64((const uint8_t *)(shift + address));
}

enum { CACHE_LINE = 64, LINES_AHEAD = 16 };

/* Keeps gcc from making variants of what follows, for which it has no registers. */
#define OPAQUE(value) asm("" : "+r"(value))

/*
 * Stack bytes come fresh from a ring, out of the processor's cache, and a walk's strides are too
 * uneven for its own prefetching. Each step asks for the same number of lines, without a branch;
 * that costs little while the step waits for its chain. Returns where to go on.
 */
static inline __attribute__((always_inline)) uint64_t prefetch(uintptr_t shift, uint64_t from,
							       uint64_t end)
{
	uintptr_t at = shift + from;

	OPAQUE(at);
#pragma GCC unroll 16
	for (unsigned int i = 0; i < LINES_AHEAD; i++)
		__builtin_prefetch((const void *)(at + CACHE_LINE * i));
	from = MIN(from + (uint64_t)CACHE_LINE * LINES_AHEAD, end);
	OPAQUE(from);
	return from;
}

/*
 * Walks while steps are of the common kinds, from frame w->n. Returns the rule of the frame that
 * needs more care; w is then that frame's state. What one step waits for is the chain of return
 * address, set, CFA, return address; all else is beside it. Whether a function saves the frame
 * pointer is anybody's guess, and a wrong one costs more than a step: no branch there.
 */
static rule_t quick_steps(struct walk *w)
{
	struct unwinder *const u = w->unwinder;
	const uintptr_t shift = (uintptr_t)w->stack - w->stack_start;
	const uint64_t start = w->stack_start, readable = w->readable, end = start + readable;
	const uint32_t tag = w->space->tag, first = w->n;
	const uint64_t seed = cache_seed(tag);
	/* The address behind the one to look up: a return address as it comes. */
	uint64_t pc = w->look + 1, sp = w->sp, fp = w->fp_known ? w->fp : FP_UNKNOWN;
	uint64_t asked = prefetch(shift, sp, end);
	uint32_t n = first;
	rule_t rule;

	for (;; n++) {
		const struct cache_entry *e = cache_set(u, pc, seed)->way;
		const uint64_t look = pc - 1;
		uint64_t cfa, ra, at;

		if (unlikely(e->look != look || e->tag != tag)) {
			e++;
			if (unlikely(e->look != look || e->tag != tag))
				e = cache_fill(u, w->space, look);
		}
		rule = e->rule;
		u->frames[n] = e->frame;
		u->addresses[n] = look;
		if (unlikely(!(rule & RULE_QUICK)))
			break;
		cfa = sp + (uint64_t)(int64_t)e->cfa_add;
		if (rule_kind(rule) == RULE_FP) {
			cfa += fp - sp;
			if (unlikely(cfa <= sp))
				break;
		}
		if (unlikely(cfa - 8 - start >= readable || n + 1 >= UNW_MAX_FRAMES))
			break;
		ra = stack_word(shift, cfa - 8);
		if (unlikely(!walk_address_possible(ra)))
			break;
		/* The word lies in the capture, or below it, where it was restored already. */
		at = cfa + (uint64_t)(int64_t)e->fp_add;
		at = at - start < readable ? at : 0;
		fp = at ? stack_word(shift, at) : fp;
		asked = prefetch(shift, MAX(asked, cfa), end);
		u->steps[n] = (struct walk_step){cfa, rule};
		sp = cfa;
		pc = ra;
	}
	if (n != first)
		w->exact = false;
	w->n = n;
	w->look = pc - 1;
	w->sp = sp;
	w->fp = fp;
	w->fp_known = fp != FP_UNKNOWN;
	return rule & ~RULE_QUICK;
}

void walk_x86_64(struct walk *w)
{
	w->fp = w->base->value[CFI_X86_RBP];
	w->fp_known = w->base->known >> CFI_X86_RBP & 1;
	while (slow_step(w, quick_steps(w)) == WALK_ON)
		;
}

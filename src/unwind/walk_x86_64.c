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

enum {
	CACHE_LINE = 64,
	PREFETCH = 1024, /* bytes ahead of sp: measured best on compilers and interpreters */
};

/* What the quick path checks of a rule: no flags. */
#define QUICK_FLAGS (RULE_FP_LOST | RULE_FP_AT_FP)

/*
 * The frame pointer by a rule's cell, without branches: whether functions save it is anybody's
 * guess, and a wrong one costs more than the whole step. `cfa_at` is the CFA's offset; one word
 * below it can be read.
 */
static inline uint64_t next_fp(const uint8_t *stack, uint64_t readable, uint64_t cfa_at,
			       rule_t rule, uint64_t fp, uint64_t *fp_lost)
{
	uint64_t cell = rule_cell(rule, 0);
	uint64_t at = cfa_at - 16 - 8 * cell;
	uint64_t saved = -(uint64_t)(cell != RULE_UNSAVED);
	uint64_t inside = saved & -(uint64_t)(at < readable);
	/* A cell below the capture was restored already: kept. One above: lost. */
	uint64_t above = saved & ~inside & ~(uint64_t)((int64_t)at >> 63);
	uint64_t value = load_u64(stack + (at & inside));

	*fp_lost = (*fp_lost & ~inside) | above;
	return (value & inside) | (fp & ~inside);
}

/*
 * Stack bytes come fresh from a ring, out of the processor's cache, and a walk's strides are too
 * uneven for its own prefetching. Asks for the lines up to `until`; returns how far it is.
 */
static inline uint64_t prefetch(const uint8_t *stack, uint64_t readable, uint64_t from,
				uint64_t until)
{
	for (until = MIN(until, readable); from < until; from += CACHE_LINE)
		__builtin_prefetch(stack + from);
	return from;
}

/*
 * Walks while steps are of the common kinds, from frame w->n. Returns the rule of the frame that
 * needs more care; w is then that frame's state. What one step waits for is the chain: hash, rule,
 * CFA, return address; all checks are beside it.
 */
static rule_t quick_steps(struct walk *w)
{
	struct unwinder *const u = w->unwinder;
	const uint8_t *const stack = w->stack;
	const uint64_t start = w->stack_start, readable = w->readable;
	const uint32_t tag = w->space->tag;
	const uint64_t seed = cache_seed(tag);
	uint64_t look = w->look, sp = w->sp, fp = w->fp, fp_lost = -(uint64_t)!w->fp_known;
	uint64_t asked = 0;
	const uint32_t first = w->n;
	uint32_t n = first;
	rule_t rule;

	for (;; n++) {
		const struct cache_entry *e = cache_set(u, look, seed)->way;
		uint64_t cfa, ra, at;

		asked = prefetch(stack, readable, asked, sp - start + PREFETCH);

		if (unlikely(e->look != look || e->tag != tag)) {
			e++;
			if (unlikely(e->look != look || e->tag != tag))
				e = cache_fill(u, w->space, look);
		}
		rule = e->rule;
		u->frames[n] = e->frame;
		u->addresses[n] = look;
		if (unlikely(rule_kind(rule) - RULE_SP > RULE_FP - RULE_SP || (rule & QUICK_FLAGS)))
			break;
		cfa = (rule_kind(rule) == RULE_FP ? fp : sp) + 8 * (uint64_t)rule_n(rule);
		at = cfa - start;
		if (unlikely(at - 8 >= readable || cfa <= sp || n + 1 >= UNW_MAX_FRAMES))
			break;
		if (unlikely(fp_lost) && rule_kind(rule) == RULE_FP)
			break;
		ra = load_u64(stack + at - 8);
		if (unlikely(!walk_address_possible(ra)))
			break;
		fp = next_fp(stack, readable, at, rule, fp, &fp_lost);
		u->steps[n] = (struct walk_step){cfa, rule};
		sp = cfa;
		look = ra - 1;
	}
	if (n != first)
		w->exact = false;
	w->n = n;
	w->look = look;
	w->sp = sp;
	w->fp = fp;
	w->fp_known = !fp_lost;
	return rule;
}

void walk_x86_64(struct walk *w)
{
	w->fp = w->base->value[CFI_X86_RBP];
	w->fp_known = w->base->known >> CFI_X86_RBP & 1;
	while (slow_step(w, quick_steps(w)) == WALK_ON)
		;
}

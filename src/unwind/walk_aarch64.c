/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The walk on AArch64. A call leaves the return address in x30, so the first frame and interrupted
 * ones may have it nowhere else. Signatures in return addresses are masked off, whether the tables
 * mention them or not.
 */
#include "walk.h"

enum {
	/* From sp at the restorer: siginfo 128 bytes, then ucontext with its registers. */
	SIGNAL_X0 = 312,
	SIGNAL_PC = SIGNAL_X0 + 8 * 32,
	/* x30 this near to pc is from a call that the function made itself. */
	NEAR = 4096,
};

static enum walk_next to_caller(struct walk *w, uint64_t cfa, rule_t rule, uint64_t ra)
{
	if (ra == 0)
		return walk_complete(w);
	if (!walk_address_possible(ra))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL);
	if (ra - 1 == w->look && cfa == w->sp)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_DID_NOT_ADVANCE);
	w->unwinder->steps[w->n] = (struct walk_step){cfa, rule};
	w->sp = cfa;
	w->look = ra - 1;
	w->exact = w->lr_known = false;
	return walk_advance(w);
}

static enum walk_next by_cfa(struct walk *w, uint64_t cfa, rule_t rule)
{
	uint64_t ra = w->lr, cell = arm_rule_lr(rule);

	/* Only an interrupted function can have its return address in x30. */
	if (!cell && !w->exact)
		return walk_complete(w);
	if (cfa < w->sp || (cfa == w->sp && !w->exact))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS);
	if (!cell) {
		if (!w->lr_known)
			return walk_fail(w, SPULSE_SAMPLE_ERROR_REGISTER_CAPTURE);
	} else if (!walk_word(w, cfa - 8 * cell, &ra)) {
		/* A cell below sp was restored already. */
		if (cfa - 8 * cell >= w->sp || !w->exact || !w->lr_known)
			return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
		ra = w->lr;
	}
	if (arm_rule_fp(rule))
		walk_load_fp(w, cfa - 8 * (uint64_t)arm_rule_fp(rule));
	return to_caller(w, cfa, rule, ra & w->unwinder->address_mask);
}

static enum walk_next by_signal_frame(struct walk *w)
{
	struct unw_regs regs = {.known = (UINT64_C(1) << UNW_REGS) - 1};

	for (unsigned int i = 0; i < UNW_REGS; i++)
		if (!walk_word(w, w->sp + SIGNAL_X0 + 8 * (uint64_t)i, &regs.value[i]))
			return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	return walk_interrupted(w, &regs);
}

static bool by_lr(struct walk *w, enum walk_next *next)
{
	uint64_t ra = w->lr & w->unwinder->address_mask;

	if (!w->lr_known || !walk_is_return_address(w, ra))
		return false;
	w->result->guessed++;
	*next = to_caller(w, w->sp, RULE_SP, ra);
	return true;
}

/* Frame record at an address. */
static bool by_record(struct walk *w, uint64_t record, enum walk_next *next)
{
	uint64_t ra;

	if (!walk_word(w, record + 8, &ra))
		return false;
	ra &= w->unwinder->address_mask;
	if (!walk_is_return_address(w, ra))
		return false;
	w->result->guessed++;
	walk_load_fp(w, record);
	*next = to_caller(w, record + 16, RULE_SP | 2 << 4 | (rule_t)1 << 19 | (rule_t)2 << 33, ra);
	return true;
}

static enum walk_next without_table(struct walk *w, rule_t rule)
{
	enum walk_next next;

	if (w->exact) {
		uint64_t lr = w->lr & w->unwinder->address_mask;
		bool own_call = lr - (w->look - NEAR) < 2 * NEAR;

		if (rule_hint(rule) == HINT_ENTRY && by_lr(w, &next))
			return next;
		if (rule_hint(rule) == HINT_RECORD && w->fp != w->sp && by_record(w, w->sp, &next))
			return next;
		if (rule_hint(rule) == HINT_UNKNOWN && !own_call && by_lr(w, &next))
			return next;
	}
	return walk_frame_pointer(w, rule_reason(rule));
}

static enum walk_next slow_step(struct walk *w, rule_t rule)
{
	enum walk_next next;

	switch (rule_kind(rule)) {
	case RULE_SP:
		return by_cfa(w, w->sp + 8 * (uint64_t)arm_rule_n(rule), rule);
	case RULE_FP:
		if (!w->fp_known)
			return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
		return by_cfa(w, w->fp + 8 * (uint64_t)arm_rule_n(rule), rule);
	case RULE_END:
		return walk_complete(w);
	case RULE_SIGNAL:
		return by_signal_frame(w);
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

/* As on x86-64: steps of the common kind, which have the return address on the stack. */
static rule_t quick_steps(struct walk *w)
{
	struct unwinder *const u = w->unwinder;
	const uint64_t start = w->stack_start, readable = w->readable, mask = u->address_mask;
	const uint32_t tag = w->space->tag;
	const uint64_t seed = cache_seed(tag);
	uint64_t look = w->look, sp = w->sp, fp = w->fp;
	bool fp_known = w->fp_known;
	const uint32_t first = w->n;
	uint32_t n = first;
	rule_t rule;

	for (;;) {
		const struct cache_entry *e = cache_set(u, look + 1, seed)->way;
		uint64_t cfa, ra, at;

		if (unlikely(e->look != look || e->tag != tag)) {
			e++;
			if (unlikely(e->look != look || e->tag != tag))
				e = cache_fill(u, w->space, look);
		}
		u->frames[n] = e->frame;
		u->addresses[n] = look;
		rule = e->rule;
		if (likely(rule_kind(rule) == RULE_SP))
			cfa = sp;
		else if (rule_kind(rule) == RULE_FP && fp_known)
			cfa = fp;
		else
			break;
		cfa += 8 * (uint64_t)arm_rule_n(rule);
		at = cfa - 8 * (uint64_t)arm_rule_lr(rule) - start;
		if (unlikely(!arm_rule_lr(rule) || at >= readable || cfa <= sp ||
			     n + 1 >= UNW_MAX_FRAMES))
			break;
		ra = load_u64(w->stack + at) & mask;
		if (unlikely(!walk_address_possible(ra)))
			break;
		if (arm_rule_fp(rule)) {
			at = cfa - 8 * (uint64_t)arm_rule_fp(rule) - start;
			if (likely(at < readable)) {
				fp = load_u64(w->stack + at);
				fp_known = true;
			} else if ((int64_t)at >= 0) {
				fp_known = false;
			}
		}
		u->steps[n] = (struct walk_step){cfa, rule};
		sp = cfa;
		look = ra - 1;
		n++;
	}
	if (n != first)
		w->exact = w->lr_known = false;
	w->n = n;
	w->look = look;
	w->sp = sp;
	w->fp = fp;
	w->fp_known = fp_known;
	return rule;
}

void walk_aarch64(struct walk *w)
{
	w->fp = w->base->value[CFI_ARM_FP];
	w->fp_known = w->base->known >> CFI_ARM_FP & 1;
	w->lr = w->base->value[CFI_ARM_LR];
	w->lr_known = w->base->known >> CFI_ARM_LR & 1;
	while (slow_step(w, quick_steps(w)) == WALK_ON)
		;
}

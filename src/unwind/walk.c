/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the two walks share: registers on demand, table rows without a compiled form, and the
 * checks that a guess must pass.
 */
#include "walk.h"

#include "expr.h"

static unsigned int fp_number(const struct walk *w)
{
	return w->unwinder->arch == UNW_X86_64 ? CFI_X86_RBP : CFI_ARM_FP;
}

static unsigned int sp_number(const struct walk *w)
{
	return w->unwinder->arch == UNW_X86_64 ? CFI_X86_RSP : CFI_ARM_SP;
}

static const struct unw_map *walk_map(const struct walk *w, uint64_t look)
{
	const struct unw_map *map = unw_space_find(w->space, look);

	return map && map->image ? map : NULL;
}

enum walk_next walk_complete(struct walk *w)
{
	w->n++;
	w->result->end = UNW_COMPLETE;
	return WALK_STOP;
}

enum walk_next walk_fail(struct walk *w, enum spulse_sample_error error)
{
	const struct unw_map *map = walk_map(w, w->look);

	/* Start routines in assembly often have no mark of being the outermost. */
	if (map && unw_image_is_entry(map->image, w->look - map->bias))
		return walk_complete(w);
	w->n++;
	w->result->end = UNW_TRUNCATED;
	w->result->has_error = true;
	w->result->error = error;
	return WALK_STOP;
}

enum walk_next walk_advance(struct walk *w)
{
	if (++w->n < UNW_MAX_FRAMES)
		return WALK_ON;
	w->result->end = UNW_TRUNCATED;
	return WALK_STOP;
}

/* Sets the number and the address of frame n. */
static void note_frame(struct walk *w)
{
	const struct unw_callbacks *callbacks = &w->unwinder->callbacks;

	w->unwinder->addresses[w->n] = w->look;
	if (callbacks->intern)
		w->unwinder->frames[w->n] =
			callbacks->intern(callbacks->data, w->space,
					  unw_space_find(w->space, w->look), w->look);
}

bool walk_uncalled(struct walk *w, enum walk_next *next)
{
	uint64_t ra;

	/* The cache keeps no number with such a rule, as the address is hardly ever a frame. */
	if (w->exact) {
		note_frame(w);
		return false;
	}
	w->look++;
	/* Entered by a return, it has a caller only if that was made by hand, too. */
	if (w->unwinder->arch == UNW_X86_64 && walk_word(w, w->sp, &ra) &&
	    walk_is_return_address(w, ra)) {
		*next = WALK_ON;
		return true;
	}
	note_frame(w);
	*next = walk_complete(w);
	return true;
}

void walk_count_fallback(struct walk *w, enum spulse_unwind_fallback reason)
{
	const struct unw_callbacks *callbacks = &w->unwinder->callbacks;
	const struct unw_map *map = unw_space_find(w->space, w->look);

	w->result->fallbacks[reason]++;
	w->result->fallback_modules[reason] = map ? map->module : UINT32_MAX;
	if (callbacks->fallback)
		callbacks->fallback(callbacks->data, map, w->look, reason);
}

/*
 * A saved register below the captured bytes was popped before the sample was taken: the register
 * holds the caller's value again. One above them is lost.
 */
void walk_load_fp(struct walk *w, uint64_t address)
{
	if (walk_word(w, address, &w->fp))
		w->fp_known = true;
	else if ((int64_t)(address - w->stack_start) >= 0)
		w->fp_known = false;
}

/* ---- registers ---- */

static bool is_callee_saved(enum unw_arch arch, unsigned int reg)
{
	if (arch == UNW_X86_64)
		return reg == 3 || reg == CFI_X86_RBP || (reg >= 12 && reg <= 15);
	return reg >= 19 && reg <= CFI_ARM_FP;
}

enum look_back { NOT_SAVED, SAVED, LOST };

static enum look_back saved_cell(const struct walk *w, uint64_t address, uint64_t *value)
{
	if (walk_word(w, address, value))
		return SAVED;
	return (int64_t)(address - w->stack_start) < 0 ? NOT_SAVED : LOST;
}

static enum look_back saved_x86(const struct walk *w, uint32_t frame, unsigned int reg,
				uint64_t *value)
{
	const struct walk_step *step = &w->unwinder->steps[frame];
	unsigned int cell = rule_cell(step->rule, reg == 3 ? 1 : reg - 10);

	if (cell == RULE_UNSAVED)
		return NOT_SAVED;
	return saved_cell(w, step->cfa - 16 - 8 * (uint64_t)cell, value);
}

/* AArch64's rules have no room for x19 to x28, which few rows ask for: back to the table. */
static enum look_back saved_arm(const struct walk *w, uint32_t frame, unsigned int reg,
				uint64_t *value)
{
	uint64_t look = w->unwinder->addresses[frame];
	const struct unw_map *map = walk_map(w, look);
	const struct cfi_rule *rule;
	struct cfi_row row;

	if (!map || !unw_image_row(map->image, look - map->bias, &row))
		return NOT_SAVED;
	rule = &row.regs[reg];
	if (rule->kind == CFI_UNSET || rule->kind == CFI_SAME)
		return NOT_SAVED;
	if (rule->kind != CFI_OFFSET)
		return LOST;
	return saved_cell(w, w->unwinder->steps[frame].cfa + (uint64_t)rule->value, value);
}

static bool look_back(const struct walk *w, unsigned int reg, uint64_t *value)
{
	bool x86 = w->unwinder->arch == UNW_X86_64;

	for (uint32_t i = w->n; i-- > w->base_frame;) {
		enum look_back found =
			x86 ? saved_x86(w, i, reg, value) : saved_arm(w, i, reg, value);

		if (found != NOT_SAVED)
			return found == SAVED;
	}
	*value = w->base->value[reg];
	return w->base->known >> reg & 1;
}

bool walk_register(struct walk *w, unsigned int reg, uint64_t *value)
{
	bool x86 = w->unwinder->arch == UNW_X86_64;

	if (reg == sp_number(w)) {
		*value = w->sp;
		return true;
	}
	if (reg == fp_number(w)) {
		*value = w->fp;
		return w->fp_known;
	}
	if (x86 && reg == CFI_X86_RA) { /* rip, of which linkage tables ask */
		*value = w->exact ? w->look : w->look + 1;
		return true;
	}
	if (!x86 && reg == CFI_ARM_LR) {
		*value = w->lr;
		return w->exact && w->lr_known;
	}
	if (reg >= UNW_REGS)
		return false;
	if (is_callee_saved(w->unwinder->arch, reg))
		return look_back(w, reg, value);
	*value = w->base->value[reg];
	return w->base_frame == w->n && (w->base->known >> reg & 1);
}

/* ---- rows without a compiled form ---- */

static bool read_register(void *data, uint64_t reg, uint64_t *value)
{
	return reg < UNW_REGS && walk_register(data, (unsigned int)reg, value);
}

static bool read_memory(void *data, uint64_t address, unsigned int size, uint64_t *value)
{
	struct walk *w = data;
	uint64_t at = address - w->stack_start, end = w->readable ? w->readable + 7 : 0;

	if (at >= end || size > end - at) {
		w->unreadable = true;
		return false;
	}
	*value = 0;
	memcpy(value, w->stack + at, size);
	return true;
}

static bool evaluate(struct walk *w, const struct cfi_rule *rule, uint64_t bias,
		     const uint64_t *cfa, uint64_t *value)
{
	const struct expr_context context = {
		.read_register = read_register,
		.read_memory = read_memory,
		.data = w,
		.bias = bias,
	};

	return expr_evaluate(rule->text, rule->len, &context, cfa, value);
}

/* Value of a register in the caller by an explicit rule. */
static bool by_rule(struct walk *w, const struct cfi_rule *rule, uint64_t bias, uint64_t cfa,
		    uint64_t *value)
{
	switch (rule->kind) {
	case CFI_OFFSET:
		return read_memory(w, cfa + (uint64_t)rule->value, 8, value);
	case CFI_VAL_OFFSET:
		*value = cfa + (uint64_t)rule->value;
		return true;
	case CFI_REGISTER:
		return read_register(w, (uint64_t)rule->value, value);
	case CFI_EXPRESSION:
		return evaluate(w, rule, bias, &cfa, value) && read_memory(w, *value, 8, value);
	case CFI_VAL_EXPRESSION:
		return evaluate(w, rule, bias, &cfa, value);
	default:
		return false;
	}
}

static bool row_cfa(struct walk *w, const struct cfi_row *row, uint64_t bias, uint64_t *cfa)
{
	if (row->cfa.kind == CFI_EXPRESSION)
		return evaluate(w, &row->cfa, bias, NULL, cfa);
	if (row->cfa.kind != CFI_REGISTER || !read_register(w, row->cfa.reg, cfa))
		return false;
	*cfa += (uint64_t)row->cfa.value;
	return true;
}

/* All registers of the caller. */
static void row_registers(struct walk *w, const struct cfi_row *row, uint64_t bias, uint64_t cfa,
			  struct unw_regs *next)
{
	unsigned int count = w->unwinder->arch == UNW_X86_64 ? CFI_X86_RA : CFI_ARM_SP + 1;

	next->known = 0;
	for (unsigned int reg = 0; reg < count; reg++) {
		const struct cfi_rule *rule = &row->regs[reg];
		bool known;

		if (rule->kind == CFI_UNSET || rule->kind == CFI_SAME)
			known = (is_callee_saved(w->unwinder->arch, reg) ||
				 rule->kind == CFI_SAME) &&
				walk_register(w, reg, &next->value[reg]);
		else
			known = by_rule(w, rule, bias, cfa, &next->value[reg]);
		if (known)
			next->known |= UINT64_C(1) << reg;
	}
	if (row->regs[sp_number(w)].kind == CFI_UNSET) {
		next->value[sp_number(w)] = cfa;
		next->known |= UINT64_C(1) << sp_number(w);
	}
}

static enum walk_next lost(struct walk *w, enum spulse_unwind_fallback reason)
{
	if (w->unreadable)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	return walk_frame_pointer(w, reason);
}

/* Sets the walk to the caller; `next` holds its registers. */
static enum walk_next enter_caller(struct walk *w, const struct unw_regs *next, uint64_t ra,
				   bool exact)
{
	uint64_t look = exact ? ra : ra - 1;
	uint64_t sp = next->value[sp_number(w)];

	/* An interrupted pc may be anything: the signal may tell of just that. */
	if (ra == 0 && !exact)
		return walk_complete(w);
	if (!walk_address_possible(ra) && !exact)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL);
	if (look == w->look && sp == w->sp)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_DID_NOT_ADVANCE);
	w->unwinder->steps[w->n] = (struct walk_step){sp, RULE_KEEPS_ALL};
	w->own_base = *next;
	w->base = &w->own_base;
	w->base_frame = w->n + 1;
	w->look = look;
	w->sp = sp;
	w->fp = next->value[fp_number(w)];
	w->fp_known = next->known >> fp_number(w) & 1;
	w->exact = exact;
	w->lr_known = false;
	if (w->unwinder->arch == UNW_AARCH64) {
		w->lr = next->value[CFI_ARM_LR];
		w->lr_known = exact && (next->known >> CFI_ARM_LR & 1);
	}
	return walk_advance(w);
}

static bool row_return_address(struct walk *w, const struct cfi_row *row, uint64_t bias,
			       uint64_t cfa, uint64_t *ra)
{
	const struct cfi_rule *rule = &row->regs[row->ra_column];
	bool found;

	if (rule->kind == CFI_UNSET || rule->kind == CFI_SAME)
		found = w->unwinder->arch == UNW_AARCH64 && read_register(w, row->ra_column, ra);
	else
		found = by_rule(w, rule, bias, cfa, ra);
	if (found && w->unwinder->arch == UNW_AARCH64)
		*ra &= w->unwinder->address_mask;
	return found;
}

/*
 * Thread starts of small C libraries have tables that were made for the thread which starts them:
 * for the new one the frame is its own caller. The frame pointer is zero there, the mark of the
 * outermost frame.
 */
static bool is_own_caller(struct walk *w, const struct cfi_row *row, uint64_t bias, uint64_t cfa)
{
	uint64_t ra;

	if (cfa != w->sp || w->exact || !w->fp_known || w->fp != 0)
		return false;
	return row_return_address(w, row, bias, cfa, &ra) && ra == w->look + 1;
}

enum walk_next walk_row(struct walk *w)
{
	const struct unw_map *map = walk_map(w, w->look);
	const struct cfi_rule *ra_rule;
	struct unw_regs next;
	struct cfi_row row;
	uint64_t cfa, ra;

	w->unreadable = false;
	if (!map || !unw_image_row(map->image, w->look - map->bias, &row))
		return walk_frame_pointer(w, SPULSE_UNWIND_FALLBACK_UNWIND_INFO);
	ra_rule = &row.regs[row.ra_column];
	if (ra_rule->kind == CFI_UNDEFINED ||
	    (ra_rule->kind == CFI_UNSET && (w->unwinder->arch == UNW_X86_64 || !w->exact)))
		return walk_complete(w);
	if (!row_cfa(w, &row, map->bias, &cfa))
		return lost(w, SPULSE_UNWIND_FALLBACK_NO_CFA);
	if (is_own_caller(w, &row, map->bias, cfa))
		return walk_complete(w);
	if (!row.signal && (cfa < w->sp || (cfa == w->sp && !w->exact)))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS);
	if (!row_return_address(w, &row, map->bias, cfa, &ra))
		return lost(w, SPULSE_UNWIND_FALLBACK_NO_RETURN_ADDRESS);
	row_registers(w, &row, map->bias, cfa, &next);
	if (!(next.known >> sp_number(w) & 1))
		return lost(w, SPULSE_UNWIND_FALLBACK_NO_CFA);
	return enter_caller(w, &next, ra, row.signal);
}

enum walk_next walk_interrupted(struct walk *w, const struct unw_regs *regs)
{
	unsigned int pc = w->unwinder->arch == UNW_X86_64 ? 16 : 32;

	return enter_caller(w, regs, regs->value[pc], true);
}

/* ---- guesses ---- */

bool walk_is_return_address(struct walk *w, uint64_t address)
{
	const struct unw_map *map;

	if (!walk_address_possible(address))
		return false;
	map = unw_space_find(w->space, address - 1);
	if (!map)
		return false;
	return !map->image || unw_image_call_before(map->image, address - map->bias);
}

/* Whether code may lie where no mapping is known, as the mappings could not be read. */
static bool mappings_unknown(const struct unw_space *space)
{
	return space->partial || !space->table || !space->table->places.len;
}

/*
 * A frame pointer of zero marks the outermost frame, unless a table says that there is a caller, or
 * the address is no code: that is where garbage and the kernel's return probes lead.
 */
static bool is_outermost(const struct walk *w, enum spulse_unwind_fallback reason)
{
	return reason < SPULSE_UNWIND_FALLBACK_MOVED_BACKWARDS &&
	       (mappings_unknown(w->space) || unw_space_find(w->space, w->look));
}

/*
 * The frame pointers must ascend where nothing is known of the code, and what they lead to must
 * not be the stack.
 */
static bool may_be_unknown_code(const struct walk *w, uint64_t ra, uint64_t fp)
{
	const struct unw_space *space = w->space;

	return mappings_unknown(space) && walk_address_possible(ra) &&
	       !unw_space_find(space, ra - 1) && ra - w->stack_start >= w->readable + 7 &&
	       (fp == 0 || fp > w->fp);
}

enum walk_next walk_frame_pointer(struct walk *w, enum spulse_unwind_fallback reason)
{
	uint64_t ra, fp;

	if (!w->fp_known)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	if (w->fp == 0)
		return is_outermost(w, reason)
			       ? walk_complete(w)
			       : walk_fail(w, SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL);
	if (w->fp < w->sp || w->fp % 8)
		return walk_fail(w, SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS);
	if (!walk_word(w, w->fp, &fp) || !walk_word(w, w->fp + 8, &ra))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_STACK_TRUNCATED);
	if (w->unwinder->arch == UNW_AARCH64)
		ra &= w->unwinder->address_mask;
	if (ra == 0)
		return walk_complete(w);
	if (!walk_is_return_address(w, ra) && !may_be_unknown_code(w, ra, fp))
		return walk_fail(w, SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL);
	walk_count_fallback(w, reason);
	w->sp = w->fp + 16;
	w->fp = fp;
	w->look = ra - 1;
	w->exact = w->lr_known = false;
	w->unwinder->steps[w->n] = (struct walk_step){w->sp, RULE_FRAME_POINTER};
	return walk_advance(w);
}

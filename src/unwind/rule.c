/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Rows to 8-byte rules. More than 99 % of the rows of real images fit. */
#include "rule.h"

#include "dwarfcodes.h"

static const uint8_t x86_cell_register[RULE_CELLS] = {CFI_X86_RBP, 3, 12, 13, 14, 15};

/* Whether `text` is one "breg" of a register; its offset. */
static bool take_breg(struct cursor *c, unsigned int reg, int64_t *offset)
{
	if (cursor_u8(c) != DW_OP_breg0 + reg)
		return false;
	*offset = cursor_sleb(c);
	return !c->bad;
}

static struct cursor text_of(const struct cfi_rule *rule)
{
	return (struct cursor){rule->text, rule->text + rule->len, false};
}

/* rsp + 8 + (((rip & 15) >= k) << 3): how linkers describe a lazy procedure linkage table. */
static rule_t compile_plt(const struct cfi_rule *cfa)
{
	static const uint8_t head[] = {DW_OP_breg0 + CFI_X86_RSP, 8,
				       DW_OP_breg0 + CFI_X86_RA,  0,
				       DW_OP_lit0 + 15,		  DW_OP_and};
	static const uint8_t tail[] = {DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus};
	size_t k = sizeof(head);

	if (cfa->len != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(cfa->text, head, sizeof(head)) != 0 ||
	    memcmp(cfa->text + k + 1, tail, sizeof(tail)) != 0 || cfa->text[k] < DW_OP_lit0 ||
	    cfa->text[k] > DW_OP_lit0 + 15)
		return RULE_SLOW;
	return rule_make(RULE_PLT, cfa->text[k] - DW_OP_lit0, 0);
}

/* [rsp + N] + k or [rbp + N] + k: assembly that saved rsp; functions that realign the stack. */
static rule_t compile_cell(const struct cfi_rule *cfa)
{
	struct cursor c = text_of(cfa);
	enum rule_kind kind = RULE_CELL_SP;
	uint64_t add = 0;
	int64_t n;

	if (!take_breg(&c, CFI_X86_RSP, &n)) {
		c = text_of(cfa);
		kind = RULE_CELL_FP;
		if (!take_breg(&c, CFI_X86_RBP, &n))
			return RULE_SLOW;
	}
	if (cursor_u8(&c) != DW_OP_deref)
		return RULE_SLOW;
	if (c.p < c.end) {
		if (cursor_u8(&c) != DW_OP_plus_uconst)
			return RULE_SLOW;
		add = cursor_uleb(&c);
	}
	if (c.bad || c.p != c.end || add % 8 || add / 8 > 63 || n % 8 || n / 8 < -8192 ||
	    n / 8 > 8191)
		return RULE_SLOW;
	return rule_make(kind, n / 8, (unsigned int)(add / 8));
}

static rule_t compile_x86_cfa(const struct cfi_rule *cfa)
{
	int64_t n = cfa->value / 8;
	rule_t rule;

	if (cfa->kind == CFI_EXPRESSION) {
		rule = compile_plt(cfa);
		return rule_kind(rule) == RULE_SLOW ? compile_cell(cfa) : rule;
	}
	if (cfa->kind != CFI_REGISTER || cfa->value % 8 || cfa->reg >= CFI_X86_RA)
		return RULE_SLOW;
	if (cfa->reg == CFI_X86_RSP) {
		if (n < 1)
			return RULE_SLOW;
		return n > RULE_MAX_CAPTURE / 8 ? rule_make(RULE_TRUNCATED, 0, 0)
						: rule_make(RULE_SP, n, 0);
	}
	if (n < -8192 || n > 8191)
		return RULE_SLOW;
	return cfa->reg == CFI_X86_RBP ? rule_make(RULE_FP, n, 0)
				       : rule_make(RULE_REGISTER, n, cfa->reg);
}

/* Adds where a callee-saved register lies; false when the rule cannot say it. */
static bool add_cell(rule_t *rule, unsigned int i, const struct cfi_rule *saved)
{
	int64_t x = (-saved->value - 16) / 8;
	struct cursor c;
	int64_t offset;

	switch (saved->kind) {
	case CFI_UNSET:
	case CFI_SAME:
		return true;
	case CFI_UNDEFINED:
		*rule |= RULE_FP_LOST;
		return i == 0;
	case CFI_EXPRESSION:
		c = text_of(saved);
		*rule |= RULE_FP_AT_FP;
		return i == 0 && take_breg(&c, CFI_X86_RBP, &offset) && offset == 0 && c.p == c.end;
	case CFI_OFFSET:
		if (saved->value % 8 || saved->value > -16 || x >= RULE_UNSAVED)
			return false;
		*rule &= ~((rule_t)15 << (24 + 4 * i));
		*rule |= (rule_t)x << (24 + 4 * i);
		return true;
	default:
		return false;
	}
}

static bool is_cfa(const struct cfi_rule *sp)
{
	return sp->kind == CFI_UNSET || (sp->kind == CFI_VAL_OFFSET && sp->value == 0);
}

static rule_t compile_x86(const struct cfi_row *row)
{
	const struct cfi_rule *ra = &row->regs[CFI_X86_RA];
	rule_t rule;

	if (row->signal || row->ra_column != CFI_X86_RA)
		return RULE_SLOW;
	if (ra->kind == CFI_UNDEFINED || ra->kind == CFI_UNSET)
		return rule_make(RULE_END, 0, 0);
	if (ra->kind != CFI_OFFSET || ra->value != -8 || !is_cfa(&row->regs[CFI_X86_RSP]))
		return RULE_SLOW;
	rule = compile_x86_cfa(&row->cfa);
	if (rule_kind(rule) == RULE_SLOW || rule_kind(rule) == RULE_TRUNCATED)
		return rule;
	for (unsigned int i = 0; i < RULE_CELLS; i++)
		if (!add_cell(&rule, i, &row->regs[x86_cell_register[i]]))
			return RULE_SLOW;
	return rule;
}

/* Cell number of a saved register: 0 when it is kept, -1 when the rule cannot say it. */
static int64_t arm_cell(const struct cfi_rule *saved)
{
	if (saved->kind == CFI_UNSET || saved->kind == CFI_SAME)
		return 0;
	if (saved->kind != CFI_OFFSET || saved->value % 8 || saved->value > -8 ||
	    saved->value < -0x3fff * 8)
		return -1;
	return -saved->value / 8;
}

static rule_t compile_arm(const struct cfi_row *row)
{
	const struct cfi_rule *cfa = &row->cfa, *sp = &row->regs[CFI_ARM_SP];
	int64_t n = cfa->value / 8, lr, fp;

	if (row->signal || row->ra_column != CFI_ARM_LR)
		return RULE_SLOW;
	if (row->regs[CFI_ARM_LR].kind == CFI_UNDEFINED)
		return RULE_END;
	lr = arm_cell(&row->regs[CFI_ARM_LR]);
	fp = arm_cell(&row->regs[CFI_ARM_FP]);
	if (cfa->kind != CFI_REGISTER || cfa->value % 8 || n < -0x4000 || n > 0x3fff ||
	    (cfa->reg != CFI_ARM_SP && cfa->reg != CFI_ARM_FP) || lr < 0 || fp < 0 || !is_cfa(sp) ||
	    (cfa->reg == CFI_ARM_SP && n < 0))
		return RULE_SLOW;
	return (cfa->reg == CFI_ARM_SP ? RULE_SP : RULE_FP) | ((rule_t)n & 0x7fff) << 4 |
	       (rule_t)lr << 19 | (rule_t)fp << 33;
}

rule_t rule_compile(enum unw_arch arch, const struct cfi_row *row)
{
	return arch == UNW_X86_64 ? compile_x86(row) : compile_arm(row);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The row program: instructions of the CIE, then those of the FDE up to the wanted address. The
 * CIE's rules are kept for DW_CFA_restore; remembered rows sit on a stack of bounded depth (the
 * deepest one seen in real files is 1).
 */
#include "cfi.h"

#include "dwarfcodes.h"

enum {
	MAX_INSTRUCTIONS = 65536, /* of one FDE; real ones stay far below */
	MAX_REMEMBERED = 16,
	MAX_EXPRESSION = 4096, /* bytes; real ones have a few */
};

struct run {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cursor c;
	uint64_t location, address;
	struct cfi_row *row;
	const struct cfi_row *initial; /* NULL while the CIE's program runs */
	struct cfi_row remembered[MAX_REMEMBERED];
	unsigned int depth;
};

enum run_result { RUN_GOES_ON, RUN_DONE, RUN_BAD };

static void set_rule(struct run *run, uint64_t reg, uint8_t kind, int64_t value)
{
	/* Registers that no walk follows (vector ones) are read over. */
	if (reg < CFI_REGS)
		run->row->regs[reg] = (struct cfi_rule){.kind = kind, .value = value};
}

static int64_t factored(const struct run *run, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)run->cie->data_align);
}

static enum run_result block(struct run *run, struct cfi_rule *rule, uint8_t kind)
{
	uint64_t len = cursor_uleb(&run->c);
	const uint8_t *text = run->c.p;

	cursor_skip(&run->c, len);
	if (run->c.bad || len > MAX_EXPRESSION)
		return RUN_BAD;
	if (rule)
		*rule = (struct cfi_rule){.kind = kind, .len = (uint32_t)len, .text = text};
	return RUN_GOES_ON;
}

static enum run_result register_block(struct run *run, uint8_t kind)
{
	uint64_t reg = cursor_uleb(&run->c);

	return block(run, reg < CFI_REGS ? &run->row->regs[reg] : NULL, kind);
}

static enum run_result move_to(struct run *run, uint64_t location)
{
	if (location < run->location)
		return RUN_BAD;
	if (location > run->address) {
		run->row->end = MIN(run->row->end, location);
		return RUN_DONE;
	}
	run->location = location;
	run->row->start = location;
	return RUN_GOES_ON;
}

static enum run_result advance(struct run *run, uint64_t delta)
{
	uint64_t location;

	if (!run->initial || mul_overflows(delta, run->cie->code_align, &delta) ||
	    add_overflows(run->location, delta, &location))
		return RUN_BAD;
	return move_to(run, location);
}

static enum run_result restore(struct run *run, uint64_t reg)
{
	if (!run->initial)
		return RUN_BAD;
	if (reg < CFI_REGS)
		run->row->regs[reg] = run->initial->regs[reg];
	return RUN_GOES_ON;
}

static enum run_result remember(struct run *run)
{
	if (run->depth == MAX_REMEMBERED)
		return RUN_BAD;
	run->remembered[run->depth++] = *run->row;
	return RUN_GOES_ON;
}

static enum run_result recall(struct run *run)
{
	uint64_t start = run->row->start, end = run->row->end;

	if (!run->depth)
		return RUN_BAD;
	*run->row = run->remembered[--run->depth];
	run->row->start = start;
	run->row->end = end;
	return RUN_GOES_ON;
}

static void def_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	struct cfi_rule *cfa = &run->row->cfa;

	*cfa = (struct cfi_rule){.kind = CFI_REGISTER, .reg = (uint8_t)reg, .value = offset};
	if (reg >= CFI_REGS)
		cfa->kind = CFI_UNDEFINED;
}

static enum run_result set_location(struct run *run)
{
	uint64_t location;

	if (!run->initial || !cfi_pointer(&run->c, run->section, run->cie->fde_encoding,
					  run->section->got_addr, &location))
		return RUN_BAD;
	return move_to(run, location);
}

static enum run_result cfa_register(struct run *run, uint64_t reg)
{
	if (run->row->cfa.kind != CFI_REGISTER)
		return RUN_BAD;
	def_cfa(run, reg, run->row->cfa.value);
	return RUN_GOES_ON;
}

static enum run_result cfa_offset(struct run *run, int64_t offset)
{
	if (run->row->cfa.kind != CFI_REGISTER)
		return RUN_BAD;
	run->row->cfa.value = offset;
	return RUN_GOES_ON;
}

/* AArch64: return addresses are signed from here on, or no longer. On others: a register window. */
static void toggle_signing(struct run *run)
{
	struct cfi_rule *state = &run->row->regs[CFI_ARM_SIGN_STATE];

	if (run->section->arch == UNW_AARCH64)
		*state = (struct cfi_rule){.kind = CFI_SAME, .value = !state->value};
}

static enum run_result extended(struct run *run, uint8_t op)
{
	struct cursor *c = &run->c;
	uint64_t reg;

	switch (op) {
	case DW_CFA_nop:
		return RUN_GOES_ON;
	case DW_CFA_set_loc:
		return set_location(run);
	case DW_CFA_advance_loc1:
		return advance(run, cursor_u8(c));
	case DW_CFA_advance_loc2:
		return advance(run, cursor_u16(c));
	case DW_CFA_advance_loc4:
		return advance(run, cursor_u32(c));
	case DW_CFA_MIPS_advance_loc8:
		return advance(run, cursor_u64(c));
	case DW_CFA_offset_extended:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_OFFSET, factored(run, (int64_t)cursor_uleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_offset_extended_sf:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_OFFSET, factored(run, cursor_sleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_GNU_negative_offset_extended:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_OFFSET, factored(run, -(int64_t)cursor_uleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_val_offset:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_VAL_OFFSET, factored(run, (int64_t)cursor_uleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_val_offset_sf:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_VAL_OFFSET, factored(run, cursor_sleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_restore_extended:
		return restore(run, cursor_uleb(c));
	case DW_CFA_undefined:
		set_rule(run, cursor_uleb(c), CFI_UNDEFINED, 0);
		return RUN_GOES_ON;
	case DW_CFA_same_value:
		set_rule(run, cursor_uleb(c), CFI_SAME, 0);
		return RUN_GOES_ON;
	case DW_CFA_register:
		reg = cursor_uleb(c);
		set_rule(run, reg, CFI_REGISTER, (int64_t)cursor_uleb(c));
		return RUN_GOES_ON;
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_def_cfa:
		reg = cursor_uleb(c);
		def_cfa(run, reg, (int64_t)cursor_uleb(c));
		return RUN_GOES_ON;
	case DW_CFA_def_cfa_sf:
		reg = cursor_uleb(c);
		def_cfa(run, reg, factored(run, cursor_sleb(c)));
		return RUN_GOES_ON;
	case DW_CFA_def_cfa_register:
		return cfa_register(run, cursor_uleb(c));
	case DW_CFA_def_cfa_offset:
		return cfa_offset(run, (int64_t)cursor_uleb(c));
	case DW_CFA_def_cfa_offset_sf:
		return cfa_offset(run, factored(run, cursor_sleb(c)));
	case DW_CFA_def_cfa_expression:
		return block(run, &run->row->cfa, CFI_EXPRESSION);
	case DW_CFA_expression:
		return register_block(run, CFI_EXPRESSION);
	case DW_CFA_val_expression:
		return register_block(run, CFI_VAL_EXPRESSION);
	case DW_CFA_GNU_window_save: /* also DW_CFA_AARCH64_negate_ra_state */
		toggle_signing(run);
		return RUN_GOES_ON;
	case DW_CFA_GNU_args_size:
		cursor_uleb(c);
		return RUN_GOES_ON;
	default:
		return RUN_BAD;
	}
}

static enum run_result instruction(struct run *run)
{
	uint8_t op = cursor_u8(&run->c);

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(run, op & 0x3f);
	case DW_CFA_offset:
		set_rule(run, op & 0x3f, CFI_OFFSET, factored(run, (int64_t)cursor_uleb(&run->c)));
		return RUN_GOES_ON;
	case DW_CFA_restore:
		return restore(run, op & 0x3f);
	default:
		return extended(run, op);
	}
}

static enum run_result run_program(struct run *run, const uint8_t *program, const uint8_t *end)
{
	enum run_result result = RUN_GOES_ON;

	run->c = (struct cursor){program, end, false};
	for (unsigned int i = 0; run->c.p < run->c.end && result == RUN_GOES_ON; i++) {
		if (i == MAX_INSTRUCTIONS)
			return RUN_BAD;
		result = instruction(run);
		if (run->c.bad)
			return RUN_BAD;
	}
	return result;
}

bool cfi_row(const struct cfi_section *section, const struct cfi_cie *cie,
	     const struct cfi_fde *fde, uint64_t address, struct cfi_row *row)
{
	struct cfi_row initial;
	struct run run;

	*row = (struct cfi_row){.ra_column = cie->ra_column, .signal = cie->signal};
	run.section = section;
	run.cie = cie;
	run.row = row;
	run.address = address;
	run.location = fde->start;
	run.initial = NULL;
	run.depth = 0;
	if (address < fde->start || address >= fde->end || cie->ra_column >= CFI_REGS)
		return false;
	if (run_program(&run, cie->program, cie->program_end) == RUN_BAD)
		return false;
	initial = *row;
	run.initial = &initial;
	row->start = fde->start;
	row->end = fde->end;
	return run_program(&run, fde->program, fde->program_end) != RUN_BAD;
}

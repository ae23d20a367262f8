/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Where a function without tables goes from here tells how deep its frame is: what it will take
 * off the stack until it returns. This needs no knowledge of where the function starts. Calls are
 * taken to leave the stack as it is, conditional jumps not to be taken; a wrong guess is found out
 * by the caller, who checks that the result is a return address.
 */
#include "epilogue.h"

#include "cursor.h"

enum {
	MAX_STEPS = 256,
	REX_W = 8,
	REX_R = 4,
	REX_B = 1,
	RSP = 4, /* as instructions number registers */
	RBP = 5,
};

struct insn {
	uint8_t rex, op, map; /* map: 0, 0x0f, 0x38, 0x3a */
	bool vex, has_modrm, operand16;
	uint8_t mod, reg, rm; /* with the bits of the prefix */
	uint8_t base;	      /* of a memory operand; 0xff: none */
	int32_t disp, imm;
};

struct way {
	struct cursor c;
	const uint8_t *start;
	bool by_fp;	    /* at counts from the frame pointer, else from sp */
	bool fp_set;	    /* the frame pointer was set on the way, to sp + fp_at */
	int64_t at, fp_at;  /* where sp is now */
	int64_t cell[RULE_CELLS];
};

enum step { STEP_ON, STEP_RETURN, STEP_LOST };

/* ---- reading instructions ---- */

static int32_t read_number(struct cursor *c, unsigned int size)
{
	switch (size) {
	case 0:
		return 0;
	case 1:
		return (int8_t)cursor_u8(c);
	case 2:
		return (int16_t)cursor_u16(c);
	case 8:
		cursor_skip(c, 8);
		return 0;
	default:
		return (int32_t)cursor_u32(c);
	}
}

static void read_modrm(struct cursor *c, struct insn *i)
{
	uint8_t modrm = cursor_u8(c), sib;

	i->has_modrm = true;
	i->mod = modrm >> 6;
	i->reg = ((modrm >> 3) & 7) | (i->rex & REX_R ? 8 : 0);
	i->rm = (modrm & 7) | (i->rex & REX_B ? 8 : 0);
	if (i->mod == 3)
		return;
	i->base = i->rm;
	if ((modrm & 7) == 4) {
		sib = cursor_u8(c);
		i->base = (sib & 0x38) == 0x20 ? (sib & 7) | (i->rex & REX_B ? 8 : 0) : 0xff;
		if (i->mod == 0 && (sib & 7) == 5) {
			i->base = 0xff;
			i->disp = read_number(c, 4);
			return;
		}
	} else if (i->mod == 0 && (modrm & 7) == 5) {
		i->base = 0xff;
		i->disp = read_number(c, 4);
		return;
	}
	if (i->mod)
		i->disp = read_number(c, i->mod == 1 ? 1 : 4);
}

/* Opcodes of one byte: whether a ModRM byte follows. */
static bool one_byte_modrm(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) ||
	       op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static unsigned int one_byte_immediate(const struct insn *i)
{
	unsigned int word = i->operand16 ? 2 : 4;
	uint8_t op = i->op;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
	switch (op) {
	case 0x6a: case 0x6b: case 0x80: case 0x82: case 0x83: case 0xa8: case 0xc0: case 0xc1:
	case 0xc6: case 0xcd: case 0xeb:
		return 1;
	case 0x68: case 0x69: case 0x81: case 0xa9: case 0xc7:
		return word;
	case 0xe8: case 0xe9:
		return 4;
	case 0xc2:
		return 2;
	case 0xf6:
		return i->reg & 6 ? 0 : 1;
	case 0xf7:
		return i->reg & 6 ? 0 : word;
	default:
		if ((op >= 0x70 && op <= 0x7f) || (op >= 0xb0 && op <= 0xb7) ||
		    (op >= 0xe0 && op <= 0xe3))
			return 1;
		if (op >= 0xb8 && op <= 0xbf)
			return i->rex & REX_W ? 8 : word;
		return 0;
	}
}

/* Opcodes behind 0f. */
static bool two_byte_modrm(uint8_t op)
{
	return !(op == 0x05 || op == 0x06 || op == 0x08 || op == 0x09 || op == 0x0b ||
		 (op >= 0x30 && op <= 0x37) || op == 0x77 || (op >= 0x80 && op <= 0x8f) ||
		 (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) || op >= 0xf8 + 7 ||
		 (op >= 0xc8 && op <= 0xcf));
}

static unsigned int two_byte_immediate(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba ||
	       op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
}

/* The prefixes of vector instructions, which name the opcode's map themselves. */
static void read_vex(struct cursor *c, struct insn *i, uint8_t first)
{
	static const uint8_t maps[] = {0, 0x0f, 0x38, 0x3a};
	uint8_t b = cursor_u8(c);

	i->vex = true;
	i->map = first == 0xc5 ? 0x0f : maps[b & 3];
	i->rex = (b & 0x80 ? 0 : REX_R) | (first == 0xc5 || b & 0x20 ? 0 : REX_B);
	if (first != 0xc5)
		cursor_u8(c);
	if (first == 0x62)
		cursor_u8(c);
	i->op = cursor_u8(c);
}

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0xf2 || b == 0xf3 || b == 0xf0 || b == 0x2e || b == 0x36 ||
	       b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

static bool read_insn(struct cursor *c, struct insn *i)
{
	uint8_t b = cursor_u8(c);

	*i = (struct insn){.base = 0xff};
	for (unsigned int n = 0; is_prefix(b) && n < 14; n++) {
		i->operand16 |= b == 0x66;
		b = cursor_u8(c);
	}
	if ((b & 0xf0) == 0x40) {
		i->rex = b;
		b = cursor_u8(c);
	}
	i->op = b;
	if (b == 0xc4 || b == 0xc5 || b == 0x62) {
		read_vex(c, i, b);
	} else if (b == 0x0f) {
		i->map = b;
		i->op = cursor_u8(c);
		if (i->op == 0x38 || i->op == 0x3a) {
			i->map = i->op;
			i->op = cursor_u8(c);
		}
	}
	if (i->map ? i->map != 0x0f || two_byte_modrm(i->op) : one_byte_modrm(i->op))
		read_modrm(c, i);
	if (!i->map)
		i->imm = read_number(c, one_byte_immediate(i));
	else
		i->imm = read_number(c, i->map == 0x0f ? two_byte_immediate(i->op)
						       : i->map == 0x3a);
	return !c->bad;
}

/* ---- what they do ---- */

/* Order of the cells in a rule, by instruction's numbers. */
static int cell_of(unsigned int reg)
{
	static const int8_t cells[16] = {-1, -1, -1, 1, -1, 0, -1, -1, -1, -1, -1, -1, 2, 3, 4, 5};

	return cells[reg];
}

static enum step pop(struct way *w, unsigned int reg)
{
	int cell = cell_of(reg);

	if (reg == RSP)
		return STEP_LOST;
	/* What was pushed on the way is in the register still. */
	if (cell >= 0 && (w->by_fp || w->at >= 0) && w->cell[cell] == INT64_MIN)
		w->cell[cell] = w->at;
	w->at += 8;
	return STEP_ON;
}

static enum step sp_from_fp(struct way *w, int64_t disp)
{
	if (w->fp_set) {
		w->at = w->fp_at + disp;
	} else {
		w->by_fp = true;
		w->at = disp;
	}
	return STEP_ON;
}

static enum step jump(struct way *w, int64_t distance)
{
	int64_t target = (w->c.p - w->start) + distance;

	/* Far away another function goes on in this one's place. */
	if (target < 0 || target >= w->c.end - w->start)
		return STEP_RETURN;
	w->c.p = w->start + target;
	return STEP_ON;
}

static enum step move(struct way *w, unsigned int to, unsigned int from)
{
	if (to == RSP)
		return from == RBP ? sp_from_fp(w, 0) : STEP_LOST;
	if (to == RBP && from == RSP && !w->by_fp) {
		w->fp_set = true;
		w->fp_at = w->at;
	}
	return STEP_ON;
}

/* Arithmetic with a constant. */
static enum step add_constant(struct way *w, const struct insn *i)
{
	if (i->mod != 3 || i->rm != RSP)
		return STEP_ON;
	switch (i->reg & 7) {
	case 0:
		w->at += i->imm;
		return STEP_ON;
	case 5:
		w->at -= i->imm;
		return STEP_ON;
	case 7: /* compares */
		return STEP_ON;
	default:
		return STEP_LOST;
	}
}

static enum step load_address(struct way *w, const struct insn *i)
{
	if (i->reg == RBP && i->base == RSP && !w->by_fp) {
		w->fp_set = true;
		w->fp_at = w->at + i->disp;
	}
	if (i->reg != RSP)
		return STEP_ON;
	if (i->base == RSP) {
		w->at += i->disp;
		return STEP_ON;
	}
	return i->base == RBP ? sp_from_fp(w, i->disp) : STEP_LOST;
}

static enum step group_ff(struct way *w, const struct insn *i)
{
	switch (i->reg & 7) {
	case 4:
		return STEP_RETURN;
	case 6:
		w->at -= 8;
		return STEP_ON;
	case 2: case 3:
		return STEP_ON;
	default:
		return i->mod == 3 && i->rm == RSP ? STEP_LOST : STEP_ON;
	}
}

static bool writes_sp(const struct insn *i)
{
	bool to_rm = i->mod == 3 && i->rm == RSP && i->has_modrm;

	if (i->op < 0x38)
		return (i->op & 7) == 3 ? i->reg == RSP : (i->op & 7) == 1 && to_rm;
	switch (i->op) {
	case 0x63: case 0x69: case 0x6b:
		return i->reg == RSP;
	case 0x87:
		return i->reg == RSP || to_rm;
	case 0x94: case 0xbc: /* exchange with rax, load a constant */
		return !(i->rex & REX_B);
	case 0xc1: case 0xc7: case 0xd1: case 0xd3: case 0xf7:
		return to_rm;
	default:
		return false;
	}
}

/* Of the two-byte opcodes conditional moves, wider loads and products give a register's value. */
static bool extended_writes_sp(const struct insn *i)
{
	return i->map == 0x0f && !i->vex && i->reg == RSP &&
	       ((i->op & 0xf0) == 0x40 || i->op == 0xaf || i->op == 0xb6 || i->op == 0xb7 ||
		i->op == 0xbe || i->op == 0xbf);
}

static enum step step_of(struct way *w, const struct insn *i)
{
	unsigned int reg = (i->op & 7) | (i->rex & REX_B ? 8 : 0);

	if (i->map)
		return extended_writes_sp(i) || (i->map == 0x0f && i->op == 0x0b && !i->vex)
			       ? STEP_LOST
			       : STEP_ON;
	if (i->op >= 0x50 && i->op <= 0x57) {
		w->at -= 8;
		return STEP_ON;
	}
	if (i->op >= 0x58 && i->op <= 0x5f)
		return pop(w, reg);
	switch (i->op) {
	case 0x68: case 0x6a: case 0x9c:
		w->at -= 8;
		return STEP_ON;
	case 0x8f: case 0x9d:
		w->at += 8;
		return STEP_ON;
	case 0x81: case 0x83:
		return add_constant(w, i);
	case 0x89:
		return i->mod == 3 ? move(w, i->rm, i->reg) : STEP_ON;
	case 0x8b:
		return i->mod == 3 ? move(w, i->reg, i->rm) : i->reg == RSP ? STEP_LOST : STEP_ON;
	case 0x8d:
		return load_address(w, i);
	case 0xc9:
		sp_from_fp(w, 0);
		return pop(w, RBP);
	case 0xc2: case 0xc3:
		return STEP_RETURN;
	case 0xe9: case 0xeb:
		return jump(w, i->imm);
	case 0xff:
		return group_ff(w, i);
	case 0xc8: case 0xca: case 0xcb: case 0xcc: case 0xcd: case 0xcf: case 0xf4:
		return STEP_LOST;
	default:
		return writes_sp(i) ? STEP_LOST : STEP_ON;
	}
}

/* The frame at the return: sp points to the return address. */
static rule_t rule_of(const struct way *w)
{
	int64_t cfa = w->at + 8;
	rule_t rule;

	if (cfa % 8 || cfa <= (w->by_fp ? 8 : 0) || cfa > RULE_MAX_CAPTURE)
		return 0;
	rule = rule_make(w->by_fp ? RULE_FP : RULE_SP, cfa / 8, 0);
	for (unsigned int i = 0; i < RULE_CELLS; i++) {
		int64_t cell;

		if (w->cell[i] == INT64_MIN)
			continue;
		cell = (cfa - 16 - w->cell[i]) / 8;
		if (cell < 0 || cell >= RULE_UNSAVED)
			continue;
		rule &= ~((rule_t)15 << (24 + 4 * i));
		rule |= (rule_t)cell << (24 + 4 * i);
	}
	return rule;
}

rule_t epilogue_rule(const struct code_window *window, bool exact)
{
	struct way w = {.start = window->bytes};
	enum step step = STEP_ON;
	size_t from = window->before + !exact;

	if (from >= window->len)
		return 0;
	w.c = (struct cursor){window->bytes + from, window->bytes + window->len, false};
	for (size_t i = 0; i < RULE_CELLS; i++)
		w.cell[i] = INT64_MIN;
	for (unsigned int n = 0; n < MAX_STEPS && step == STEP_ON; n++) {
		struct insn insn;

		if (!read_insn(&w.c, &insn))
			return 0;
		step = step_of(&w, &insn);
	}
	return step == STEP_RETURN ? rule_of(&w) : 0;
}

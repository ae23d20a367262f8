/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions of unwind tables. Real ones have at most ten operators; the bounds leave room
 * and stop loops.
 */
#include "expr.h"

#include "dwarfcodes.h"

#include "cursor.h"

enum { MAX_STEPS = 256, MAX_WORDS = 64 };

struct machine {
	const struct expr_context *context;
	const uint8_t *text;
	struct cursor c;
	uint64_t words[MAX_WORDS];
	unsigned int depth;
	bool bad;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == MAX_WORDS)
		m->bad = true;
	else
		m->words[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->words[--m->depth];
	m->bad = true;
	return 0;
}

static void push_nth(struct machine *m, unsigned int n)
{
	if (n >= m->depth)
		m->bad = true;
	else
		push(m, m->words[m->depth - 1 - n]);
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	uint64_t value = 0;

	if (!m->context->read_register(m->context->data, reg, &value))
		m->bad = true;
	push(m, value + (uint64_t)offset);
}

static void deref(struct machine *m, unsigned int size)
{
	uint64_t value = 0, address = pop(m);

	if ((size != 1 && size != 2 && size != 4 && size != 8) || m->bad ||
	    !m->context->read_memory(m->context->data, address, size, &value))
		m->bad = true;
	push(m, value);
}

/* The top `n` words turn by one: the top goes below the others. */
static void turn(struct machine *m, unsigned int n)
{
	uint64_t top;

	if (m->depth < n) {
		m->bad = true;
		return;
	}
	top = m->words[m->depth - 1];
	for (unsigned int i = 1; i < n; i++)
		m->words[m->depth - i] = m->words[m->depth - i - 1];
	m->words[m->depth - n] = top;
}

static void jump(struct machine *m, int16_t by)
{
	ptrdiff_t at = m->c.p - m->text + by;

	if (m->c.bad || at < 0 || at > m->c.end - m->text)
		m->bad = true;
	else
		m->c.p = m->text + at;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (b == 0) {
		m->bad = true;
		return 0;
	}
	if (b == UINT64_MAX)
		return -a; /* INT64_MIN / -1 would trap */
	return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t modulo(struct machine *m, uint64_t a, uint64_t b)
{
	if (b == 0) {
		m->bad = true;
		return 0;
	}
	return a % b;
}

static uint64_t shift_right(uint64_t a, uint64_t by, bool arithmetic)
{
	uint64_t fill = arithmetic && (int64_t)a < 0 ? UINT64_MAX : 0;

	if (by == 0)
		return a;
	return by > 63 ? fill : (a >> by) | (fill << (64 - by));
}

/* Operators of two words; false for any other. */
static bool binary(struct machine *m, uint8_t op)
{
	uint64_t b, a;

	if (!((op >= DW_OP_and && op <= DW_OP_plus && op != DW_OP_neg && op != DW_OP_not &&
	       op != DW_OP_abs) ||
	      (op >= DW_OP_shl && op <= DW_OP_xor) || (op >= DW_OP_eq && op <= DW_OP_ne)))
		return false;
	b = pop(m);
	a = pop(m);
	switch (op) {
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_or:
		push(m, a | b);
		break;
	case DW_OP_xor:
		push(m, a ^ b);
		break;
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_div:
		push(m, divide(m, a, b));
		break;
	case DW_OP_mod:
		push(m, modulo(m, a, b));
		break;
	case DW_OP_shl:
		push(m, b > 63 ? 0 : a << b);
		break;
	case DW_OP_shr:
		push(m, shift_right(a, b, false));
		break;
	case DW_OP_shra:
		push(m, shift_right(a, b, true));
		break;
	case DW_OP_eq:
		push(m, a == b);
		break;
	case DW_OP_ne:
		push(m, a != b);
		break;
	case DW_OP_lt:
		push(m, (int64_t)a < (int64_t)b);
		break;
	case DW_OP_le:
		push(m, (int64_t)a <= (int64_t)b);
		break;
	case DW_OP_gt:
		push(m, (int64_t)a > (int64_t)b);
		break;
	case DW_OP_ge:
		push(m, (int64_t)a >= (int64_t)b);
		break;
	default:
		m->bad = true;
	}
	return true;
}

/* Operators that push a constant; false for any other. */
static bool constant(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->c;

	switch (op) {
	case DW_OP_addr:
		push(m, cursor_u64(c) + m->context->bias);
		break;
	case DW_OP_const1u:
		push(m, cursor_u8(c));
		break;
	case DW_OP_const1s:
		push(m, (uint64_t)(int64_t)(int8_t)cursor_u8(c));
		break;
	case DW_OP_const2u:
		push(m, cursor_u16(c));
		break;
	case DW_OP_const2s:
		push(m, (uint64_t)(int64_t)(int16_t)cursor_u16(c));
		break;
	case DW_OP_const4u:
		push(m, cursor_u32(c));
		break;
	case DW_OP_const4s:
		push(m, (uint64_t)(int64_t)(int32_t)cursor_u32(c));
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, cursor_u64(c));
		break;
	case DW_OP_constu:
		push(m, cursor_uleb(c));
		break;
	case DW_OP_consts:
		push(m, (uint64_t)cursor_sleb(c));
		break;
	default:
		if (op < DW_OP_lit0 || op > DW_OP_lit31)
			return false;
		push(m, op - DW_OP_lit0);
	}
	return true;
}

static void other(struct machine *m, uint8_t op)
{
	uint64_t value, reg;

	switch (op) {
	case DW_OP_deref:
		deref(m, 8);
		break;
	case DW_OP_deref_size:
		deref(m, cursor_u8(&m->c));
		break;
	case DW_OP_dup:
		push_nth(m, 0);
		break;
	case DW_OP_drop:
		pop(m);
		break;
	case DW_OP_over:
		push_nth(m, 1);
		break;
	case DW_OP_pick:
		push_nth(m, cursor_u8(&m->c));
		break;
	case DW_OP_swap:
		turn(m, 2);
		break;
	case DW_OP_rot:
		turn(m, 3);
		break;
	case DW_OP_abs:
		value = pop(m);
		push(m, (int64_t)value < 0 ? -value : value);
		break;
	case DW_OP_neg:
		push(m, -pop(m));
		break;
	case DW_OP_not:
		push(m, ~pop(m));
		break;
	case DW_OP_plus_uconst:
		push(m, pop(m) + cursor_uleb(&m->c));
		break;
	case DW_OP_skip:
		jump(m, (int16_t)cursor_u16(&m->c));
		break;
	case DW_OP_bra: {
		int16_t by = (int16_t)cursor_u16(&m->c);

		if (pop(m))
			jump(m, by);
		break;
	}
	case DW_OP_nop:
		break;
	case DW_OP_regx:
		push_register(m, cursor_uleb(&m->c), 0);
		break;
	case DW_OP_bregx:
		reg = cursor_uleb(&m->c);
		push_register(m, reg, cursor_sleb(&m->c));
		break;
	default:
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			push_register(m, op - DW_OP_breg0, cursor_sleb(&m->c));
		else if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
			push_register(m, op - DW_OP_reg0, 0);
		else
			m->bad = true;
	}
}

bool expr_evaluate(const uint8_t *text, size_t len, const struct expr_context *context,
		   const uint64_t *initial, uint64_t *result)
{
	struct machine m;

	m.context = context;
	m.text = text;
	m.c = (struct cursor){text, text + len, false};
	m.depth = 0;
	m.bad = false;
	if (initial)
		push(&m, *initial);
	for (unsigned int steps = 0; m.c.p < m.c.end; steps++) {
		uint8_t op = cursor_u8(&m.c);

		if (steps == MAX_STEPS)
			return false;
		if (!constant(&m, op) && !binary(&m, op))
			other(&m, op);
		if (m.bad || m.c.bad)
			return false;
	}
	if (!m.depth)
		return false;
	*result = m.words[m.depth - 1];
	return true;
}

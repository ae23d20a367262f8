/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Rows compiled to 8 bytes: which fit, what they say, and that the others are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unwind/rule.h"

static struct cfi_row row_of(uint8_t reg, int64_t offset)
{
	struct cfi_row row = {.ra_column = CFI_X86_RA,
			      .cfa = {.kind = CFI_REGISTER, .reg = reg, .value = offset}};

	row.regs[CFI_X86_RA] = (struct cfi_rule){.kind = CFI_OFFSET, .value = -8};
	return row;
}

static void expect(const struct cfi_row *row, enum rule_kind kind, int64_t n)
{
	rule_t rule = rule_compile(UNW_X86_64, row);

	assert_int_equal(rule_kind(rule), kind);
	if (kind != RULE_SLOW && kind != RULE_TRUNCATED && kind != RULE_END)
		assert_int_equal(rule_n(rule), n);
}

static void test_cfa(void **state)
{
	static const struct {
		uint8_t reg;
		int64_t offset;
		enum rule_kind kind;
	} rows[] = {
		{7, 8, RULE_SP},
		{7, 65528, RULE_SP},
		{7, 65536, RULE_TRUNCATED}, /* no capture holds it */
		{7, INT64_MAX - 7, RULE_TRUNCATED},
		{7, 0, RULE_SLOW},
		{7, -8, RULE_SLOW},
		{7, 12, RULE_SLOW}, /* no multiple of a word */
		{6, 16, RULE_FP},
		{6, -65536, RULE_FP},
		{6, -65544, RULE_SLOW},
		{6, 65528, RULE_FP},
		{6, 65536, RULE_SLOW},
		{3, 16, RULE_REGISTER},
		{15, -16, RULE_REGISTER},
		{16, 16, RULE_SLOW}, /* rip */
		{33, 16, RULE_SLOW},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfi_row row = row_of(rows[i].reg, rows[i].offset);

		expect(&row, rows[i].kind, rows[i].offset / 8);
	}
}

static void test_return_address(void **state)
{
	struct cfi_row row = row_of(7, 16);

	(void)state;
	row.regs[CFI_X86_RA].kind = CFI_UNDEFINED;
	expect(&row, RULE_END, 0);
	row.regs[CFI_X86_RA].kind = CFI_UNSET;
	expect(&row, RULE_END, 0);
	row.regs[CFI_X86_RA] = (struct cfi_rule){.kind = CFI_OFFSET, .value = -16};
	expect(&row, RULE_SLOW, 0);
	row.regs[CFI_X86_RA] = (struct cfi_rule){.kind = CFI_REGISTER, .value = 5};
	expect(&row, RULE_SLOW, 0);
	row = row_of(7, 16);
	row.signal = true;
	expect(&row, RULE_SLOW, 0);
	row = row_of(7, 16);
	row.regs[CFI_X86_RSP] = (struct cfi_rule){.kind = CFI_VAL_OFFSET, .value = 0};
	expect(&row, RULE_SP, 2);
	row.regs[CFI_X86_RSP].value = 8;
	expect(&row, RULE_SLOW, 0);
}

/* The six callee-saved registers have a nibble each. */
static void test_cells(void **state)
{
	static const uint8_t regs[RULE_CELLS] = {6, 3, 12, 13, 14, 15};

	(void)state;
	for (unsigned int i = 0; i < RULE_CELLS; i++)
		for (int64_t at = -8; at >= -160; at -= 4) {
			struct cfi_row row = row_of(7, 200);
			bool fits = at % 8 == 0 && at <= -16 && at >= -16 - 8 * 14;
			rule_t rule;

			row.regs[regs[i]] = (struct cfi_rule){.kind = CFI_OFFSET, .value = at};
			rule = rule_compile(UNW_X86_64, &row);
			assert_int_equal(rule_kind(rule), fits ? RULE_SP : RULE_SLOW);
			for (unsigned int k = 0; fits && k < RULE_CELLS; k++)
				assert_int_equal(rule_cell(rule, k),
						 k == i ? (-at - 16) / 8 : RULE_UNSAVED);
		}
}

static void test_frame_pointer_flags(void **state)
{
	static const uint8_t at_rbp[] = {0x76, 0}, elsewhere[] = {0x76, 8};
	struct cfi_row row = row_of(7, 16);
	rule_t rule;

	(void)state;
	row.regs[6].kind = CFI_UNDEFINED;
	rule = rule_compile(UNW_X86_64, &row);
	assert_true(rule_kind(rule) == RULE_SP && (rule & RULE_FP_LOST));
	row.regs[6] = (struct cfi_rule){.kind = CFI_EXPRESSION, .len = 2, .text = at_rbp};
	rule = rule_compile(UNW_X86_64, &row);
	assert_true(rule_kind(rule) == RULE_SP && (rule & RULE_FP_AT_FP));
	row.regs[6].text = elsewhere;
	expect(&row, RULE_SLOW, 0);
	row = row_of(7, 16);
	row.regs[3].kind = CFI_UNDEFINED; /* only rbp has room for that */
	expect(&row, RULE_SLOW, 0);
	row.regs[3] = (struct cfi_rule){.kind = CFI_REGISTER, .value = 12};
	expect(&row, RULE_SLOW, 0);
	/* What nobody needs afterwards may be anything. */
	row = row_of(7, 16);
	row.regs[9] = (struct cfi_rule){.kind = CFI_REGISTER, .value = 12};
	expect(&row, RULE_SP, 2);
}

static void test_expressions(void **state)
{
	static const struct {
		uint8_t text[16];
		uint32_t len;
		enum rule_kind kind;
		int64_t n, m;
	} rows[] = {
		{{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, RULE_PLT, 11, 0},
		{{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22}, 11, RULE_PLT, 9, 0},
		{{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22}, 11, RULE_SLOW, 0, 0},
		{{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x1c}, 11, RULE_SLOW, 0, 0},
		{{0x77, 16, 0x06}, 3, RULE_CELL_SP, 2, 0},
		{{0x77, 16, 0x06, 0x23, 8}, 5, RULE_CELL_SP, 2, 1},
		{{0x76, 0x78, 0x06}, 3, RULE_CELL_FP, -1, 0},
		{{0x77, 16, 0x06, 0x23, 0x80, 4}, 6, RULE_SLOW, 0, 0}, /* too far */
		{{0x77, 12, 0x06}, 3, RULE_SLOW, 0, 0},
		{{0x77, 16, 0x06, 0x06}, 4, RULE_SLOW, 0, 0},
		{{0x77, 16}, 2, RULE_SLOW, 0, 0},
		{{0x73, 16, 0x06}, 3, RULE_SLOW, 0, 0},
		{{0x77}, 1, RULE_SLOW, 0, 0},
		{{0}, 0, RULE_SLOW, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfi_row row = row_of(7, 16);
		rule_t rule;

		row.cfa = (struct cfi_rule){
			.kind = CFI_EXPRESSION, .len = rows[i].len, .text = rows[i].text};
		rule = rule_compile(UNW_X86_64, &row);
		assert_int_equal(rule_kind(rule), rows[i].kind);
		if (rows[i].kind != RULE_SLOW) {
			assert_int_equal(rule_n(rule), rows[i].n);
			assert_int_equal(rule_m(rule), rows[i].m);
		}
	}
}

static void test_aarch64(void **state)
{
	struct cfi_row row = {.ra_column = CFI_ARM_LR,
			      .cfa = {.kind = CFI_REGISTER, .reg = CFI_ARM_SP, .value = 32}};
	rule_t rule;

	(void)state;
	rule = rule_compile(UNW_AARCH64, &row);
	assert_true(rule_kind(rule) == RULE_SP && arm_rule_n(rule) == 4);
	assert_true(arm_rule_lr(rule) == 0 && arm_rule_fp(rule) == 0); /* x30 holds it */
	row.regs[CFI_ARM_FP] = (struct cfi_rule){.kind = CFI_OFFSET, .value = -32};
	row.regs[CFI_ARM_LR] = (struct cfi_rule){.kind = CFI_OFFSET, .value = -24};
	rule = rule_compile(UNW_AARCH64, &row);
	assert_true(arm_rule_lr(rule) == 3 && arm_rule_fp(rule) == 4);
	/* The record at the bottom of a huge frame. */
	row.cfa.value = 70016;
	row.regs[CFI_ARM_LR].value = -70008;
	rule = rule_compile(UNW_AARCH64, &row);
	assert_true(rule_kind(rule) == RULE_SP && arm_rule_n(rule) == 8752);
	assert_int_equal(arm_rule_lr(rule), 8751);
	row.cfa.reg = CFI_ARM_FP;
	row.cfa.value = -16;
	rule = rule_compile(UNW_AARCH64, &row);
	assert_true(rule_kind(rule) == RULE_FP && arm_rule_n(rule) == -2);
	row.cfa.reg = 19;
	assert_int_equal(rule_kind(rule_compile(UNW_AARCH64, &row)), RULE_SLOW);
	row.regs[CFI_ARM_LR].kind = CFI_UNDEFINED;
	assert_int_equal(rule_kind(rule_compile(UNW_AARCH64, &row)), RULE_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cfa),	    cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_cells),	    cmocka_unit_test(test_frame_pointer_flags),
		cmocka_unit_test(test_expressions), cmocka_unit_test(test_aarch64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

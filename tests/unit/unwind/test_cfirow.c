/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The row program: each instruction, row ranges, and the bounds that stop hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind_world.h"

enum { START = 0x4000, SIZE = 0x1000 };

static struct cfi_row row;

/* Runs the program up to START + at, behind "CFA = rsp + 8, RA at CFA - 8". */
static bool run_on(enum unw_arch arch, const uint8_t *program, size_t len, uint64_t at)
{
	static const uint8_t x86[] = {0x0c, 7, 8, 0x90, 1};
	static const uint8_t arm[] = {0x0c, 31, 0};
	bool is_x86 = arch == UNW_X86_64;
	struct cfi_section section = {.arch = arch};
	struct cfi_cie cie = {.valid = true,
			      .code_align = is_x86 ? 1 : 4,
			      .data_align = -8,
			      .ra_column = is_x86 ? 16 : 30,
			      .program = is_x86 ? x86 : arm,
			      .program_end = is_x86 ? x86 + sizeof(x86) : arm + sizeof(arm)};
	uint8_t *copy = malloc(len ? len : 1);
	struct cfi_fde fde = {START, START + SIZE, copy, copy + len};
	bool done;

	assert_non_null(copy);
	if (len)
		memcpy(copy, program, len);
	section.bytes = copy;
	section.len = len;
	done = cfi_row(&section, &cie, &fde, START + at, &row);
	/* An expression's text lies in the program. */
	for (size_t i = 0; i < CFI_REGS; i++)
		if (row.regs[i].kind >= CFI_EXPRESSION && row.regs[i].text >= copy &&
		    row.regs[i].text <= copy + len)
			row.regs[i].text = program + (row.regs[i].text - copy);
	free(copy);
	return done;
}

static bool run(const uint8_t *program, size_t len, uint64_t at)
{
	return run_on(UNW_X86_64, program, len, at);
}

static void expect_cfa(uint8_t reg, int64_t offset)
{
	assert_int_equal(row.cfa.kind, CFI_REGISTER);
	assert_int_equal(row.cfa.reg, reg);
	assert_int_equal(row.cfa.value, offset);
}

static void expect_rule(unsigned int reg, uint8_t kind, int64_t value)
{
	assert_int_equal(row.regs[reg].kind, kind);
	assert_int_equal(row.regs[reg].value, value);
}

static void test_no_instruction(void **state)
{
	(void)state;
	assert_true(run(NO_CFI, 0));
	expect_cfa(7, 8);
	expect_rule(16, CFI_OFFSET, -8);
	expect_rule(3, CFI_UNSET, 0);
	assert_true(row.start == START && row.end == START + SIZE);
	assert_false(run(NO_CFI, SIZE));
	assert_false(run(NO_CFI, (uint64_t)-1));
}

static void test_cfa_instructions(void **state)
{
	(void)state;
	assert_true(run(CFI(0x0c, 6, 0x90, 1), 0));
	expect_cfa(6, 144);
	assert_true(run(CFI(0x0d, 6), 0));
	expect_cfa(6, 8);
	assert_true(run(CFI(0x0e, 0xb0, 1), 0));
	expect_cfa(7, 176);
	assert_true(run(CFI(0x12, 6, 0x7e), 0)); /* def_cfa_sf: -2 * -8 */
	expect_cfa(6, 16);
	assert_true(run(CFI(0x13, 0x7d), 0));
	expect_cfa(7, 24);
	assert_true(run(CFI(0x0f, 2, 0x77, 8), 0));
	assert_int_equal(row.cfa.kind, CFI_EXPRESSION);
	assert_int_equal(row.cfa.len, 2);
	/* Only a register has an offset to change. */
	assert_false(run(CFI(0x0f, 2, 0x77, 8, 0x0e, 16), 0));
	assert_false(run(CFI(0x0f, 2, 0x77, 8, 0x0d, 6), 0));
	/* A register that nobody follows. */
	assert_true(run(CFI(0x0c, 50, 8), 0));
	assert_int_equal(row.cfa.kind, CFI_UNDEFINED);
}

static void test_register_instructions(void **state)
{
	(void)state;
	assert_true(run(CFI(0x83, 3), 0));
	expect_rule(3, CFI_OFFSET, -24);
	assert_true(run(CFI(0x05, 3, 4), 0));
	expect_rule(3, CFI_OFFSET, -32);
	assert_true(run(CFI(0x11, 3, 0x7f), 0));
	expect_rule(3, CFI_OFFSET, 8);
	assert_true(run(CFI(0x2f, 3, 2), 0)); /* GNU negative offset */
	expect_rule(3, CFI_OFFSET, 16);
	assert_true(run(CFI(0x14, 3, 2), 0));
	expect_rule(3, CFI_VAL_OFFSET, -16);
	assert_true(run(CFI(0x15, 3, 0x7e), 0));
	expect_rule(3, CFI_VAL_OFFSET, 16);
	assert_true(run(CFI(0x07, 3), 0));
	expect_rule(3, CFI_UNDEFINED, 0);
	assert_true(run(CFI(0x08, 3), 0));
	expect_rule(3, CFI_SAME, 0);
	assert_true(run(CFI(0x09, 3, 12), 0));
	expect_rule(3, CFI_REGISTER, 12);
	assert_true(run(CFI(0x83, 3, 0x07, 16, 0xc3, 0x06, 16), 0)); /* both forms of restore */
	expect_rule(3, CFI_UNSET, 0);
	expect_rule(16, CFI_OFFSET, -8);
	assert_true(run(CFI(0x10, 3, 1, 0x96), 0));
	assert_int_equal(row.regs[3].kind, CFI_EXPRESSION);
	assert_true(run(CFI(0x16, 3, 1, 0x96), 0));
	assert_int_equal(row.regs[3].kind, CFI_VAL_EXPRESSION);
	assert_int_equal(row.regs[3].len, 1);
	/* Vector registers are read over. */
	assert_true(run(CFI(0x05, 0x63, 4, 0x10, 0x63, 1, 0x96, 0x08, 0x63, 0x0e, 32), 0));
	expect_cfa(7, 32);
	assert_true(run(CFI(0x2e, 16, 0x00, 0x2d, 0x0e, 40), 0)); /* sizes of arguments, nop */
	expect_cfa(7, 40);
}

static void test_rows_by_address(void **state)
{
	static const uint8_t program[] = {0x41,					     /* 1 */
					  0x0e, 16, 0x02, 9,			     /* 10 */
					  0x0e, 24, 0x03, 0xf6, 0,		     /* 256 */
					  0x0e, 32, 0x04, 0,	1, 0, 0,	     /* 512 */
					  0x0e, 40, 0x1d, 0,	1, 0, 0, 0, 0, 0, 0, /* 768 */
					  0x0e, 48};
	static const struct {
		uint64_t at, start, end;
		int64_t offset;
	} rows[] = {{0, 0, 1, 8},	 {1, 1, 10, 16},       {9, 1, 10, 16},
		    {10, 10, 256, 24},	 {255, 10, 256, 24},   {256, 256, 512, 32},
		    {512, 512, 768, 40}, {768, 768, SIZE, 48}, {SIZE - 1, 768, SIZE, 48}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(run(program, sizeof(program), rows[i].at));
		expect_cfa(7, rows[i].offset);
		assert_true(row.start == START + rows[i].start && row.end == START + rows[i].end);
	}
	/* Two rows at one address: the later rules win. */
	assert_true(run(CFI(0x41, 0x0e, 16, 0x40, 0x0e, 24), 1));
	expect_cfa(7, 24);
	/* AArch64 counts in instructions. */
	assert_true(run_on(UNW_AARCH64, CFI(0x42, 0x0e, 16), 7));
	expect_cfa(31, 0);
	assert_true(run_on(UNW_AARCH64, CFI(0x42, 0x0e, 16), 8));
	expect_cfa(31, 16);
}

static void test_set_location(void **state)
{
	uint8_t program[] = {0x01, 0, 0x40, 0, 0, 0, 0, 0, 0, 0x0e, 16};

	(void)state;
	program[1] = 0x10; /* to START + 16 */
	assert_true(run(program, sizeof(program), 15));
	expect_cfa(7, 8);
	assert_true(run(program, sizeof(program), 16));
	expect_cfa(7, 16);
	program[2] = 0x3f; /* backwards */
	assert_false(run(program, sizeof(program), 16));
}

/* The location goes on where it was; some readers set it back as well. */
static void test_remembered_rows(void **state)
{
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x83, 2,	0x0a, 0x44, 0x0e,
					  8,	0xc3, 0x44, 0x0b, 0x44, 0x0e, 24};

	(void)state;
	assert_true(run(program, sizeof(program), 5));
	expect_cfa(7, 8);
	expect_rule(3, CFI_UNSET, 0);
	assert_true(run(program, sizeof(program), 9));
	expect_cfa(7, 16);
	expect_rule(3, CFI_OFFSET, -16);
	assert_true(row.start == START + 9 && row.end == START + 13);
	assert_true(run(program, sizeof(program), 13));
	expect_cfa(7, 24);
	expect_rule(3, CFI_OFFSET, -16);
	/* Nothing was remembered. */
	assert_false(run(CFI(0x0b), 0));
	assert_false(run(CFI(0x0a, 0x0b, 0x0b), 0));
}

static void test_depth_of_remembering(void **state)
{
	uint8_t program[64];

	(void)state;
	memset(program, 0x0a, 17);
	assert_true(run(program, 16, 0));
	assert_false(run(program, 17, 0));
	memset(program + 16, 0x0b, 16);
	assert_true(run(program, 32, 0));
	memset(program + 16, 0x0b, 17);
	assert_false(run(program, 33, 0));
}

/* AArch64: whether return addresses are signed belongs to the row, and is remembered with it. */
static void test_signing(void **state)
{
	static const uint8_t program[] = {0x41, 0x2d, 0x41, 0x0a, 0x41, 0x2d, 0x41, 0x0b};

	(void)state;
	assert_true(run_on(UNW_AARCH64, program, sizeof(program), 0));
	assert_int_equal(row.regs[34].value, 0);
	assert_true(run_on(UNW_AARCH64, program, sizeof(program), 4));
	assert_int_equal(row.regs[34].value, 1);
	assert_true(run_on(UNW_AARCH64, program, sizeof(program), 12));
	assert_int_equal(row.regs[34].value, 0);
	assert_true(run_on(UNW_AARCH64, program, sizeof(program), 16));
	assert_int_equal(row.regs[34].value, 1);
}

static void test_hostile_programs(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t len;
	} programs[] = {
		{{0x3f}, 1}, /* unknown */
		{{0x1c}, 1},
		{{0x17}, 1},
		{{0x02}, 1}, /* cut operands */
		{{0x04, 1, 2}, 3},
		{{0x83}, 1},
		{{0x05, 3}, 2},
		{{0x0e, 0x80}, 2},
		{{0x0f, 5, 0x96}, 3}, /* an expression longer than the rest */
		{{0x10, 3, 0xff, 0xff, 3}, 5},
		{{0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12},
		{{0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00}, 10}, /* wraps */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		assert_false(run(programs[i].bytes, programs[i].len, SIZE - 1));
}

/* 65,536 instructions are read, not one more. */
static void test_endless_program(void **state)
{
	size_t max = 65536;
	uint8_t *program = calloc(1, max + 1);

	(void)state;
	assert_non_null(program);
	assert_true(run(program, max, 0));
	assert_false(run(program, max + 1, 0));
	free(program);
}

/* A CIE may not move or restore: there is nothing yet to move in or to restore. */
static void test_instructions_that_only_functions_have(void **state)
{
	static const uint8_t bad[][2] = {{0x41, 0}, {0xc3, 0}, {0x06, 3}, {0x01, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cfi_section section = {.arch = UNW_X86_64};
		struct cfi_cie cie = {.ra_column = 16,
				      .data_align = -8,
				      .program = bad[i],
				      .program_end = bad[i] + 2};
		struct cfi_fde fde = {.start = START, .end = START + SIZE};

		assert_false(cfi_row(&section, &cie, &fde, START, &row));
		cie.program_end = cie.program;
		assert_true(cfi_row(&section, &cie, &fde, START, &row));
		cie.ra_column = 35; /* a return address column that nobody follows */
		assert_false(cfi_row(&section, &cie, &fde, START, &row));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_cfa_instructions),
		cmocka_unit_test(test_register_instructions),
		cmocka_unit_test(test_rows_by_address),
		cmocka_unit_test(test_set_location),
		cmocka_unit_test(test_remembered_rows),
		cmocka_unit_test(test_depth_of_remembering),
		cmocka_unit_test(test_signing),
		cmocka_unit_test(test_hostile_programs),
		cmocka_unit_test(test_endless_program),
		cmocka_unit_test(test_instructions_that_only_functions_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

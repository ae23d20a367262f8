/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Expressions: every operator, and the bounds on steps, words and reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "unwind/expr.h"

#define TEXT(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Register r holds 0x100 + r, up to 16; memory is 0x1000..0x1008. */
static bool read_register(void *data, uint64_t reg, uint64_t *value)
{
	(void)data;
	*value = 0x100 + reg;
	return reg < 17;
}

static bool read_memory(void *data, uint64_t address, unsigned int size, uint64_t *value)
{
	static const uint8_t memory[] = {0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

	(void)data;
	if (address < 0x1000 || address > 0x1008 || size > 0x1008 - address)
		return false;
	*value = 0;
	memcpy(value, memory + (address - 0x1000), size);
	return true;
}

static bool evaluate(const uint8_t *text, size_t len, const uint64_t *initial, uint64_t *result)
{
	const struct expr_context context = {read_register, read_memory, NULL, 0x5000};
	uint8_t *copy = malloc(len ? len : 1);
	bool done;

	assert_non_null(copy);
	if (len)
		memcpy(copy, text, len);
	done = expr_evaluate(copy, len, &context, initial, result);
	free(copy);
	return done;
}

static void expect(uint64_t value, const uint8_t *text, size_t len)
{
	uint64_t result = ~value;

	assert_true(evaluate(text, len, NULL, &result));
	assert_true(result == value);
}

static void refuse(const uint8_t *text, size_t len)
{
	uint64_t result;

	assert_false(evaluate(text, len, NULL, &result));
}

static void test_constants(void **state)
{
	(void)state;
	expect(0, TEXT(0x30));
	expect(31, TEXT(0x4f));
	expect(0xff, TEXT(0x08, 0xff));
	expect(UINT64_MAX, TEXT(0x09, 0xff));
	expect(0xfffe, TEXT(0x0a, 0xfe, 0xff));
	expect(UINT64_MAX - 1, TEXT(0x0b, 0xfe, 0xff));
	expect(0xfffffffe, TEXT(0x0c, 0xfe, 0xff, 0xff, 0xff));
	expect(UINT64_MAX - 1, TEXT(0x0d, 0xfe, 0xff, 0xff, 0xff));
	expect(0x0807060504030201, TEXT(0x0e, 1, 2, 3, 4, 5, 6, 7, 8));
	expect(UINT64_MAX, TEXT(0x0f, 255, 255, 255, 255, 255, 255, 255, 255));
	expect(300, TEXT(0x10, 0xac, 2));
	expect((uint64_t)-2, TEXT(0x11, 0x7e));
	expect(0x5010, TEXT(0x03, 0x10, 0, 0, 0, 0, 0, 0, 0)); /* addr: biased */
}

static void test_registers_and_memory(void **state)
{
	uint64_t cfa = 0x1000, result = 0;

	(void)state;
	expect(0x107, TEXT(0x57));		     /* reg7 */
	expect(0x107 - 8, TEXT(0x77, 0x78));	     /* breg7 - 8 */
	expect(0x110, TEXT(0x90, 16));		     /* regx */
	expect(0x110 + 64, TEXT(0x92, 16, 0xc0, 0)); /* bregx */
	refuse(TEXT(0x81, 0));			     /* breg17 is not known */
	refuse(TEXT(0x90, 0xff, 0xff, 3));
	expect(0xffeeddccbbaa9988, TEXT(0x0a, 0, 0x10, 0x06));
	expect(0x88, TEXT(0x0a, 0, 0x10, 0x94, 1));
	expect(0x9988, TEXT(0x0a, 0, 0x10, 0x94, 2));
	expect(0xbbaa9988, TEXT(0x0a, 0, 0x10, 0x94, 4));
	expect(0xffeeddccbbaa9988, TEXT(0x0a, 0, 0x10, 0x94, 8));
	refuse(TEXT(0x0a, 0, 0x10, 0x94, 3));
	refuse(TEXT(0x0a, 0, 0x10, 0x94, 16));
	refuse(TEXT(0x0a, 1, 0x10, 0x06)); /* one byte behind */
	refuse(TEXT(0x30, 0x06));
	assert_true(evaluate(TEXT(0x06), &cfa, &result));
	assert_true(result == 0xffeeddccbbaa9988);
	assert_true(evaluate(NULL, 0, &cfa, &result) && result == cfa);
}

static void test_words(void **state)
{
	(void)state;
	expect(5, TEXT(0x35, 0x12));			     /* dup */
	expect(5, TEXT(0x35, 0x36, 0x13));		     /* drop */
	expect(5, TEXT(0x35, 0x36, 0x14));		     /* over */
	expect(5, TEXT(0x35, 0x36, 0x37, 0x15, 2));	     /* pick */
	expect(5, TEXT(0x35, 0x36, 0x16));		     /* swap */
	expect(6, TEXT(0x35, 0x36, 0x37, 0x17));	     /* rot: the second comes up */
	expect(7, TEXT(0x35, 0x36, 0x37, 0x17, 0x13, 0x13)); /* 5 5.. the third down */
	refuse(TEXT(0x13));
	refuse(TEXT(0x12));
	refuse(TEXT(0x35, 0x14));
	refuse(TEXT(0x35, 0x16));
	refuse(TEXT(0x35, 0x36, 0x17));
	refuse(TEXT(0x35, 0x15, 1));
	refuse(TEXT(0x35, 0x22));
	refuse(TEXT(0x35, 0x13)); /* nothing is left */
	refuse(NULL, 0);
}

/* a op b, both given as signed bytes. */
static void binary(int8_t a, int8_t b, uint8_t op, uint64_t value)
{
	expect(value, TEXT(0x09, (uint8_t)a, 0x09, (uint8_t)b, op));
}

static void test_arithmetic(void **state)
{
	(void)state;
	binary(12, 10, 0x1a, 8);
	binary(12, 10, 0x21, 14);
	binary(12, 10, 0x27, 6);
	binary(-3, 5, 0x22, 2);
	binary(3, 5, 0x1c, (uint64_t)-2);
	binary(-3, 5, 0x1e, (uint64_t)-15);
	binary(-15, 4, 0x1b, (uint64_t)-3);
	binary(15, -1, 0x1b, (uint64_t)-15);
	binary(15, 4, 0x1d, 3);
	binary(1, 63, 0x24, UINT64_C(1) << 63);
	binary(1, 64, 0x24, 0);
	binary(-1, 63, 0x25, 1);
	binary(-1, 64, 0x25, 0);
	binary(-16, 2, 0x26, (uint64_t)-4);
	binary(-16, 100, 0x26, UINT64_MAX);
	binary(16, 0, 0x26, 16);
	expect(3, TEXT(0x09, 0xfd, 0x19)); /* abs */
	expect((uint64_t)-3, TEXT(0x33, 0x1f));
	expect(~UINT64_C(3), TEXT(0x33, 0x20));
	expect(203, TEXT(0x33, 0x23, 0xc8, 1));
	refuse(TEXT(0x33, 0x30, 0x1b)); /* by zero */
	refuse(TEXT(0x33, 0x30, 0x1d));
	/* The smallest number by -1 does not trap. */
	expect(UINT64_C(1) << 63, TEXT(0x31, 0x08, 63, 0x24, 0x09, 0xff, 0x1b));
	expect(UINT64_C(1) << 63, TEXT(0x31, 0x08, 63, 0x24, 0x19));
}

static void test_comparisons(void **state)
{
	(void)state;
	binary(-1, 1, 0x2d, 1); /* signed: lt */
	binary(1, 1, 0x2d, 0);
	binary(1, 1, 0x2c, 1); /* le */
	binary(2, 1, 0x2b, 1); /* gt */
	binary(1, 1, 0x2b, 0);
	binary(1, 1, 0x2a, 1); /* ge */
	binary(-1, 1, 0x2a, 0);
	binary(1, 1, 0x29, 1);
	binary(1, 1, 0x2e, 0);
	binary(1, 2, 0x2e, 1);
}

static void test_jumps(void **state)
{
	(void)state;
	expect(1, TEXT(0x31, 0x2f, 1, 0, 0x35));       /* skip over lit5 */
	expect(5, TEXT(0x31, 0x30, 0x28, 1, 0, 0x35)); /* bra: not taken */
	expect(1, TEXT(0x31, 0x31, 0x28, 1, 0, 0x35)); /* taken */
	expect(1, TEXT(0x31, 0x96, 0x2f, 0, 0));       /* to the end */
	refuse(TEXT(0x31, 0x2f, 1, 0));		       /* behind the end */
	refuse(TEXT(0x31, 0x2f, 0xf0, 0xff));	       /* in front of the text */
	refuse(TEXT(0x31, 0x2f, 1));
	/* Counts down from 20: three instructions a round stay below the bound. */
	expect(0, TEXT(0x44, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff));
}

static void test_bounds(void **state)
{
	uint8_t text[300];
	uint64_t result;

	(void)state;
	refuse(TEXT(0x2f, 0xfd, 0xff)); /* for ever */
	memset(text, 0x96, sizeof(text));
	text[0] = 0x31;
	assert_true(evaluate(text, 256, NULL, &result));
	assert_false(evaluate(text, 257, NULL, &result));
	memset(text, 0x31, sizeof(text));
	assert_true(evaluate(text, 64, NULL, &result));
	assert_false(evaluate(text, 65, NULL, &result));
}

/* An operator that is not known, or cut, fails the whole. */
static void test_unknown_operators(void **state)
{
	static const uint8_t operands[9] = {0};
	uint64_t result;

	(void)state;
	for (unsigned int op = 0; op < 256; op++) {
		uint8_t text[16] = {0x30, 0x30, 0x30, (uint8_t)op};
		bool known = op == 0x03 || op == 0x06 || (op >= 0x08 && op <= 0x17) ||
			     (op >= 0x19 && op <= 0x92 && op != 0x91) || op == 0x94 || op == 0x96;

		memcpy(text + 4, operands, sizeof(operands));
		if (!known)
			assert_false(evaluate(text, sizeof(text), NULL, &result));
	}
	refuse(TEXT(0x0e, 1, 2, 3, 4, 5, 6, 7));
	refuse(TEXT(0x03, 1));
	refuse(TEXT(0x10, 0x80));
	refuse(TEXT(0x77));
	refuse(TEXT(0x35, 0x15));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),   cmocka_unit_test(test_registers_and_memory),
		cmocka_unit_test(test_words),	    cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_comparisons), cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_bounds),	    cmocka_unit_test(test_unknown_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

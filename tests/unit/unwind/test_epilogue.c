/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What compilers emit at the ends of functions: how deep the frame is at each place, and which
 * registers lie where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "unwind/epilogue.h"

/* Cells as a rule orders them; a register that is not saved is -1. */
struct want {
	enum rule_kind kind; /* RULE_SLOW: nothing is known */
	int64_t n;
	int cell[RULE_CELLS]; /* rbp, rbx, r12, r13, r14, r15 */
};

#define NONE \
	{ \
		-1, -1, -1, -1, -1, -1 \
	}
#define UNKNOWN \
	{ \
		RULE_SLOW, 0, NONE \
	}

struct row {
	const char *what;
	uint8_t code[64];
	size_t len, at;
	struct want want;
};

#define CODE(...) {__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static rule_t rule_at(const struct row *row, bool exact)
{
	struct code_window w = {.before = 16};

	memset(w.bytes, 0x90, w.before);
	memcpy(w.bytes + w.before, row->code, row->len);
	w.len = w.before + row->len;
	w.before += row->at - !exact;
	return epilogue_rule(&w, exact);
}

static void check(const struct row *row, rule_t rule)
{
	bool same = rule_kind(rule) == row->want.kind;

	if (row->want.kind != RULE_SLOW) {
		same &= rule_n(rule) == row->want.n;
		for (unsigned int i = 0; i < RULE_CELLS; i++)
			same &= rule_cell(rule, i) == (row->want.cell[i] < 0
							       ? (unsigned int)RULE_UNSAVED
							       : (unsigned int)row->want.cell[i]);
	}
	if (same)
		return;
	print_error("%s at %zu: kind %u, n %d, cells", row->what, row->at, rule_kind(rule),
		    (int)rule_n(rule));
	for (unsigned int i = 0; i < RULE_CELLS; i++)
		print_error(" %u", rule_cell(rule, i));
	print_error("\n");
	fail();
}

static void check_all(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		check(&rows[i], rule_at(&rows[i], true));
		/* A return address is looked up one byte before it. */
		check(&rows[i], rule_at(&rows[i], false));
	}
}

#define CHECK_ALL(rows) check_all(rows, sizeof(rows) / sizeof(rows[0]))

static void test_plain_returns(void **state)
{
	static const struct row rows[] = {
		{"ret", CODE(0xc3), 0, {RULE_SP, 1, NONE}},
		{"ret imm", CODE(0xc2, 8, 0), 0, {RULE_SP, 1, NONE}},
		{"rep ret", CODE(0xf3, 0xc3), 0, {RULE_SP, 1, NONE}},
		{"bnd ret", CODE(0xf2, 0xc3), 0, {RULE_SP, 1, NONE}},
		{"xor eax; ret", CODE(0x31, 0xc0, 0xc3), 0, {RULE_SP, 1, NONE}},
		/* add $24, %rsp; ret */
		{"small frame", CODE(0x48, 0x83, 0xc4, 0x18, 0xc3), 0, {RULE_SP, 4, NONE}},
		{"small frame", CODE(0x48, 0x83, 0xc4, 0x18, 0xc3), 4, {RULE_SP, 1, NONE}},
		/* add $0x128, %rsp */
		{"large frame",
		 CODE(0x48, 0x81, 0xc4, 0x28, 0x01, 0, 0, 0xc3),
		 0,
		 {RULE_SP, 38, NONE}},
		/* sub $-128, %rsp: shorter than adding 128 */
		{"sub", CODE(0x48, 0x83, 0xec, 0x80, 0xc3), 0, {RULE_SP, 17, NONE}},
		/* lea 24(%rsp), %rsp, which keeps the flags */
		{"lea", CODE(0x48, 0x8d, 0x64, 0x24, 0x18, 0xc3), 0, {RULE_SP, 4, NONE}},
	};

	(void)state;
	CHECK_ALL(rows);
}

/* gcc -O2: add $8, %rsp; pop %rbx; pop %rbp; pop %r12; pop %r13; pop %r14; pop %r15; ret */
static void test_popped_registers(void **state)
{
#define POPS \
	CODE(0x48, 0x83, 0xc4, 8, 0x5b, 0x5d, 0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x41, 0x5f, 0xc3)
	static const struct row rows[] = {
		{"all", POPS, 0, {RULE_SP, 8, {4, 5, 3, 2, 1, 0}}},
		{"after add", POPS, 4, {RULE_SP, 7, {4, 5, 3, 2, 1, 0}}},
		{"after rbx", POPS, 5, {RULE_SP, 6, {4, -1, 3, 2, 1, 0}}},
		{"after rbp", POPS, 6, {RULE_SP, 5, {-1, -1, 3, 2, 1, 0}}},
		{"before r15", POPS, 12, {RULE_SP, 2, {-1, -1, -1, -1, -1, 0}}},
		{"at ret", POPS, 14, {RULE_SP, 1, NONE}},
		/* scratch registers are popped for the stack's sake */
		{"pop rcx", CODE(0x59, 0x5b, 0xc3), 0, {RULE_SP, 3, {-1, 0, -1, -1, -1, -1}}},
		/* mov %rbp, %rax between, as any other instruction */
		{"moves",
		 CODE(0x48, 0x89, 0xe8, 0x5d, 0xc3),
		 0,
		 {RULE_SP, 2, {0, -1, -1, -1, -1, -1}}},
	};

	(void)state;
	CHECK_ALL(rows);
}

/* With a frame pointer. */
static void test_frame_pointer(void **state)
{
	static const struct row rows[] = {
		/* pop %rbp; ret: gcc -O0 without locals */
		{"pop", CODE(0x5d, 0xc3), 0, {RULE_SP, 2, {0, -1, -1, -1, -1, -1}}},
		/* leave; ret */
		{"leave", CODE(0x90, 0xc9, 0xc3), 0, {RULE_FP, 2, {0, -1, -1, -1, -1, -1}}},
		/* mov %rbp, %rsp; pop %rbp; ret */
		{"mov",
		 CODE(0x48, 0x89, 0xec, 0x5d, 0xc3),
		 0,
		 {RULE_FP, 2, {0, -1, -1, -1, -1, -1}}},
		/* lea -16(%rbp), %rsp; pop %rbx; pop %r12; pop %rbp; ret: alloca */
		{"lea",
		 CODE(0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3),
		 0,
		 {RULE_FP, 2, {0, 2, 1, -1, -1, -1}}},
		/* the same behind the lea */
		{"pops",
		 CODE(0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3),
		 4,
		 {RULE_SP, 4, {0, 2, 1, -1, -1, -1}}},
		/* a prologue in front: push %rbp; mov %rsp, %rbp; ...; leave; ret */
		{"whole",
		 CODE(0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0xc9, 0xc3),
		 0,
		 {RULE_SP, 1, NONE}},
		{"whole",
		 CODE(0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0xc9, 0xc3),
		 1,
		 {RULE_SP, 2, {0, -1, -1, -1, -1, -1}}},
		{"whole",
		 CODE(0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0xc9, 0xc3),
		 4,
		 {RULE_FP, 2, {0, -1, -1, -1, -1, -1}}},
	};

	(void)state;
	CHECK_ALL(rows);
}

/* From the first instruction on: what is pushed comes off again. */
static void test_prologues(void **state)
{
	/* push %r15; push %rbx; sub $24, %rsp; call; add $24, %rsp; pop %rbx; pop %r15; ret */
#define BODY \
	CODE(0x41, 0x57, 0x53, 0x48, 0x83, 0xec, 0x18, 0xe8, 1, 2, 3, 4, 0x48, 0x83, 0xc4, 0x18, \
	     0x5b, 0x41, 0x5f, 0xc3)
	static const struct row rows[] = {
		{"entry", BODY, 0, {RULE_SP, 1, NONE}},
		{"pushed one", BODY, 2, {RULE_SP, 2, {-1, -1, -1, -1, -1, 0}}},
		{"pushed two", BODY, 3, {RULE_SP, 3, {-1, 1, -1, -1, -1, 0}}},
		{"in the body", BODY, 7, {RULE_SP, 6, {-1, 1, -1, -1, -1, 0}}},
		{"behind the call", BODY, 12, {RULE_SP, 6, {-1, 1, -1, -1, -1, 0}}},
		/* endbr64 in front */
		{"endbr64", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x5d, 0xc3), 0, {RULE_SP, 1, NONE}},
	};

	(void)state;
	CHECK_ALL(rows);
}

static void test_jumps(void **state)
{
	static const struct row rows[] = {
		/* jmp over int3 to "pop %rbx; ret" */
		{"forwards",
		 CODE(0xeb, 1, 0xcc, 0x5b, 0xc3),
		 0,
		 {RULE_SP, 2, {-1, 0, -1, -1, -1, -1}}},
		{"forwards far",
		 CODE(0xe9, 1, 0, 0, 0, 0xcc, 0x5b, 0xc3),
		 0,
		 {RULE_SP, 2, {-1, 0, -1, -1, -1, -1}}},
		/* a conditional jump is not taken: jne +5; ret */
		{"conditional", CODE(0x75, 5, 0xc3), 0, {RULE_SP, 1, NONE}},
		{"conditional far", CODE(0x0f, 0x85, 1, 2, 3, 4, 0xc3), 0, {RULE_SP, 1, NONE}},
		/* a tail call: add $8, %rsp; jmp elsewhere; jmp *%rax; jmp *x(%rip) */
		{"tail call", CODE(0x48, 0x83, 0xc4, 8, 0xe9, 0, 0, 1, 0), 0, {RULE_SP, 2, NONE}},
		{"tail call", CODE(0x48, 0x83, 0xc4, 8, 0xff, 0xe0), 0, {RULE_SP, 2, NONE}},
		{"tail call",
		 CODE(0x48, 0x83, 0xc4, 8, 0xff, 0x25, 0, 0, 1, 0),
		 0,
		 {RULE_SP, 2, NONE}},
	};

	(void)state;
	CHECK_ALL(rows);
}

/* Instructions must be taken apart rightly to find the next one. */
static void test_lengths(void **state)
{
	/* Each in front of "pop %rbx; ret". */
	static const struct {
		uint8_t bytes[12];
		size_t len;
	} insns[] = {
		{{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10},	    /* movabs */
		{{0xb8, 0xc3, 0xc3, 0xc3, 0xc3}, 5},		    /* mov imm32 */
		{{0x66, 0xb8, 0xc3, 0xc3}, 4},			    /* mov imm16 */
		{{0xc7, 0x44, 0x24, 8, 0xc3, 0xc3, 0xc3, 0xc3}, 8}, /* movl imm, 8(%rsp) */
		{{0x66, 0xc7, 0x04, 0x24, 0xc3, 0xc3}, 6},	    /* movw */
		{{0xc6, 0x05, 1, 2, 3, 4, 0xc3}, 7},		    /* movb imm, x(%rip) */
		{{0x8b, 0x84, 0xc8, 0xc3, 0xc3, 0xc3, 0xc3}, 7},    /* disp32 and SIB */
		{{0x8b, 0x04, 0xc5, 0xc3, 0xc3, 0xc3, 0xc3}, 7},    /* SIB without a base */
		{{0xf6, 0xc1, 0xc3}, 3},			    /* test imm8 */
		{{0xf7, 0xc1, 0xc3, 0xc3, 0xc3, 0xc3}, 6},	    /* test imm32 */
		{{0xf7, 0xd9}, 2},				    /* neg */
		{{0x69, 0xc0, 0xc3, 0xc3, 0xc3, 0xc3}, 6},	    /* imul imm32 */
		{{0x6b, 0xc0, 0xc3}, 3},
		{{0xc1, 0xe0, 0xc3}, 3}, /* shl imm8 */
		{{0xd1, 0xe0}, 2},
		{{0xa8, 0xc3}, 2},				       /* test imm8, %al */
		{{0x3d, 0xc3, 0xc3, 0xc3, 0xc3}, 5},		       /* cmp imm32, %eax */
		{{0x80, 0x7c, 0x24, 0xc3, 0xc3}, 5},		       /* cmpb */
		{{0x0f, 0xb6, 0x44, 0x24, 0xc3}, 5},		       /* movzbl */
		{{0x0f, 0xaf, 0xc3}, 3},			       /* imul */
		{{0x0f, 0xba, 0xe0, 0xc3}, 4},			       /* bt imm8 */
		{{0x0f, 0xa2}, 2},				       /* cpuid */
		{{0x0f, 0x1f, 0x84, 0x00, 0xc3, 0xc3, 0xc3, 0xc3}, 8}, /* long nop */
		{{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0xc3, 0xc3, 0xc3, 0xc3}, 10},
		{{0x66, 0x0f, 0x70, 0xc1, 0xc3}, 5},		       /* pshufd imm8 */
		{{0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0xc3}, 6},	       /* palignr imm8 */
		{{0x66, 0x0f, 0x38, 0x00, 0xc3}, 5},		       /* pshufb */
		{{0xf3, 0x0f, 0x10, 0x05, 0xc3, 0xc3, 0xc3, 0xc3}, 8}, /* movss x(%rip) */
		{{0xc5, 0xf8, 0x77}, 3},			       /* vzeroupper */
		{{0xc5, 0xf8, 0x28, 0x44, 0x24, 0xc3}, 6},	       /* vmovaps */
		{{0xc4, 0xe3, 0x7d, 0x46, 0xc3, 0xc3}, 6},	       /* vperm2i128 imm8 */
		{{0xc4, 0xe2, 0x7d, 0x58, 0xc3}, 5},		       /* vpbroadcastd */
		{{0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc3}, 6},	       /* vmovaps zmm */
		{{0x48, 0x63, 0xc3}, 3},			       /* movslq */
		{{0xdd, 0x44, 0x24, 0xc3}, 4},			       /* fldl */
		{{0x48, 0x98}, 2},				       /* cltq */
		{{0x99}, 1},
		{{0xf0, 0x0f, 0xc1, 0x03}, 4},			    /* lock xadd */
		{{0x64, 0x48, 0x8b, 0x04, 0x25, 0xc3, 0, 0, 0}, 9}, /* mov %fs:x, %rax */
		{{0xff, 0x94, 0x24, 0xc3, 0, 0, 0}, 7},		    /* call *x(%rsp) */
		{{0xfe, 0xc3}, 2},
		/* r12, whose number is rsp's but for the prefix */
		{{0x49, 0x94}, 2},
		{{0x41, 0xbc, 0xc3, 0xc3, 0xc3, 0xc3}, 6},
		{{0x49, 0xff, 0xc4}, 3},
		{{0x49, 0x83, 0xc4, 0xc3}, 4},
		{{0x4c, 0x0f, 0x44, 0xe0}, 4},
		{{0x4c, 0x63, 0xe0}, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		struct row row = {
			"length", {0}, insns[i].len + 2, 0, {RULE_SP, 2, {-1, 0, -1, -1, -1, -1}}};

		memcpy(row.code, insns[i].bytes, insns[i].len);
		memcpy(row.code + insns[i].len, "\x5b\xc3", 2);
		if (rule_at(&row, true) !=
		    rule_at(&(struct row){"", {0x5b, 0xc3}, 2, 0, UNKNOWN}, true))
			print_error("instruction %zu\n", i);
		check(&row, rule_at(&row, true));
	}
}

/* Where the way cannot be told nothing is claimed. */
static void test_lost_ways(void **state)
{
	static const struct row rows[] = {
		{"trap", CODE(0x0f, 0x0b, 0xc3), 0, UNKNOWN},
		{"int3", CODE(0xcc, 0xc3), 0, UNKNOWN},
		{"hlt", CODE(0xf4, 0xc3), 0, UNKNOWN},
		{"end of the bytes", CODE(0x90, 0x90, 0x90), 0, UNKNOWN},
		{"cut instruction", CODE(0x48, 0x83, 0xc4), 0, UNKNOWN},
		{"pop rsp", CODE(0x5c, 0xc3), 0, UNKNOWN},
		{"mov rax, rsp", CODE(0x48, 0x89, 0xc4, 0xc3), 0, UNKNOWN},
		{"mov (rax), rsp", CODE(0x48, 0x8b, 0x20, 0xc3), 0, UNKNOWN},
		{"and rsp", CODE(0x48, 0x83, 0xe4, 0xf0, 0xc3), 0, UNKNOWN},
		{"xchg rsp", CODE(0x48, 0x94, 0xc3), 0, UNKNOWN},
		{"xchg rsp", CODE(0x48, 0x87, 0xe0, 0xc3), 0, UNKNOWN},
		{"mov imm, rsp", CODE(0x48, 0xc7, 0xc4, 0, 1, 0, 0, 0xc3), 0, UNKNOWN},
		{"mov imm, esp", CODE(0xbc, 0, 1, 0, 0, 0xc3), 0, UNKNOWN},
		{"inc rsp", CODE(0x48, 0xff, 0xc4, 0xc3), 0, UNKNOWN},
		{"neg rsp", CODE(0x48, 0xf7, 0xdc, 0xc3), 0, UNKNOWN},
		{"cmov rsp", CODE(0x48, 0x0f, 0x44, 0xe0, 0xc3), 0, UNKNOWN},
		{"movzx esp", CODE(0x0f, 0xb7, 0xe0, 0xc3), 0, UNKNOWN},
		{"movslq rsp", CODE(0x48, 0x63, 0xe0, 0xc3), 0, UNKNOWN},
		{"sub rax, rsp", CODE(0x48, 0x29, 0xc4, 0xc3), 0, UNKNOWN},
		{"lea (rax), rsp", CODE(0x48, 0x8d, 0x20, 0xc3), 0, UNKNOWN},
		{"misaligned", CODE(0x48, 0x83, 0xc4, 0x04, 0xc3), 0, UNKNOWN},
		{"negative", CODE(0x48, 0x83, 0xec, 0x40, 0xc3), 0, UNKNOWN},
		{"beyond any capture", CODE(0x48, 0x81, 0xc4, 0, 0, 1, 0, 0xc3), 0, UNKNOWN},
		{"for ever", CODE(0xeb, 0xfe, 0xc3), 0, UNKNOWN},
	};

	(void)state;
	CHECK_ALL(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_returns), cmocka_unit_test(test_popped_registers),
		cmocka_unit_test(test_frame_pointer), cmocka_unit_test(test_prologues),
		cmocka_unit_test(test_jumps),	      cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_lost_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

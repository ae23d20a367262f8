/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The walk by tables on x86-64: each kind of row, each end, each way to be cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "world_x86_64.h"

static void test_leaf(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	put(w, 0, PLAIN + BACK);
	put(w, 1, END + BACK);
	world_walk(w, PLAIN, 2);
	world_expect(w, UNW_COMPLETE, PLAIN, PLAIN + BACK - 1, END + BACK - 1);
	assert_int_equal(w->result.guessed, 0);
	assert_int_equal(world_fallbacks(w), 0);
	assert_false(w->result.has_error);
	world_free(w);
}

/* push %rbp at 0, mov %rsp, %rbp at 1, pop %rbp and ret at the end. */
#define FRAMED CFI(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, RBP, 0x02, SIZE - 5, 0x0c, RSP, 8)

/* The frame lies in words 1 and 2, that of the same function as its caller in words 9 and 10. */
static void test_prologue_and_epilogue(void **state)
{
	static const struct {
		uint64_t pc, sp_word, fp_word;
	} stops[] = {{0, 2, 9}, {1, 1, 9}, {4, 1, 1}, {0x20, 0, 1}, {SIZE - 1, 2, 9}};

	(void)state;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		struct unwind_world *w = world_with(FRAMED);

		w->words[1] = AT(9);
		put(w, 2, OTHER + BACK);
		w->words[9] = 0x5555;
		put(w, 10, END + BACK);
		/* sp is that of the stop: bytes below are not captured. */
		w->regs.value[RSP] = AT(stops[i].sp_word);
		memmove(w->words, w->words + stops[i].sp_word, 16 * sizeof(w->words[0]));
		w->regs.value[RBP] = AT(stops[i].fp_word);
		world_walk(w, OTHER + stops[i].pc, 16);
		world_expect(w, UNW_COMPLETE, OTHER + stops[i].pc, OTHER + BACK - 1,
			     END + BACK - 1);
		world_free(w);
	}
}

/* gcc leaves "rbx at CFA - 16" in the rows between pops: the register holds the value again. */
static void test_cell_below_sp_was_popped(void **state)
{
	/* r12 at CFA-16, rbx at CFA-24 (both popped at 4), rbp at CFA-32; CFA = rsp + 8 from 4 on
	 */
	struct unwind_world *w =
		world_with(CFI(0x0e, 32, 0x8c, 2, 0x83, 3, 0x86, 4, 0x44, 0x0e, 8));

	(void)state;
	world_function(w, 0x4000, SIZE, CFI(0x0c, RBX, 16)); /* needs the caller's rbx */
	world_call(w, 0x4000 + BACK);
	put(w, 0, 0x4000 + BACK);
	put(w, 4, END + BACK);
	w->regs.value[RBX] = AT(3);
	w->regs.value[RBP] = 0x77;
	world_walk(w, OTHER + 4, 8);
	world_expect(w, UNW_COMPLETE, OTHER + 4, 0x4000 + BACK - 1, END + BACK - 1);
	world_free(w);
}

/* A call may be the last instruction of a function: the return address is in the next one. */
static void test_lookup_of_calls_that_do_not_return(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	world_function(w, OTHER, 0x10, CFI(0x0e, 24));
	world_function(w, OTHER + 0x10, SIZE, CFI(0x0e, 48));
	world_call(w, OTHER + 0x10);
	put(w, 0, OTHER + 0x10);
	put(w, 3, END + BACK);
	put(w, 6, PLAIN + BACK);
	world_walk(w, PLAIN, 8);
	world_expect(w, UNW_COMPLETE, PLAIN, OTHER + 0x0f, END + BACK - 1);
	/* A pc there belongs to the next one. */
	w->regs.value[RSP] = AT(0);
	put(w, 5, END + BACK);
	world_walk(w, OTHER + 0x10, 8);
	world_expect(w, UNW_COMPLETE, OTHER + 0x10, END + BACK - 1);
	world_free(w);
}

static void test_ends(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	world_walk(w, END + 4, 0);
	world_expect(w, UNW_COMPLETE, END + 4);
	world_walk(w, PLAIN, 1); /* return address 0 */
	world_expect(w, UNW_COMPLETE, PLAIN);
	world_free(w);
}

static void test_impossible_return_addresses(void **state)
{
	static const uint64_t bad[] = {1, 4095, UINT64_C(1) << 56, UINT64_MAX - 4096, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct unwind_world *w = world();

		w->words[0] = bad[i];
		world_walk(w, PLAIN, 4);
		world_expect_error(w, RETURN_ADDRESS_NULL, PLAIN);
		world_free(w);
	}
}

static void test_cut_stacks(void **state)
{
	static const size_t bytes[] = {0, 7, 8, 15};
	struct unwind_world *w = world();

	(void)state;
	put(w, 0, PLAIN + BACK);
	put(w, 1, END + BACK);
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		w->regs.value[16] = RUN(PLAIN);
		world_walk_registers(w, bytes[i]);
		if (bytes[i] < 8)
			world_expect_error(w, STACK_TRUNCATED, PLAIN);
		else
			world_expect_error(w, STACK_TRUNCATED, PLAIN, PLAIN + BACK - 1);
	}
	world_free(w);
}

static void test_depth(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	for (size_t i = 0; i < 1022; i++)
		put(w, i, PLAIN + BACK);
	put(w, 1022, END + BACK);
	world_walk(w, PLAIN, 1100);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	/* One deeper is cut, which is no error. */
	put(w, 1022, PLAIN + BACK);
	put(w, 1023, END + BACK);
	world_walk(w, PLAIN, 1100);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	assert_false(w->result.has_error);
	/* Ended by a zero word instead of a row. */
	w->words[1023] = 0;
	world_walk(w, PLAIN, 1100);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	world_free(w);
}

/* Offsets up to what a capture can hold; above them no stack is long enough. */
static void test_large_frames(void **state)
{
	static const struct {
		uint64_t offset;
		bool cut;
	} frames[] = {{65528, false}, {65536, true}, {524288, true}, {UINT64_C(1) << 40, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct cfi_builder program = {0};
		struct unwind_world *w;

		cfi_put_number(&program, 0x0e, 1);
		cfi_put_uleb(&program, frames[i].offset);
		w = world_with(program.bytes, program.len);
		put(w, 65528 / 8 - 1, END + BACK);
		w->regs.value[RBP] = 0; /* which must not make it look complete */
		world_walk(w, OTHER, 65528 / 8);
		if (frames[i].cut)
			world_expect_error(w, STACK_TRUNCATED, OTHER);
		else
			world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
		world_free(w);
	}
}

static void test_stack_at_the_end_of_memory(void **state)
{
	static const uint64_t sps[] = {UINT64_MAX - 7, UINT64_MAX - 15, UINT64_MAX,
				       UINT64_MAX - 40};

	(void)state;
	for (size_t i = 0; i < sizeof(sps) / sizeof(sps[0]); i++) {
		struct unwind_world *w = world_with(CFI(0x0e, 48));

		w->regs.value[RSP] = sps[i];
		world_walk(w, OTHER, 64);
		assert_int_equal(w->result.count, 1);
		assert_int_equal(w->result.end, UNW_TRUNCATED);
		assert_true(w->result.has_error);
		world_free(w);
	}
}

/* ---- the CFA ---- */

static void test_cfa_that_does_not_grow(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, RBP, 0));

	(void)state;
	put(w, 1, END + BACK);
	w->regs.value[RBP] = AT(0);
	world_walk(w, OTHER, 4);
	world_expect_error(w, MOVED_BACKWARDS, OTHER);
	w->regs.value[RBP] = AT(0) - 64;
	world_walk(w, OTHER, 4);
	world_expect_error(w, MOVED_BACKWARDS, OTHER);
	w->regs.value[RBP] = AT(2);
	world_walk(w, OTHER, 4);
	world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
	world_free(w);
}

/* rbx was saved by the third of 40 frames; the outermost has its CFA on it. */
static void test_cfa_by_a_register_saved_below(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, RBX, 16));
	size_t i;

	(void)state;
	world_function(w, 0x4000, SIZE, CFI(0x0e, 24, 0x83, 3)); /* rbx at CFA-24 */
	world_call(w, 0x4000 + BACK);
	put(w, 0, PLAIN + BACK);
	put(w, 1, 0x4000 + BACK);
	w->words[2] = AT(60);
	for (i = 4; i < 40; i++)
		put(w, i, PLAIN + BACK);
	put(w, 40, OTHER + BACK);
	put(w, 61, END + BACK);
	w->regs.value[RBX] = 0x1234;
	world_walk(w, PLAIN, 64);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	assert_int_equal(w->result.count, 41);
	assert_true(w->result.addresses[40] == RUN(END + BACK - 1));
	/* Nobody saved it: the sampled register. */
	put(w, 0, OTHER + BACK);
	w->regs.value[RBX] = AT(60);
	world_walk(w, PLAIN, 64);
	world_expect(w, UNW_COMPLETE, PLAIN, OTHER + BACK - 1, END + BACK - 1);
	world_free(w);
}

/* Scratch registers are known in the innermost frame only. */
static void test_cfa_by_a_scratch_register(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, R9, 16));

	(void)state;
	w->regs.value[R9] = AT(4);
	put(w, 5, END + BACK);
	put(w, 0, OTHER + BACK);
	world_walk(w, OTHER, 16);
	world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
	w->regs.value[RBP] = AT(8); /* the way out: a frame pointer */
	put(w, 9, END + BACK);
	world_walk(w, PLAIN, 16);
	world_expect(w, UNW_COMPLETE, PLAIN, OTHER + BACK - 1, END + BACK - 1);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_CFA], 1);
	assert_int_equal(w->result.fallback_modules[SPULSE_UNWIND_FALLBACK_NO_CFA], 7);
	assert_int_equal(world_fallbacks(w), 1);
	world_free(w);
}

/* Functions with a realigned stack: CFA = [rbp - 8], rbp saved where it points. */
static void test_realigned_frame(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0f, 3, 0x76, 0x78, 0x06, 0x10, RBP, 2, 0x76, 0));

	(void)state;
	w->regs.value[RBP] = AT(4);
	w->words[3] = AT(10); /* the CFA */
	w->words[4] = AT(12); /* the caller's rbp */
	put(w, 9, OTHER + BACK);
	w->words[11] = AT(20);
	put(w, 19, END + BACK);
	world_walk(w, OTHER + BACK, 32);
	world_expect(w, UNW_COMPLETE, OTHER + BACK, OTHER + BACK - 1, END + BACK - 1);
	world_free(w);
}

/* Assembly that saved rsp: CFA = [rsp + 16] + 8; and [rsp + 8 + r9*8] + 8, which is no rule. */
static void test_cfa_from_memory(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0f, 5, 0x77, 16, 0x06, 0x23, 8));

	(void)state;
	world_function(w, 0x4000, SIZE,
		       CFI(0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8));
	w->words[2] = AT(5);
	put(w, 5, END + BACK);
	world_walk(w, OTHER, 8);
	world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
	w->regs.value[R9] = 1;
	world_walk(w, 0x4000, 8);
	world_expect(w, UNW_COMPLETE, 0x4000, END + BACK - 1);
	/* The cell was not captured. */
	w->regs.value[R9] = 100;
	world_walk(w, 0x4000, 8);
	world_expect_error(w, STACK_TRUNCATED, 0x4000);
	world_free(w);
}

/* An expression without end costs its bound, not the walk. */
static void test_endless_expression(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0f, 3, 0x2f, 0xfd, 0xff));

	(void)state;
	w->regs.value[RBP] = AT(2);
	put(w, 3, END + BACK);
	world_walk(w, OTHER, 8);
	world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_CFA], 1);
	world_free(w);
}

/* rsp + 8 + (((rip & 15) >= 11) << 3) */
static void test_linkage_table(void **state)
{
	struct unwind_world *w = world_with(
		CFI(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));

	(void)state;
	put(w, 0, END + BACK);
	world_walk(w, OTHER + 0x20, 4);
	world_expect(w, UNW_COMPLETE, OTHER + 0x20, END + BACK - 1);
	world_walk(w, OTHER + 0x2a, 4);
	world_expect(w, UNW_COMPLETE, OTHER + 0x2a, END + BACK - 1);
	w->words[0] = 5; /* the pushed index */
	put(w, 1, END + BACK);
	world_walk(w, OTHER + 0x2b, 4);
	world_expect(w, UNW_COMPLETE, OTHER + 0x2b, END + BACK - 1);
	world_free(w);
}

static void test_frame_pointer_that_is_lost(void **state)
{
	/* rbp undefined; then a caller whose CFA is on it. */
	struct unwind_world *w = world_with(CFI(0x07, RBP));

	(void)state;
	world_function(w, 0x4000, SIZE, CFI(0x0c, RBP, 16));
	world_function(w, 0x5000, SIZE, CFI(0x0e, 0x18, 0x86, 2)); /* saves it at CFA - 16 */
	world_call(w, 0x4000 + BACK);
	world_call(w, 0x5000 + BACK);
	w->regs.value[RBP] = AT(4);
	put(w, 5, END + BACK);
	put(w, 0, 0x4000 + BACK);
	world_walk(w, OTHER, 8);
	world_expect_error(w, STACK_TRUNCATED, OTHER, 0x4000 + BACK - 1);
	/* Another frame saved one in between. */
	put(w, 0, 0x5000 + BACK);
	w->words[2] = AT(4);
	put(w, 3, 0x4000 + BACK);
	world_walk(w, OTHER, 8);
	world_expect(w, UNW_COMPLETE, OTHER, 0x5000 + BACK - 1, 0x4000 + BACK - 1, END + BACK - 1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaf),
		cmocka_unit_test(test_prologue_and_epilogue),
		cmocka_unit_test(test_cell_below_sp_was_popped),
		cmocka_unit_test(test_lookup_of_calls_that_do_not_return),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_impossible_return_addresses),
		cmocka_unit_test(test_cut_stacks),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_large_frames),
		cmocka_unit_test(test_stack_at_the_end_of_memory),
		cmocka_unit_test(test_cfa_that_does_not_grow),
		cmocka_unit_test(test_cfa_by_a_register_saved_below),
		cmocka_unit_test(test_cfa_by_a_scratch_register),
		cmocka_unit_test(test_realigned_frame),
		cmocka_unit_test(test_cfa_from_memory),
		cmocka_unit_test(test_endless_expression),
		cmocka_unit_test(test_linkage_table),
		cmocka_unit_test(test_frame_pointer_that_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

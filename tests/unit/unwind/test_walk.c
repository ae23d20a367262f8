/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What both walks share, on x86-64: rows without a compiled form, signal frames, hand-made ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "world_x86_64.h"

/* ---- registers and return addresses by other rules ---- */

/* glibc's vfork takes the return address off the stack into rdi. */
static void test_return_address_in_a_register(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0e, 0, 0x09, 16, RDI));

	(void)state;
	w->regs.value[RDI] = RUN(PLAIN + BACK);
	put(w, 0, END + BACK);
	world_walk(w, OTHER, 4);
	world_expect(w, UNW_COMPLETE, OTHER, PLAIN + BACK - 1, END + BACK - 1);
	world_free(w);
}

/* longjmp: return address in rdx, rsp in r8, rbp in r9. */
static void test_registers_in_registers(void **state)
{
	struct unwind_world *w =
		world_with(CFI(0x0c, RDI, 0, 0x09, RSP, R8, 0x09, 16, 1, 0x09, RBP, R9));

	(void)state;
	world_function(w, 0x4000, SIZE, CFI(0x0c, RBP, 16));
	world_call(w, 0x4000 + BACK);
	w->regs.value[RDI] = AT(1);
	w->regs.value[R8] = AT(2);
	w->regs.value[1] = RUN(0x4000 + BACK);
	w->regs.value[R9] = AT(4);
	put(w, 5, END + BACK);
	world_walk(w, OTHER, 8);
	world_expect(w, UNW_COMPLETE, OTHER, 0x4000 + BACK - 1, END + BACK - 1);
	world_free(w);
}

/* Rows without a compiled form hand registers on by every kind of rule. */
static void test_registers_behind_a_slow_row(void **state)
{
	/* The return address lies at CFA - 16, which no compiled rule says. */
	static const struct {
		uint8_t program[12];
		bool known;
	} rows[] = {
		{{0x0e, 32, 0x90, 2, 0x15, RBX, 0x7e}, true},		  /* is CFA + 16 */
		{{0x0e, 32, 0x90, 2, 0x16, RBX, 2, 0x23, 16}, true},	  /* computed likewise */
		{{0x0e, 32, 0x90, 2, 0x83, 4}, true},			  /* at CFA - 32 */
		{{0x0e, 32, 0x90, 2, 0x10, RBX, 3, 0x23, 8, 0x96}, true}, /* at CFA + 8 */
		{{0x0e, 32, 0x90, 2, 0x08, RBX}, true},			  /* the same */
		{{0x0e, 32, 0x90, 2}, true},				  /* not mentioned */
		{{0x0e, 32, 0x90, 2, 0x09, RBX, R12}, true},		  /* in another register */
		{{0x0e, 32, 0x90, 2, 0x07, RBX}, false},		  /* undefined */
		{{0x0e, 32, 0x90, 2, 0x11, RBX, 0x40}, false},		  /* at CFA + 512 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct unwind_world *w = world_with(rows[i].program, sizeof(rows[i].program));

		world_function(w, 0x4000, SIZE, CFI(0x0c, RBX, 16));
		world_call(w, 0x4000 + BACK);
		put(w, 2, 0x4000 + BACK);
		w->words[0] = w->words[5] = w->regs.value[RBX] = w->regs.value[R12] = AT(6);
		put(w, 7, END + BACK);
		world_walk(w, OTHER, 16);
		if (rows[i].known)
			world_expect(w, UNW_COMPLETE, OTHER, 0x4000 + BACK - 1, END + BACK - 1);
		else /* cut, although rbp is 0: 0x4000's row says that there is a caller */
			world_expect_error(w, RETURN_ADDRESS_NULL, OTHER, 0x4000 + BACK - 1);
		world_free(w);
	}
}

/* A stack pointer by a rule of its own that cannot be told: the caller has no stack to go on with.
 */
static void test_stack_pointer_that_is_lost(void **state)
{
	/* At CFA + 512, which was not captured; undefined; by an expression that is broken. */
	static const uint8_t rows[][8] = {{0x11, RSP, 0x40}, {0x07, RSP}, {0x16, RSP, 1, 0x22}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct unwind_world *w = world_with(rows[i], sizeof(rows[i]));

		put(w, 0, PLAIN + BACK);
		put(w, 1, END + BACK);
		world_walk(w, OTHER, 8);
		assert_int_equal(w->result.count, 1);
		assert_int_equal(w->result.end, UNW_TRUNCATED);
		/* Frame pointers may lead on, unless it is the bytes that are missing. */
		w->regs.value[RBP] = AT(4);
		put(w, 5, END + BACK);
		world_walk(w, OTHER, 8);
		if (i == 0)
			world_expect_error(w, STACK_TRUNCATED, OTHER);
		else
			world_expect(w, UNW_COMPLETE, OTHER, END + BACK - 1);
		world_free(w);
	}
}

/* As deep as may be, by rows that have no compiled form. */
static void test_depth(void **state)
{
	struct unwind_world *w =
		world_with(CFI(0x0e, 16, 0x90, 2)); /* return address at CFA - 16 */

	(void)state;
	for (size_t i = 0; i < 1022; i++)
		put(w, 2 * i, OTHER + BACK);
	put(w, 2 * 1022, END + BACK);
	world_walk(w, OTHER, 4096);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	put(w, 2 * 1022, OTHER + BACK);
	put(w, 2 * 1023, END + BACK);
	world_walk(w, OTHER, 4096);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	assert_false(w->result.has_error);
	world_free(w);
}

/* ---- signal frames ---- */

/* Offsets of registers in a signal frame, in words from sp at the restorer. */
enum { UC_R12 = 9, UC_RBP = 15, UC_RBX = 16, UC_RSP = 20, UC_RIP = 21 };

/* glibc's restorer: CFA = [rsp + 160], rip at rsp + 168, rbp at rsp + 120, rbx at rsp + 128. */
#define RESTORER \
	CFI(0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 16, 3, 0x77, 0xa8, 0x01, 0x10, RBP, 3, 0x77, \
	    0xf8, 0x00, 0x10, RBX, 3, 0x77, 0x80, 0x01, 0x10, RSP, 3, 0x77, 0xa0, 0x01)

/* A world with a restorer at 0x6001, whose entry begins one byte early, and "plain" on top. */
static struct unwind_world *world_with_signal(void)
{
	struct unwind_world *w = world_with(CFI(0x0c, RBX, 16));
	struct cfi_builder_cie cie = {.augmentation = "zRS", .ra = 16};
	uint64_t signal = cfi_build_cie(&w->eh, &cie);

	cfi_build_fde(&w->eh, signal, 0x6000, 0x20, RESTORER);
	put(w, 0, 0x6001);
	/* The interrupted function stands at its first byte, where pc - 1 is somebody else's. */
	put(w, 1 + UC_RIP, OTHER);
	w->words[1 + UC_RSP] = AT(40);
	w->words[1 + UC_RBX] = AT(50);
	put(w, 51, END + BACK);
	return w;
}

static void test_signal_frame(void **state)
{
	struct unwind_world *w = world_with_signal();

	(void)state;
	world_walk(w, PLAIN, 64);
	world_expect(w, UNW_COMPLETE, PLAIN, 0x6000, OTHER, END + BACK - 1);
	assert_int_equal(world_fallbacks(w), 0);
	world_free(w);
}

/* The handler ran on another stack, above the interrupted one: the captured bytes end there. */
static void test_signal_on_an_alternate_stack(void **state)
{
	struct unwind_world *w = world_with_signal();

	(void)state;
	w->words[1 + UC_RSP] = 0x7ffb00000000;
	w->words[1 + UC_RBX] = 0x7ffb00000010;
	world_walk(w, PLAIN, 64);
	world_expect_error(w, STACK_TRUNCATED, PLAIN, 0x6000, OTHER);
	/* An end by a row needs no stack. */
	put(w, 1 + UC_RIP, END);
	world_walk(w, PLAIN, 64);
	world_expect(w, UNW_COMPLETE, PLAIN, 0x6000, END);
	world_free(w);
}

/* Every register of the interrupted function is known, also scratch ones. */
static void test_registers_behind_a_signal(void **state)
{
	static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	struct unwind_world *w = world_with(CFI(0x0c, R9, 16));

	(void)state;
	/* musl's: no tables, the bytes tell. */
	world_code(w, 0x6000, restorer, sizeof(restorer));
	put(w, 0, 0x6000);
	put(w, 1 + UC_RIP, OTHER + 3);
	w->words[1 + UC_RSP] = AT(40);
	w->words[1 + 6] = AT(50); /* r9 */
	put(w, 51, END + BACK);
	world_walk(w, PLAIN, 64);
	world_expect(w, UNW_COMPLETE, PLAIN, 0x5fff, OTHER + 3, END + BACK - 1);
	assert_int_equal(world_fallbacks(w), 0);
	/* Sampled in the restorer itself, at each of its instructions. */
	w->regs.value[RSP] = AT(1);
	memmove(w->words, w->words + 1, sizeof(w->words) - 8);
	world_walk(w, 0x6000, 64);
	world_expect(w, UNW_COMPLETE, 0x6000, OTHER + 3, END + BACK - 1);
	world_walk(w, 0x6007, 64);
	world_expect(w, UNW_COMPLETE, 0x6007, OTHER + 3, END + BACK - 1);
	/* Cut inside of the saved registers. */
	world_walk(w, 0x6000, 20);
	world_expect_error(w, STACK_TRUNCATED, 0x6000);
	world_free(w);
}

/* A jump to nowhere: the signal's pc is a frame, but what called it is lost. */
static void test_signal_from_a_jump_to_zero(void **state)
{
	struct unwind_world *w = world_with_signal();

	(void)state;
	w->words[1 + UC_RIP] = 0;
	world_walk(w, PLAIN, 64);
	assert_int_equal(w->result.count, 3);
	assert_true(w->result.addresses[2] == 0);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	world_free(w);
}

/* ---- ends made by hand ---- */

/* A thread start that was made for the thread which starts another: its own caller for ever. */
static void test_frame_that_is_its_own_caller(void **state)
{
	/* "Thread": CFA = rsp, and the return address stays in a register that keeps it. */
	struct unwind_world *w = world_with(CFI(0x0e, 0, 0x0c, RSP, 0, 0x90, 0x00));

	(void)state;
	put(w, 0, OTHER + BACK);
	put(w, 1, OTHER + BACK);
	world_walk(w, PLAIN, 8);
	world_expect(w, UNW_COMPLETE, PLAIN, OTHER + BACK - 1);
	/* With a frame pointer it is a loop that is cut. */
	w->regs.value[RBP] = AT(5);
	world_walk(w, PLAIN, 8);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	assert_int_equal(w->result.count, 2);
	world_free(w);
}

/* The return address of a coroutine's first function is the start of another, which no call made.
 */
static void test_coroutine_start(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	world_function(w, OTHER + 0x10, SIZE, CFI(0x07, 16)); /* nothing in front of it */
	put(w, 0, OTHER + 0x10);
	put(w, 1, PLAIN + BACK);
	world_walk(w, PLAIN, 8);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	world_expect(w, UNW_COMPLETE, PLAIN, OTHER + 0x10);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_return_address_in_a_register),
		cmocka_unit_test(test_registers_in_registers),
		cmocka_unit_test(test_registers_behind_a_slow_row),
		cmocka_unit_test(test_stack_pointer_that_is_lost),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_signal_on_an_alternate_stack),
		cmocka_unit_test(test_registers_behind_a_signal),
		cmocka_unit_test(test_signal_from_a_jump_to_zero),
		cmocka_unit_test(test_frame_that_is_its_own_caller),
		cmocka_unit_test(test_coroutine_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The walk on AArch64: return addresses in x30 or saved, signed or not, and signal frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "unwind_world.h"

enum { X19 = 19, FP = 29, LR = 30, SP = 31 };
/* "leaf" saves nothing, "framed" has a record of x29 and x30 at sp, "end" is the outermost. */
enum { LEAF = 0x1000, FRAMED = 0x2000, END = 0x3000, OTHER = 0x4000, SIZE = 0x100, BACK = 0x10 };

/* The bits above the address in a signed pointer. */
#define SIGNED(address) (RUN(address) | UINT64_C(0x2626) << 48)

/* stp x29, x30, [sp, #-32]! at 0; ldp at the end. */
#define RECORD CFI(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x02, SIZE / 4 - 2, 0xdd, 0xde, 0x0e, 0)

static struct unwind_world *world(void)
{
	struct unwind_world *w = world_new(UNW_AARCH64);

	world_function(w, LEAF, SIZE, NO_CFI);
	world_function(w, FRAMED, SIZE, RECORD);
	world_function(w, END, SIZE, CFI(0x07, 30));
	for (uint64_t start = LEAF; start <= OTHER; start += 0x1000)
		world_call(w, start + BACK);
	return w;
}

static struct unwind_world *world_with(const uint8_t *program, size_t len)
{
	struct unwind_world *w = world();

	world_function(w, OTHER, SIZE, program, len);
	return w;
}

static void put(struct unwind_world *w, size_t i, uint64_t address)
{
	w->words[i] = RUN(address);
}

static void test_leaf(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	w->regs.value[LR] = RUN(FRAMED + BACK);
	put(w, 1, END + BACK);
	world_walk(w, LEAF + 8, 8);
	world_expect(w, UNW_COMPLETE, LEAF + 8, FRAMED + BACK - 1, END + BACK - 1);
	assert_int_equal(w->result.guessed, 0);
	/* A caller saved its x30: without that it would be its own caller. */
	w->regs.value[LR] = RUN(LEAF + BACK);
	world_walk(w, LEAF + 8, 8);
	world_expect(w, UNW_COMPLETE, LEAF + 8, LEAF + BACK - 1);
	/* x30 was not captured. */
	w->regs.known &= ~(UINT64_C(1) << LR);
	world_walk(w, LEAF + 8, 8);
	world_expect_error(w, REGISTER_CAPTURE, LEAF + 8);
	world_free(w);
}

/* Right at each instruction of prologue and epilogue; behind the ldp the cells lie below sp. */
static void test_prologue_and_epilogue(void **state)
{
	static const struct {
		uint64_t at;
		bool moved;
	} stops[] = {{0, false}, {4, true}, {0x40, true}, {SIZE - 4, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		struct unwind_world *w = world();

		w->regs.value[LR] = RUN(stops[i].moved ? FRAMED + BACK : END + BACK);
		if (stops[i].moved)
			put(w, 1, END + BACK);
		world_walk(w, FRAMED + stops[i].at, 8);
		world_expect(w, UNW_COMPLETE, FRAMED + stops[i].at, END + BACK - 1);
		world_free(w);
	}
}

static void test_ends(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	world_walk(w, END, 0);
	world_expect(w, UNW_COMPLETE, END);
	world_walk(w, LEAF, 0); /* x30 = 0 */
	world_expect(w, UNW_COMPLETE, LEAF);
	world_walk(w, FRAMED + 8, 8); /* a record of zeros */
	world_expect(w, UNW_COMPLETE, FRAMED + 8);
	w->regs.value[LR] = 4095;
	world_walk(w, LEAF, 0);
	world_expect_error(w, RETURN_ADDRESS_NULL, LEAF);
	w->regs.value[LR] = RUN(FRAMED + BACK);
	world_walk(w, LEAF, 1); /* half a record */
	world_expect_error(w, STACK_TRUNCATED, LEAF, FRAMED + BACK - 1);
	world_free(w);
}

/* Signatures are stripped from x30 and from saved words, whether the row says that they are there.
 */
static void test_signed_return_addresses(void **state)
{
	struct unwind_world *w = world_with(CFI(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3));

	(void)state;
	w->regs.value[LR] = SIGNED(FRAMED + BACK);
	w->words[1] = SIGNED(OTHER + BACK);
	w->words[5] = SIGNED(END + BACK);
	world_walk(w, LEAF, 16);
	world_expect(w, UNW_COMPLETE, LEAF, FRAMED + BACK - 1, OTHER + BACK - 1, END + BACK - 1);
	/* By another mask more bits are address. */
	unwinder_set_address_mask(w->unwinder, (UINT64_C(1) << 56) - 1);
	world_walk(w, LEAF, 16);
	assert_int_equal(w->result.count, 2);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	world_free(w);
}

/* x30's cell at the bottom of a frame that no capture holds: one caller more is found. */
static void test_huge_frame(void **state)
{
	/* CFA = sp + 70,016; x30 at CFA - 70,008 */
	struct unwind_world *w =
		world_with(CFI(0x0e, 0x80, 0xa3, 0x04, 0x05, 30, 0xaf, 0x44, 0x05, 29, 0xb0, 0x44));

	(void)state;
	put(w, 1, FRAMED + BACK);
	world_walk(w, OTHER + BACK, 64);
	world_expect_error(w, STACK_TRUNCATED, OTHER + BACK, FRAMED + BACK - 1);
	world_free(w);
}

/* alloca: the CFA counts from x29, which an inner frame saved. */
static void test_cfa_by_frame_pointer(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, FP, 32, 0x9d, 4, 0x9e, 3));

	(void)state;
	w->regs.value[LR] = RUN(FRAMED + BACK);
	w->words[0] = AT(20); /* saved by "framed" */
	put(w, 1, OTHER + BACK);
	w->words[20] = AT(30);
	put(w, 21, OTHER + BACK);
	put(w, 31, END + BACK);
	world_walk(w, LEAF, 64);
	world_expect(w, UNW_COMPLETE, LEAF, FRAMED + BACK - 1, OTHER + BACK - 1, OTHER + BACK - 1,
		     END + BACK - 1);
	/* Saved above what was captured: lost. */
	w->words[0] = AT(200);
	world_walk(w, LEAF, 64);
	world_expect_error(w, STACK_TRUNCATED, LEAF, FRAMED + BACK - 1, OTHER + BACK - 1);
	world_free(w);
}

/* A CFA on x19, which two frames further in saved: rules have no room for it, the tables do. */
static void test_cfa_by_a_saved_register(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, X19, 32, 0x9d, 4, 0x9e, 3));

	(void)state;
	world_function(w, 0x5000, SIZE, CFI(0x0e, 32, 0x9d, 4, 0x9e, 3, 0x93, 2)); /* at CFA-16 */
	world_call(w, 0x5000 + BACK);
	w->regs.value[LR] = RUN(0x5000 + BACK);
	put(w, 1, FRAMED + BACK);
	w->words[2] = AT(16);
	put(w, 5, OTHER + BACK);
	put(w, 17, END + BACK);
	w->regs.value[X19] = 0x4444;
	world_walk(w, LEAF, 64);
	world_expect(w, UNW_COMPLETE, LEAF, 0x5000 + BACK - 1, FRAMED + BACK - 1, OTHER + BACK - 1,
		     END + BACK - 1);
	world_free(w);
}

static void test_depth(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	w->regs.value[LR] = RUN(FRAMED + BACK);
	for (size_t i = 0; i < 1021; i++)
		put(w, 4 * i + 1, FRAMED + BACK);
	put(w, 4 * 1021 + 1, END + BACK);
	world_walk(w, LEAF, 4200);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	put(w, 4 * 1021 + 1, FRAMED + BACK);
	put(w, 4 * 1022 + 1, END + BACK);
	world_walk(w, LEAF, 4200);
	assert_int_equal(w->result.count, 1024);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	assert_false(w->result.has_error);
	world_free(w);
}

static void test_backwards(void **state)
{
	struct unwind_world *w = world_with(CFI(0x0c, FP, 16, 0x9d, 2, 0x9e, 1));

	(void)state;
	w->regs.value[FP] = WORLD_SP - 64;
	world_walk(w, OTHER, 64);
	world_expect_error(w, MOVED_BACKWARDS, OTHER);
	w->regs.value[FP] = UINT64_MAX - 7;
	world_walk(w, OTHER, 64);
	world_expect_error(w, MOVED_BACKWARDS, OTHER);
	world_free(w);
}

/* ---- signal frames ---- */

/* Words from sp at the restorer: x0 at 312 bytes. */
enum { UC_X0 = 39, UC_X19 = UC_X0 + 19, UC_FP = UC_X0 + 29, UC_LR, UC_SP, UC_PC };

static void test_signal_frame(void **state)
{
	static const uint32_t restorer[] = {0xd2801168, 0xd4000001};
	/* "with": tables that know of the frame record only; "without": none, as in today's vDSO.
	 */
	for (int with = 0; with < 2; with++) {
		struct unwind_world *w = world_with(CFI(0x0c, X19, 16));

		if (with)
			world_function(w, 0x6000, 8, CFI(0x0c, FP, 16, 0x9d, 2, 0x9e, 1));
		world_code(w, 0x6000, restorer, sizeof(restorer));
		w->regs.value[LR] = RUN(0x6000);
		w->words[UC_PC] = RUN(OTHER); /* its first instruction */
		w->words[UC_LR] = RUN(END + BACK);
		w->words[UC_SP] = AT(400);
		w->words[UC_X19] = AT(500);
		world_walk(w, LEAF, 600);
		world_expect(w, UNW_COMPLETE, LEAF, 0x5fff, OTHER, END + BACK - 1);
		assert_int_equal(world_fallbacks(w), 0);
		world_walk(w, LEAF, 70);
		world_expect_error(w, STACK_TRUNCATED, LEAF, 0x5fff);
		world_free(w);
	}
	(void)state;
}

/* ---- without tables ---- */

/* Code at OTHER, which has no tables here. */
static void test_without_tables(void **state)
{
	static const struct {
		const char *what;
		uint32_t code[4];
		uint64_t at;
		bool in_lr;
	} rows[] = {
		{"at a return", {0xd503201f, 0xd65f03c0}, 4, true},
		{"behind a return", {0xd65f03c0, 0xd503201f, 0xd503201f}, 8, true},
		{"behind stp", {0xd65f03c0, 0xa9be7bfd, 0x910003fd, 0xd503201f}, 8, false},
		{"at stp", {0xd65f03c0, 0xa9be7bfd}, 4, true},
		{"behind ldp", {0xa9be7bfd, 0xa8c27bfd, 0xd503201f, 0xd65f03c0}, 8, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct unwind_world *w = world();

		world_code(w, OTHER + 0x20, rows[i].code, sizeof(rows[i].code));
		w->regs.value[FP] = AT(8); /* the caller's */
		w->regs.value[LR] = RUN(rows[i].in_lr ? FRAMED + BACK : OTHER + BACK);
		if (!rows[i].in_lr)
			put(w, 1, FRAMED + BACK);
		put(w, rows[i].in_lr ? 1 : 3, END + BACK);
		world_walk(w, OTHER + 0x20 + rows[i].at, 64);
		world_expect(w, UNW_COMPLETE, OTHER + 0x20 + rows[i].at, FRAMED + BACK - 1,
			     END + BACK - 1);
		assert_int_equal(w->result.guessed, 1);
		world_free(w);
	}
}

static void test_frame_pointer_fallback(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	w->regs.value[FP] = AT(4);
	w->regs.value[LR] = RUN(OTHER + BACK); /* its own call: not its caller */
	w->words[5] = SIGNED(FRAMED + BACK);
	put(w, 7, END + BACK);
	world_walk(w, OTHER + 0x40, 64);
	world_expect(w, UNW_COMPLETE, OTHER + 0x40, FRAMED + BACK - 1, END + BACK - 1);
	assert_int_equal(world_fallbacks(w), 1);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_UNWIND_INFO], 1);
	assert_int_equal(w->result.fallback_modules[SPULSE_UNWIND_FALLBACK_UNWIND_INFO], 7);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaf),
		cmocka_unit_test(test_prologue_and_epilogue),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_signed_return_addresses),
		cmocka_unit_test(test_huge_frame),
		cmocka_unit_test(test_cfa_by_frame_pointer),
		cmocka_unit_test(test_cfa_by_a_saved_register),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_without_tables),
		cmocka_unit_test(test_frame_pointer_fallback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

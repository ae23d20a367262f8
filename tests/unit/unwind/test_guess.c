/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Code without tables: what its bytes tell, when the frame pointer is followed, and that each such
 * step is counted with its reason and its module.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "unwind/guess.h"
#include "unwind_world.h"

enum { RBP = 6, RSP = 7 };
/* "end" is the outermost and has a table; "bare" has none, and calls end at +0x10 in both. */
enum { BARE = 0x1800, END = 0x2000, SIZE = 0x100, BACK = 0x10 };

static struct unwind_world *world(void)
{
	struct unwind_world *w = world_new(UNW_X86_64);

	world_function(w, 0x1000, 0x10, NO_CFI);
	world_function(w, END, SIZE, CFI(0x07, 16));
	world_call(w, END + BACK);
	world_call(w, BARE + BACK);
	return w;
}

static void put(struct unwind_world *w, size_t i, uint64_t address)
{
	w->words[i] = RUN(address);
}

/* ---- calls in front of an address ---- */

static void test_calls(void **state)
{
	static const struct {
		uint8_t bytes[CALL_BYTES];
		bool call;
	} rows[] = {
		{{0x90, 0x90, 0xe8, 1, 2, 3, 4}, true},		     /* call rel32 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, true},  /* call *%rax */
		{{0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3}, true},  /* call *%r11 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x10}, true},  /* call *(%rax) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 8}, true},     /* call *8(%rax) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc1}, true},  /* call *(%rcx,%rax,8) */
		{{0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 8}, true},     /* call *8(%rsp) */
		{{0x90, 0xff, 0x15, 1, 2, 3, 4}, true},		     /* call *x(%rip) */
		{{0xff, 0x14, 0xc5, 1, 2, 3, 4}, true},		     /* call *x(,%rax,8) */
		{{0xff, 0x94, 0x24, 0, 1, 0, 0}, true},		     /* call *256(%rsp) */
		{{0x90, 0xff, 0x90, 0, 1, 0, 0}, true},		     /* call *256(%rax) */
		{{0x90, 0x90, 0xe9, 1, 2, 3, 4}, false},	     /* jmp */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, false}, /* jmp *%rax */
		{{0x90, 0xff, 0x25, 1, 2, 3, 4}, false},	     /* jmp *x(%rip) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x50}, false}, /* its offset is missing */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, false},
		{{0, 0, 0, 0, 0, 0, 0}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(guess_ends_with_call(UNW_X86_64, rows[i].bytes), rows[i].call);
}

static void test_calls_aarch64(void **state)
{
	static const struct {
		uint32_t insn;
		bool call;
	} rows[] = {
		{0x94000001, true},  /* bl */
		{0x97ffffff, true},  /* bl backwards */
		{0xd63f0020, true},  /* blr x1 */
		{0xd63f0bff, true},  /* blraaz */
		{0xd73f0a11, true},  /* blraa x16, x17 */
		{0x14000001, false}, /* b */
		{0xd61f0020, false}, /* br x1 */
		{0xd65f03c0, false}, /* ret */
		{0xd503201f, false}, /* nop */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[CALL_BYTES] = {0};

		memcpy(bytes + CALL_BYTES - 4, &rows[i].insn, 4);
		assert_int_equal(guess_ends_with_call(UNW_AARCH64, bytes), rows[i].call);
	}
}

/* ---- the innermost frame ---- */

/* Code from BARE on; the window's other bytes are nops, which tell nothing. */
static void code(struct unwind_world *w, const char *bytes, size_t len)
{
	world_code(w, BARE + 0x40, bytes, len);
}

static void test_return_address_on_top(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	code(w, "\xc3", 1);
	put(w, 0, END + BACK);
	world_walk(w, BARE + 0x40, 4);
	world_expect(w, UNW_COMPLETE, BARE + 0x40, END + BACK - 1);
	assert_int_equal(w->result.guessed, 1);
	assert_int_equal(world_fallbacks(w), 0);
	/* Only if it follows a call. */
	put(w, 0, END + BACK + 1);
	w->regs.value[RBP] = 8;
	world_walk(w, BARE + 0x40, 4);
	assert_int_equal(w->result.count, 1);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	assert_int_equal(w->result.guessed, 0);
	/* Data that is no address of code. */
	w->words[0] = 0x4242424242;
	world_walk(w, BARE + 0x40, 4);
	assert_int_equal(w->result.count, 1);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	world_free(w);
}

/* push %rbp; mov %rsp, %rbp; ...; pop %rbp; ret: right at each instruction. */
static void test_framed_function(void **state)
{
	static const struct {
		uint64_t at, sp;
		bool fp_set;
	} stops[] = {{0, 1, false}, {1, 0, false}, {4, 0, true}, {6, 0, true}, {7, 1, false}};
	struct unwind_world *w = world();

	(void)state;
	code(w, "\x55\x48\x89\xe5\x31\xc0\x5d\xc3", 8);
	w->words[0] = AT(8);
	put(w, 1, BARE + BACK);
	put(w, 9, END + BACK);
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		uint64_t saved = w->words[0];

		w->regs.value[RSP] = AT(stops[i].sp);
		w->regs.value[RBP] = stops[i].fp_set ? AT(0) : AT(8);
		if (stops[i].sp)
			memmove(w->words, w->words + 1, 100 * 8);
		world_walk(w, BARE + 0x40 + stops[i].at, 32);
		world_expect(w, UNW_COMPLETE, BARE + 0x40 + stops[i].at, BARE + BACK - 1,
			     END + BACK - 1);
		if (stops[i].sp) {
			memmove(w->words + 1, w->words, 100 * 8);
			w->words[0] = saved;
		}
	}
	world_free(w);
}

/* sub $24, %rsp ... add $24, %rsp; ret: how deep the frame is shows at its end. */
static void test_function_without_frame_pointer(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	code(w, "\x48\x83\xec\x18\x31\xc0\x48\x83\xc4\x18\xc3", 11);
	put(w, 3, END + BACK);
	world_walk(w, BARE + 0x44, 8);
	world_expect(w, UNW_COMPLETE, BARE + 0x44, END + BACK - 1);
	assert_int_equal(w->result.guessed, 1);
	/* As a caller, too. */
	world_call(w, BARE + 0x49); /* over the sub and the xor */
	world_code(w, BARE + 0x49, "\x48\x83\xc4\x18\xc3", 5);
	w->words[3] = 0;
	put(w, 0, BARE + 0x49);
	put(w, 4, END + BACK);
	world_walk(w, 0x1000, 8);
	world_expect(w, UNW_COMPLETE, 0x1000, BARE + 0x48, END + BACK - 1);
	world_free(w);
}

/* Linkage tables without tables of their own. */
static void test_linkage_stubs(void **state)
{
	static const struct {
		uint64_t at, ra;
	} stops[] = {{0, 0}, {6, 0}, {11, 1}};
	struct unwind_world *w = world();

	(void)state;
	code(w, "\xff\x25\x01\x02\x03\x04\x68\x05\x00\x00\x00\xe9\xf0\xff\xff\xff", 16);
	for (size_t i = 0; i < 3; i++) {
		w->words[0] = 5;
		put(w, stops[i].ra, END + BACK);
		world_walk(w, BARE + 0x40 + stops[i].at, 4);
		world_expect(w, UNW_COMPLETE, BARE + 0x40 + stops[i].at, END + BACK - 1);
		assert_int_equal(w->result.guessed, 1);
	}
	world_free(w);
}

/* ---- the frame pointer, and why ---- */

static void expect_reason(struct unwind_world *w, uint64_t pc, enum spulse_unwind_fallback reason,
			  uint32_t module)
{
	w->regs.value[RBP] = AT(2);
	put(w, 3, END + BACK);
	world_walk(w, pc, 8);
	world_expect(w, UNW_COMPLETE, pc, END + BACK - 1);
	assert_int_equal(world_fallbacks(w), 1);
	assert_int_equal(w->result.fallbacks[reason], 1);
	assert_int_equal(w->result.fallback_modules[reason], module);
}

/* A broken instruction in front, so that the code itself does not tell. */
static void test_reasons(void **state)
{
	static const uint8_t broken[] = {0x3f};
	struct unwind_world *w = world();

	(void)state;
	memset(w->text, 0xf4, sizeof(w->text)); /* hlt: never a way out */
	world_call(w, END + BACK);
	world_function(w, 0x3000, SIZE, broken, sizeof(broken));
	expect_reason(w, BARE, SPULSE_UNWIND_FALLBACK_UNWIND_INFO, 7);
	expect_reason(w, 0x3000, SPULSE_UNWIND_FALLBACK_UNWIND_INFO, 7);
	world_free(w);

	w = world_new(UNW_X86_64);
	memset(w->text, 0xf4, sizeof(w->text));
	world_function(w, END, SIZE, CFI(0x07, 16));
	world_call(w, END + BACK);
	expect_reason(w, 0x1000, SPULSE_UNWIND_FALLBACK_EH_FRAME_HDR_LOOKUP, 7);
	world_free(w);

	w = world_new(UNW_X86_64);
	memset(w->text, 0xf4, sizeof(w->text));
	world_function(w, END, SIZE, CFI(0x07, 16));
	world_call(w, END + BACK);
	w->no_hdr = true;
	expect_reason(w, 0x1000, SPULSE_UNWIND_FALLBACK_CFI_INDEX_LOOKUP, 7);
	world_free(w);
}

static void test_reason_without_any_table(void **state)
{
	struct unwind_world *w = world_new(UNW_X86_64);

	(void)state;
	memset(w->text, 0xf4, sizeof(w->text));
	world_call(w, BARE + BACK);
	w->regs.value[RBP] = AT(2);
	put(w, 3, BARE + BACK);
	world_walk(w, BARE, 8);
	/* The caller's rbp is 0: the end. */
	world_expect(w, UNW_COMPLETE, BARE, BARE + BACK - 1);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_UNWIND_DATA], 1);
	world_free(w);
}

/* An entry that cannot be read where the header points. */
static void test_reason_of_a_bad_entry(void **state)
{
	struct unwind_world *w = world_new(UNW_X86_64);
	struct cfi_builder_cie odd = {.version = 9, .ra = 16};
	uint64_t cie;

	(void)state;
	memset(w->text, 0xf4, sizeof(w->text));
	world_function(w, END, SIZE, CFI(0x07, 16));
	cie = cfi_build_cie(&w->eh, &odd);
	cfi_build_fde(&w->eh, cie, 0x3000, SIZE, NO_CFI);
	world_call(w, END + BACK);
	w->regs.value[RBP] = AT(2);
	put(w, 3, END + BACK);
	world_walk(w, 0x3000, 8);
	world_expect(w, UNW_COMPLETE, 0x3000, END + BACK - 1);
	assert_int_equal(world_fallbacks(w), 1);
	world_free(w);
}

/* Executable memory without an image; and an address in no mapping at all. */
static void test_reason_without_image(void **state)
{
	struct unwind_world *w = world();
	struct unw_map map = {.start = 0x10000, .end = 0x20000, .module = 9};

	(void)state;
	world_map(w);
	assert_int_equal(unw_space_map(w->space, &map, NULL), 0);
	w->regs.value[RBP] = AT(2);
	w->words[2] = AT(4);
	w->words[3] = 0x10100; /* no bytes to look at: it counts as called */
	put(w, 5, END + BACK);
	w->regs.value[16] = 0x10200;
	world_walk_registers(w, 64);
	assert_int_equal(w->result.count, 3);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	assert_true(w->result.addresses[1] == 0x100ff);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_MODULE], 2);
	assert_int_equal(w->result.fallback_modules[SPULSE_UNWIND_FALLBACK_NO_MODULE], 9);
	w->regs.value[16] = 0x666000;
	w->regs.value[RBP] = AT(4);
	world_walk_registers(w, 64);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_MODULE], 1);
	assert_true(w->result.fallback_modules[SPULSE_UNWIND_FALLBACK_NO_MODULE] == UINT32_MAX);
	world_free(w);
}

static void test_frame_pointers_that_are_none(void **state)
{
	static const uint64_t bad[] = {
		8, WORLD_SP - 8, WORLD_SP + 4, WORLD_SP + 1024, UINT64_MAX - 7, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct unwind_world *w = world();

		memset(w->text, 0xf4, sizeof(w->text));
		w->regs.value[RBP] = bad[i];
		world_walk(w, BARE, 16);
		assert_int_equal(w->result.count, 1);
		assert_int_equal(w->result.end, UNW_TRUNCATED);
		assert_true(w->result.has_error);
		assert_int_equal(world_fallbacks(w), 0);
		world_free(w);
	}
}

/* Return addresses that no call made do not become frames. */
static void test_frame_without_call(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	memset(w->text, 0xf4, sizeof(w->text));
	w->regs.value[RBP] = AT(2);
	put(w, 3, BARE + 0x80);
	world_walk(w, BARE, 8);
	world_expect_error(w, RETURN_ADDRESS_NULL, BARE);
	w->words[3] = 0x123456; /* in no mapping */
	world_walk(w, BARE, 8);
	world_expect_error(w, RETURN_ADDRESS_NULL, BARE);
	w->words[3] = 0;
	world_walk(w, BARE, 8);
	world_expect(w, UNW_COMPLETE, BARE);
	world_free(w);
}

/*
 * The kernel's probe of function returns puts its own trampoline in place of a return address: what
 * called the function is not known, and a zero frame pointer does not end that stack.
 */
static void test_return_probe(void **state)
{
	struct unw_map probes = {.start = 0x7fff0000, .end = 0x7fff1000, .module = 3};
	struct unwind_world *w = world();

	(void)state;
	world_map(w);
	assert_int_equal(unw_space_map(w->space, &probes, NULL), 0);
	w->words[0] = 0x7fff0000; /* the first byte: one less is in no mapping */
	world_walk(w, 0x1000, 8);
	assert_int_equal(w->result.count, 2);
	assert_int_equal(w->result.end, UNW_TRUNCATED);
	/* With frame pointers the walk goes on above the caller. */
	w->regs.value[RBP] = AT(4);
	put(w, 5, END + BACK);
	world_walk(w, 0x1000, 8);
	assert_int_equal(w->result.count, 3);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	world_free(w);
}

/* Where mappings could not be read, frame pointers lead on, and zero ends the stack. */
static void test_unknown_mappings(void **state)
{
	struct unwind_world *w = world();

	(void)state;
	world_map(w);
	unw_space_clear(w->space);
	unw_space_set_partial(w->space, true);
	w->regs.value[RBP] = AT(2);
	put(w, 3, 0x5000);
	w->words[2] = AT(6);
	put(w, 7, 0x6000);
	world_walk(w, 0x4000, 16);
	world_expect(w, UNW_COMPLETE, 0x4000, 0x4fff, 0x5fff);
	assert_int_equal(w->result.fallbacks[SPULSE_UNWIND_FALLBACK_NO_MODULE], 2);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_calls_aarch64),
		cmocka_unit_test(test_return_address_on_top),
		cmocka_unit_test(test_framed_function),
		cmocka_unit_test(test_function_without_frame_pointer),
		cmocka_unit_test(test_linkage_stubs),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_reason_without_any_table),
		cmocka_unit_test(test_reason_of_a_bad_entry),
		cmocka_unit_test(test_reason_without_image),
		cmocka_unit_test(test_frame_pointers_that_are_none),
		cmocka_unit_test(test_frame_without_call),
		cmocka_unit_test(test_return_probe),
		cmocka_unit_test(test_unknown_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

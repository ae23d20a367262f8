/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unwind_world.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t x86_start[] = {0x0c, 7, 8, 0x90, 1}; /* CFA = rsp + 8, RA at CFA - 8 */
static const uint8_t arm_start[] = {0x0c, 31, 0};	  /* CFA = sp */

struct unwind_world *world_new(enum unw_arch arch)
{
	struct unwind_world *w = calloc(1, sizeof(*w));
	bool x86 = arch == UNW_X86_64;
	struct cfi_builder_cie cie = {
		.ra = x86 ? 16 : 30,
		.code_align = x86 ? 1 : 4,
		.program = x86 ? x86_start : arm_start,
		.program_len = x86 ? sizeof(x86_start) : sizeof(arm_start),
	};

	assert_non_null(w);
	w->arch = arch;
	w->eh.addr = WORLD_EH;
	w->debug.debug = true;
	w->cie = cfi_build_cie(&w->eh, &cie);
	w->debug_cie = cfi_build_cie(&w->debug, &cie);
	if (x86)
		memset(w->text, 0x90, sizeof(w->text));
	for (size_t i = 0; !x86 && i < sizeof(w->text); i += 4)
		memcpy(w->text + i, "\x1f\x20\x03\xd5", 4);
	w->regs.known = (UINT64_C(1) << (x86 ? 17 : 33)) - 1;
	w->regs.value[x86 ? 7 : 31] = WORLD_SP;
	return w;
}

void world_free(struct unwind_world *w)
{
	unwinder_free(w->unwinder);
	unw_space_free(w->space);
	unw_image_unref(w->image);
	free(w);
}

void world_function(struct unwind_world *w, uint64_t start, uint64_t size, const uint8_t *program,
		    size_t len)
{
	cfi_build_fde(&w->eh, w->cie, start, size, program, len);
}

void world_debug_function(struct unwind_world *w, uint64_t start, uint64_t size,
			  const uint8_t *program, size_t len)
{
	cfi_build_fde(&w->debug, w->debug_cie, start, size, program, len);
}

void world_code(struct unwind_world *w, uint64_t address, const void *bytes, size_t len)
{
	assert_in_range(address, WORLD_TEXT, WORLD_TEXT + WORLD_TEXT_LEN - len);
	memcpy(w->text + (address - WORLD_TEXT), bytes, len);
}

uint64_t world_call(struct unwind_world *w, uint64_t address)
{
	if (w->arch == UNW_X86_64)
		world_code(w, address - 5, "\xe8\x10\x00\x00\x00", 5);
	else
		world_code(w, address - 4, "\x04\x00\x00\x94", 4);
	return RUN(address);
}

static void make_image(struct unwind_world *w)
{
	struct unw_sections sections = {
		.arch = w->arch,
		.eh_frame = w->eh.bytes,
		.eh_frame_len = w->eh.fde_count ? w->eh.len : 0,
		.eh_frame_addr = w->eh.addr,
		.debug_frame = w->debug.bytes,
		.debug_frame_len = w->debug.fde_count ? w->debug.len : 0,
		.text = w->text,
		.text_len = sizeof(w->text),
		.text_addr = WORLD_TEXT,
	};

	if (!w->hdr_len)
		w->hdr_len = cfi_build_hdr(&w->eh, WORLD_HDR, w->hdr);
	if (!w->no_hdr) {
		sections.eh_frame_hdr = w->hdr;
		sections.eh_frame_hdr_len = w->hdr_len;
		sections.eh_frame_hdr_addr = WORLD_HDR;
	}
	assert_int_equal(unw_image_from_sections(&sections, &w->image, NULL), 0);
}

void world_map(struct unwind_world *w)
{
	struct unw_map map = {.start = RUN(WORLD_TEXT),
			      .end = RUN(WORLD_TEXT + WORLD_TEXT_LEN),
			      .bias = WORLD_BIAS,
			      .module = 7};

	make_image(w);
	map.image = w->image;
	assert_int_equal(unw_space_new(&w->space, NULL), 0);
	assert_int_equal(unw_space_map(w->space, &map, NULL), 0);
	assert_int_equal(unwinder_new(w->arch, &w->callbacks, &w->unwinder, NULL), 0);
}

void world_walk(struct unwind_world *w, uint64_t pc, size_t words)
{
	w->regs.value[w->arch == UNW_X86_64 ? 16 : 32] = RUN(pc);
	world_walk_registers(w, 8 * words);
}

void world_walk_registers(struct unwind_world *w, size_t bytes)
{
	/* Of just that size, so that a sanitizer sees a read behind it. */
	uint8_t *stack = malloc(bytes ? bytes : 1);

	assert_non_null(stack);
	assert_true(bytes <= sizeof(w->words));
	memcpy(stack, w->words, bytes);
	if (!w->unwinder)
		world_map(w);
	unw_walk(w->unwinder, w->space, &w->regs, stack, bytes, &w->result);
	free(stack);
}

void world_expect_frames(const struct unwind_world *w, enum unw_end end, const uint64_t *frames,
			 size_t count, const char *file, int line)
{
	bool same = w->result.count == count && w->result.end == end;

	for (size_t i = 0; i < count && i < w->result.count; i++)
		same &= w->result.addresses[i] == RUN(frames[i]);
	if (same)
		return;
	for (size_t i = 0; i < count || i < w->result.count; i++)
		print_error("frame %zu: expected %#llx, found %#llx\n", i,
			    i < count ? (unsigned long long)frames[i] : 0,
			    i < w->result.count
				    ? (unsigned long long)(w->result.addresses[i] - WORLD_BIAS)
				    : 0);
	print_error("end: expected %d, found %d, error %d\n", end, w->result.end,
		    w->result.has_error ? (int)w->result.error : -1);
	_fail(file, line);
}

uint32_t world_fallbacks(const struct unwind_world *w)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++)
		sum += w->result.fallbacks[i];
	return sum;
}

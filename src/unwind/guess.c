/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Code bytes as witnesses. They are looked at for addresses without tables only: hand-written
 * assembly, gaps in tables, libraries built without tables, generated code.
 */
#include "guess.h"

#include "epilogue.h"

/* Bytes at an offset from the address; false when the window does not hold them. */
static bool window_has(const struct code_window *w, int64_t at, const void *bytes, size_t len)
{
	int64_t first = (int64_t)w->before + at;

	return first >= 0 && first + (int64_t)len <= (int64_t)w->len &&
	       memcmp(w->bytes + first, bytes, len) == 0;
}

static bool window_byte(const struct code_window *w, int64_t at, uint8_t *byte)
{
	int64_t i = (int64_t)w->before + at;

	if (i < 0 || i >= (int64_t)w->len)
		return false;
	*byte = w->bytes[i];
	return true;
}

#define HAS(w, at, ...) \
	window_has((w), (at), (const uint8_t[]){__VA_ARGS__}, \
		   sizeof((const uint8_t[]){__VA_ARGS__}))

bool guess_is_restorer(enum unw_arch arch, const struct code_window *w)
{
	/* mov $15, %rax; syscall */
	static const uint8_t x86[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	/* mov x8, #139; svc #0 */
	static const uint8_t arm[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

	/* Seen from a return address minus one, then at either of the two instructions. */
	if (arch == UNW_X86_64)
		return window_has(w, 1, x86, sizeof(x86)) || window_has(w, 0, x86, sizeof(x86)) ||
		       window_has(w, -7, x86, sizeof(x86));
	return window_has(w, 1, arm, sizeof(arm)) || window_has(w, 0, arm, sizeof(arm)) ||
	       window_has(w, -4, arm, sizeof(arm));
}

/*
 * Backwards to what set the frame up, or to what ends the function before: a return or padding.
 * Bytes inside of other instructions may look like either; the caller checks what it finds.
 */
static enum rule_hint frame_of_x86(const struct code_window *w)
{
	for (int64_t at = -4; at >= -(int64_t)w->before; at--) {
		if (HAS(w, at, 0x55, 0x48, 0x89, 0xe5) || HAS(w, at, 0x55, 0x48, 0x8b, 0xec))
			return HINT_FRAME;
		if (HAS(w, at, 0xcc, 0xcc, 0xcc) || HAS(w, at, 0xc9, 0xc3) ||
		    HAS(w, at, 0x5d, 0xc3) || HAS(w, at, 0xc9, 0xc2) || HAS(w, at, 0x5d, 0xc2) ||
		    HAS(w, at, 0x0f, 0x1f, 0x40, 0x00) || HAS(w, at, 0x66, 0x2e, 0x0f, 0x1f))
			return HINT_LEAF;
	}
	return HINT_UNKNOWN;
}

static enum rule_hint hint_x86(const struct code_window *w)
{
	int64_t at = HAS(w, 0, 0xf3, 0x0f, 0x1e, 0xfa) ? 4 : 0; /* endbr64 */

	if (HAS(w, 0, 0xc3) || HAS(w, 0, 0xc2) || HAS(w, 0, 0xf2, 0xc3) || HAS(w, 0, 0xf3, 0xc3))
		return HINT_ENTRY;
	if (HAS(w, at, 0x55) || at)
		return HINT_ENTRY;
	/* Stubs of linkage tables: jmp *slot(%rip); push $index. */
	if (HAS(w, 0, 0xff, 0x25) || HAS(w, 0, 0xf2, 0xff, 0x25))
		return HINT_ENTRY;
	if (HAS(w, 0, 0x68) && HAS(w, -6, 0xff, 0x25))
		return HINT_ENTRY;
	if (HAS(w, 0, 0xe9) && HAS(w, -5, 0x68) && HAS(w, -11, 0xff, 0x25))
		return HINT_PUSHED;
	/* push %rbp; mov %rsp, %rbp in its two encodings. */
	if (HAS(w, -1, 0x55, 0x48, 0x89, 0xe5) || HAS(w, -1, 0x55, 0x48, 0x8b, 0xec))
		return HINT_PUSHED;
	return frame_of_x86(w);
}

/*
 * Backwards to the function's start or to a jump that nothing falls through: an executed
 * "stp x29, x30, [sp, #-n]!" put the frame record at sp, else the return address is in x30.
 */
static enum rule_hint hint_arm(const struct code_window *w)
{
	uint32_t insn;

	if (w->before >= w->len)
		return HINT_UNKNOWN;
	for (int64_t at = 0; at >= -(int64_t)w->before; at -= 4) {
		if ((size_t)(at + (int64_t)w->before) + 4 > w->len)
			return HINT_UNKNOWN;
		insn = load_u32(w->bytes + (int64_t)w->before + at);
		if (at == 0) {
			if (insn == 0xd65f03c0) /* ret */
				return HINT_ENTRY;
			continue;
		}
		if (insn == 0xd65f03c0 || (insn & 0xfc000000) == 0x14000000) /* ret, b */
			return HINT_ENTRY;
		if ((insn & 0xffc07fff) == 0xa9807bfd) /* stp x29, x30, [sp, #-n]! */
			return HINT_RECORD;
		if ((insn & 0xffc07fff) == 0xa8c07bfd) /* ldp x29, x30, [sp], #n */
			return HINT_ENTRY;
	}
	return HINT_UNKNOWN;
}

static bool guess_is_in_call(const struct code_window *w)
{
	uint8_t bytes[CALL_BYTES];

	if (w->before < CALL_BYTES - 1 || w->len < w->before + 1)
		return false;
	memcpy(bytes, w->bytes + w->before + 1 - CALL_BYTES, CALL_BYTES);
	return guess_ends_with_call(UNW_X86_64, bytes);
}

rule_t guess_rule(enum unw_arch arch, const struct code_window *window,
		  enum spulse_unwind_fallback reason)
{
	rule_t rule;

	if (guess_is_restorer(arch, window))
		return RULE_SIGNAL;
	if (arch != UNW_X86_64)
		return rule_none(reason, hint_arm(window));
	/*
	 * A pc stands at the address, a return address one byte behind it: then the address is the
	 * last byte of a call, where no instruction starts.
	 */
	rule = epilogue_rule(window, !guess_is_in_call(window));
	if (!rule)
		return rule_none(reason, hint_x86(window));
	return (rule & ~(rule_t)0xfc000f) | RULE_DECODED |
	       (rule_t)(rule_kind(rule) == RULE_FP) << 18 | (rule_t)hint_x86(window) << 52 |
	       (rule_t)reason << 56;
}

/* call *r/m: ff with 2 or 3 in the register field, in any length that fits exactly. */
static bool ends_with_indirect_call(const struct code_window *w)
{
	for (int64_t len = 2; len <= 7; len++) {
		uint8_t op, modrm, sib = 0;
		int64_t want = 2;

		if (!window_byte(w, -len, &op) || op != 0xff || !window_byte(w, -len + 1, &modrm) ||
		    ((modrm >> 3) & 7) != 2)
			continue;
		if (modrm >> 6 != 3 && (modrm & 7) == 4) {
			want++;
			window_byte(w, -len + 2, &sib);
		}
		if (modrm >> 6 == 1)
			want += 1;
		else if (modrm >> 6 == 2 || (modrm & 0xc7) == 5 ||
			 (modrm >> 6 == 0 && (modrm & 7) == 4 && (sib & 7) == 5))
			want += 4;
		if (want == len)
			return true;
	}
	return false;
}

bool guess_ends_with_call(enum unw_arch arch, const uint8_t bytes[CALL_BYTES])
{
	struct code_window w = {.before = CALL_BYTES, .len = CALL_BYTES};
	uint32_t insn = load_u32(bytes + CALL_BYTES - 4);

	if (arch == UNW_AARCH64) /* bl; blr and its authenticating forms */
		return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfefff000) == 0xd63f0000;
	memcpy(w.bytes, bytes, CALL_BYTES);
	return HAS(&w, -5, 0xe8) || ends_with_indirect_call(&w);
}

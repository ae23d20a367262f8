/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Whole walks with registers, stack, code and tables of the input's choice. Addresses are small,
 * so that changes of the input reach code and stack. What a walk says must make sense, and be the
 * same when its rules come from the cache.
 */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "cfi_builder.h"
#include "unwind/unwind.h"

enum {
	TEXT = 0x10000, /* where code begins, and how much there is at most */
	TEXT_LEN = 0x1000,
	JIT = 0x30000, /* code without an image */
	EH = 0x20000,
	HDR = 0x28000,
	STACK = 0x80000,
	REGISTER = 3,			 /* bytes of a register in the input */
	FIXED = 8 + REGISTER * UNW_REGS, /* bytes before the parts */
};

struct input {
	const uint8_t *text, *eh, *hdr, *debug, *stack;
	size_t text_len, eh_len, hdr_len, debug_len, stack_len;
};

static const uint8_t *part(const uint8_t **data, size_t *size, size_t want, size_t *len)
{
	const uint8_t *at = *data;

	*len = want < *size ? want : *size;
	*data += *len;
	*size -= *len;
	return at;
}

/* A register: what it counts from, and how far. */
static uint64_t value(const uint8_t *at)
{
	static const uint64_t bases[] = {0,
					 STACK,
					 TEXT,
					 JIT,
					 UINT64_MAX - 0x7fff,
					 UINT64_C(1) << 47,
					 UINT64_C(0x26) << 56 | TEXT,
					 INT64_MAX};
	uint16_t offset;

	memcpy(&offset, at + 1, 2);
	return bases[at[0] % (sizeof(bases) / sizeof(bases[0]))] + offset;
}

static const struct input *walked;

static bool read_code(void *data, struct unw_space *space, uint64_t address, void *buf, size_t len)
{
	uint64_t at = address - JIT;

	(void)data;
	(void)space;
	if (at >= walked->text_len || len > walked->text_len - at)
		return false;
	memcpy(buf, walked->text + at, len);
	return true;
}

/* One for all inputs: its cache takes long to clear, and each space is new to it. */
static struct unwinder *unwinder_of(enum unw_arch arch)
{
	static const struct unw_callbacks callbacks = {.read_code = read_code};
	static struct unwinder *unwinders[2];

	if (!unwinders[arch] && unwinder_new(arch, &callbacks, &unwinders[arch], NULL) < 0)
		abort();
	return unwinders[arch];
}

static void check(const struct unw_result *r, uint64_t pc)
{
	uint32_t fallbacks = 0;

	for (size_t i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++)
		fallbacks += r->fallbacks[i];
	if (r->count < 1 || r->count > UNW_MAX_FRAMES || r->guessed + fallbacks >= r->count + 1 ||
	    (r->has_error && r->end == UNW_COMPLETE) || r->addresses[0] != pc)
		abort();
	if (r->end == UNW_TRUNCATED && !r->has_error && r->count != UNW_MAX_FRAMES)
		abort();
}

static void walk_twice(struct unwinder *unwinder, struct unw_space *space,
		       const struct unw_regs *regs, const struct input *in, uint64_t pc)
{
	static uint64_t addresses[UNW_MAX_FRAMES];
	struct unw_result first, second;

	unw_walk(unwinder, space, regs, in->stack, in->stack_len, &first);
	check(&first, pc);
	memcpy(addresses, first.addresses, first.count * sizeof(addresses[0]));
	unw_walk(unwinder, space, regs, in->stack, in->stack_len, &second);
	if (first.count != second.count || first.end != second.end || first.error != second.error ||
	    first.guessed != second.guessed ||
	    memcmp(addresses, second.addresses, first.count * sizeof(addresses[0])) != 0)
		abort();
}

static void walk(enum unw_arch arch, const struct unw_regs *regs, struct input *in)
{
	const struct unw_sections sections = {
		.arch = arch,
		.eh_frame = in->eh,
		.eh_frame_len = in->eh_len,
		.eh_frame_addr = EH,
		.eh_frame_hdr = in->hdr,
		.eh_frame_hdr_len = in->hdr_len,
		.eh_frame_hdr_addr = HDR,
		.debug_frame = in->debug,
		.debug_frame_len = in->debug_len,
		.text = in->text,
		.text_len = in->text_len,
		.text_addr = TEXT,
	};
	struct unw_map map = {.start = TEXT, .end = TEXT + TEXT_LEN};
	struct unw_map jit = {.start = JIT, .end = JIT + TEXT_LEN, .module = 1};
	struct unw_space *space = NULL;

	if (unw_image_from_sections(&sections, &map.image, NULL) < 0 ||
	    unw_space_new(&space, NULL) < 0 || unw_space_map(space, &map, NULL) < 0 ||
	    unw_space_map(space, &jit, NULL) < 0)
		abort();
	walked = in;
	walk_twice(unwinder_of(arch), space, regs, in, regs->value[arch == UNW_X86_64 ? 16 : 32]);
	unw_space_free(space);
	unw_image_unref(map.image);
}

/* flags; lengths in units: text of 16, eh of 16, hdr of 4, debug of 16, stack of 8 (two bytes). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unw_regs regs = {.known = (UINT64_C(1) << UNW_REGS) - 1};
	const uint8_t *head = data;
	enum unw_arch arch;
	struct input in;

	if (size < FIXED)
		return 0;
	arch = head[0] & 1 ? UNW_AARCH64 : UNW_X86_64;
	for (unsigned int i = 0; i < UNW_REGS; i++)
		regs.value[i] = value(head + 8 + i * REGISTER);
	if (head[0] & 2)
		regs.known &= ~(UINT64_C(1) << (head[7] % 31));
	data += FIXED;
	size -= FIXED;
	in.text = part(&data, &size, head[1] * 16u, &in.text_len);
	in.eh = part(&data, &size, head[2] * 16u, &in.eh_len);
	in.hdr = part(&data, &size, head[3] * 4u, &in.hdr_len);
	in.debug = part(&data, &size, head[4] * 16u, &in.debug_len);
	in.stack = data;
	in.stack_len = size;
	walk(arch, &regs, &in);
	return 0;
}

/* ---- seeds ---- */

struct seed {
	uint8_t bytes[8192];
	size_t len;
};

static void add(struct seed *s, const void *bytes, size_t len, size_t unit, uint8_t *count)
{
	memcpy(s->bytes + s->len, bytes, len);
	s->len += (len + unit - 1) / unit * unit;
	*count = (uint8_t)((len + unit - 1) / unit);
}

static void set_register(struct seed *s, unsigned int reg, uint8_t base, uint16_t offset)
{
	s->bytes[8 + reg * REGISTER] = base;
	memcpy(s->bytes + 9 + reg * REGISTER, &offset, 2);
}

static void add_tables(struct seed *s, bool arm, bool debug)
{
	static const uint8_t x86[] = {0x0c, 7, 8, 0x90, 1}, arm_start[] = {0x0c, 31, 0};
	static const uint8_t framed[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
	static const uint8_t record[] = {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3};
	static const uint8_t slow[] = {0x0f, 3, 0x77, 8, 6, 0x16, 3, 2, 0x23, 16};
	struct cfi_builder_cie cie = {.ra = arm ? 30 : 16,
				      .code_align = arm ? 4 : 1,
				      .program = arm ? arm_start : x86,
				      .program_len = arm ? sizeof(arm_start) : sizeof(x86)};
	struct cfi_builder *b = calloc(1, sizeof(*b));
	uint8_t hdr[64];
	uint64_t at;

	if (!b)
		abort();
	b->addr = EH;
	b->debug = debug;
	at = cfi_build_cie(b, &cie);
	cfi_build_fde(b, at, TEXT, 0x40, NULL, 0);
	cfi_build_fde(b, at, TEXT + 0x40, 0x40, arm ? record : framed,
		      arm ? sizeof(record) : sizeof(framed));
	cfi_build_fde(b, at, TEXT + 0x80, 0x40, slow, sizeof(slow));
	if (debug) {
		add(s, b->bytes, b->len, 16, &s->bytes[4]);
	} else {
		add(s, b->bytes, b->len, 16, &s->bytes[2]);
		add(s, hdr, cfi_build_hdr(b, HDR, hdr), 4, &s->bytes[3]);
	}
	free(b);
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const uint64_t stack[] = {TEXT + 0x10, STACK + 0x40, TEXT + 0x50, 0,
					 JIT + 0x10,  STACK + 0x60, TEXT + 0xc8, TEXT + 0x90,
					 0,	      STACK + 0x80, TEXT + 0x10, TEXT + 0x10,
					 TEXT + 0x90, STACK + 0x90, 0,		 0};
	bool arm = i & 1;
	uint8_t text[256];
	struct seed s = {.len = FIXED};
	uint8_t *bytes, ignored;

	if (i > 3)
		return NULL;
	for (size_t n = 0; n < sizeof(text); n += 16) {
		memset(text + n, 0x90, 16);
		memcpy(text + n + 11, "\xe8\x10\x00\x00\x00", 5);
		if (arm)
			memcpy(text + n + 12, "\x04\x00\x00\x94", 4);
	}
	memcpy(text + 0xc0, "\x48\x83\xc4\x18\x5b\x5d\xc3", 7);
	s.bytes[0] = arm;
	set_register(&s, arm ? 31 : 7, 1, 0);
	set_register(&s, arm ? 32 : 16, 2, i < 2 ? 0 : 0xc0);
	set_register(&s, arm ? 29 : 6, 1, 0x28);
	set_register(&s, 30, 2, 0x50);
	add(&s, text, sizeof(text), 16, &s.bytes[1]);
	add_tables(&s, arm, i > 1);
	add(&s, stack, sizeof(stack), 8, &ignored);
	bytes = malloc(s.len);
	if (!bytes)
		abort();
	memcpy(bytes, s.bytes, s.len);
	*len = s.len;
	return bytes;
}

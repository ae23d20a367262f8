/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_UNWIND_WORLD_H
#define TESTS_LIB_UNWIND_WORLD_H

#include "cfi_builder.h"
#include "unwind/unwind.h"

/*
 * A made-up process for tests of the walk: one image with tables and code, a stack and registers.
 * Addresses are the image's own; RUN() turns them into those of the process.
 */
enum {
	WORLD_TEXT = 0x1000, /* first address of code */
	WORLD_TEXT_LEN = 0x8000,
	WORLD_EH = 0x20000,
	WORLD_HDR = 0x40000,
	WORLD_WORDS = 16384,
};

#define WORLD_BIAS UINT64_C(0x7f0000000000)
#define WORLD_SP UINT64_C(0x7ffc00001000)
#define RUN(address) (WORLD_BIAS + (address))
/* Address of the i-th stack word. */
#define AT(i) (WORLD_SP + 8 * (uint64_t)(i))
/* A program of CFI instructions, as two arguments. */
#define CFI(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define NO_CFI NULL, 0

struct unwind_world {
	enum unw_arch arch;
	struct cfi_builder eh, debug;
	uint64_t cie, debug_cie; /* of world_function() and world_debug_function() */
	uint8_t hdr[12 + 8 * CFI_BUILDER_FDES];
	size_t hdr_len; /* 0: made from eh; set no_hdr to have none */
	bool no_hdr;
	uint8_t text[WORLD_TEXT_LEN];
	uint64_t words[WORLD_WORDS];
	struct unw_regs regs;
	struct unw_result result;
	struct unw_callbacks callbacks;
	struct unwinder *unwinder;
	struct unw_space *space;
	struct unw_image *image;
};

/* All registers known and 0, sp at the first word; code is nops; nothing is mapped yet. */
struct unwind_world *world_new(enum unw_arch arch);
void world_free(struct unwind_world *w);
void world_function(struct unwind_world *w, uint64_t start, uint64_t size, const uint8_t *program,
		    size_t len);
void world_debug_function(struct unwind_world *w, uint64_t start, uint64_t size,
			  const uint8_t *program, size_t len);
void world_code(struct unwind_world *w, uint64_t address, const void *bytes, size_t len);
/* A call that ends at an address; returns the run address. */
uint64_t world_call(struct unwind_world *w, uint64_t address);
/* Makes the image from what was given and maps it; later changes of text are still seen. */
void world_map(struct unwind_world *w);
/* Walks from pc (an image's address) with `words` words of stack; maps the image at first. */
void world_walk(struct unwind_world *w, uint64_t pc, size_t words);
/* As above, from registers as they stand. */
void world_walk_registers(struct unwind_world *w, size_t bytes);
/* Fails the test unless the frames (addresses of the image) and the end are those. */
#define world_expect(w, end, ...) \
	world_expect_frames((w), (end), (const uint64_t[]){__VA_ARGS__}, \
			    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), __FILE__, \
			    __LINE__)
void world_expect_frames(const struct unwind_world *w, enum unw_end end, const uint64_t *frames,
			 size_t count, const char *file, int line);
/* The same for a cut stack and why it was. */
#define world_expect_error(w, why, ...) \
	do { \
		world_expect(w, UNW_TRUNCATED, __VA_ARGS__); \
		assert_true((w)->result.has_error); \
		assert_int_equal((w)->result.error, SPULSE_SAMPLE_ERROR_##why); \
	} while (0)
uint32_t world_fallbacks(const struct unwind_world *w);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_TEST_WORLD_X86_64_H
#define SPULSE_TEST_WORLD_X86_64_H

#include "unwind_world.h"

/* The world that the walks' tests on x86-64 have in common. */
enum { RBX = 3, RDI = 5, RBP = 6, RSP = 7, R8 = 8, R9 = 9, R12 = 12 };

/*
 * Functions of 256 bytes at multiples of 0x1000: "plain" has an 8-byte frame everywhere, "end" is
 * the outermost. Calls in them end at +0x10.
 */
enum { PLAIN = 0x1000, END = 0x2000, OTHER = 0x3000, SIZE = 0x100, BACK = 0x10 };

static inline struct unwind_world *world(void)
{
	struct unwind_world *w = world_new(UNW_X86_64);

	world_function(w, PLAIN, SIZE, NO_CFI);
	world_function(w, END, SIZE, CFI(0x07, 16));
	world_call(w, PLAIN + BACK);
	world_call(w, END + BACK);
	return w;
}

/* A world with one more function, whose callers are "plain" and "end" when it is right. */
static inline struct unwind_world *world_with(const uint8_t *program, size_t len)
{
	struct unwind_world *w = world();

	world_function(w, OTHER, SIZE, program, len);
	world_call(w, OTHER + BACK);
	return w;
}

static inline void put(struct unwind_world *w, size_t i, uint64_t address)
{
	w->words[i] = RUN(address);
}

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The text of an expression. The first byte chooses what registers hold and what is pushed. */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/expr.h"

static unsigned int reads;

static bool read_register(void *data, uint64_t reg, uint64_t *value)
{
	const uint8_t *seed = data;

	reads++;
	*value = reg * (*seed | UINT64_C(0x1000));
	return reg < 33;
}

static bool read_memory(void *data, uint64_t address, unsigned int size, uint64_t *value)
{
	(void)data;
	reads++;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		abort();
	*value = address / 3;
	return address % 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t first = 0x7000, result = 0;
	uint8_t seed;
	const struct expr_context context = {read_register, read_memory, &seed, 0x5000};

	if (!size)
		return 0;
	seed = data[0];
	reads = 0;
	expr_evaluate(data + 1, size - 1, &context, seed & 1 ? &first : NULL, &result);
	/* A step reads at most once. */
	if (reads > 256)
		abort();
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const struct {
		uint8_t text[20];
		size_t len;
	} seeds[] = {
		/* rsp + 8 + (((rip & 15) >= 11) << 3) */
		{{1, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 12},
		/* [rsp + 8 + r9 * 8] + 8 */
		{{0, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8}, 11},
		/* a count down */
		{{0, 0x44, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff}, 8},
		{{3, 0x09, 0xf1, 0x34, 0x1b, 0x0a, 0, 0x10, 0x94, 4, 0x92, 12, 0xc0, 0, 0x17, 0x19},
		 16},
		{{1, 0x0e, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x7e, 0x26, 0x20, 0x1f, 0x03, 9, 0, 0, 0},
		 20},
	};
	uint8_t *bytes;

	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return NULL;
	*len = seeds[i].len;
	bytes = malloc(*len);
	if (!bytes)
		abort();
	memcpy(bytes, seeds[i].text, *len);
	return bytes;
}

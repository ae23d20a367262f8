/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "decode.h"

static int skip_numbers(struct cursor *c, int count)
{
	uint64_t ignored;

	while (count--)
		TRY(get_uv(c, &ignored));
	return FIELD_OK;
}

static int skip_blob(struct cursor *c)
{
	const uint8_t *ignored;
	uint64_t len;

	TRY(get_uv(c, &len));
	return get_bytes(c, len, &ignored);
}

static int skip_module(struct cursor *c)
{
	uint8_t ignored;

	TRY(skip_numbers(c, 9));
	TRY(get_byte(c, &ignored));
	return skip_blob(c);
}

static int skip_jit_module(struct cursor *c)
{
	uint64_t count;

	TRY(skip_module(c));
	TRY(get_uv(c, &count));
	while (count--) {
		TRY(skip_numbers(c, 2));
		TRY(skip_blob(c));
	}
	return FIELD_OK;
}

int skip_record(struct cursor *c, uint64_t *id)
{
	uint8_t tag, ignored;

	TRY(get_byte(c, &tag));
	switch (tag) {
	case TAG_MODULE:
		return skip_module(c);
	case TAG_FRAME:
	case TAG_STACK_NODE:
	case TAG_THREAD:
	case TAG_SAMPLE:
		return skip_numbers(c, 3);
	case TAG_PYTHON_RUNTIME:
		TRY(skip_numbers(c, 2));
		return get_byte(c, &ignored);
	case TAG_RETIRE_PROCESS:
	case TAG_RETIRE_MODULE:
		return get_uv(c, id);
	case TAG_JIT_MODULE:
		return skip_jit_module(c);
	default:
		return cursor_bad(c, "unknown record tag %d", tag);
	}
}

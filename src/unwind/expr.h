/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_EXPR_H
#define SPULSE_UNWIND_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an expression may ask for; each returns false when it is not known. */
struct expr_context {
	bool (*read_register)(void *data, uint64_t reg, uint64_t *value);
	bool (*read_memory)(void *data, uint64_t address, unsigned int size, uint64_t *value);
	void *data;
	uint64_t bias; /* added to DW_OP_addr */
};

/*
 * Evaluates a DWARF expression, `initial` (may be NULL) pushed first. False when it is broken,
 * asks for something unknown, or takes more than 256 steps or 64 words.
 */
bool expr_evaluate(const uint8_t *text, size_t len, const struct expr_context *context,
		   const uint64_t *initial, uint64_t *result);

#endif

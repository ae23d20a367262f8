/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_PLT_H
#define SPULSE_SYMBOLIZE_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/base.h"
#include "../../image/image.h"

/* A symbol before aliases are chosen. */
struct raw_symbol {
	uint64_t start, size;
	const char *name;
	const char *file; /* or NULL */
	uint8_t rank; /* lower is better */
};

struct raw_symbols {
	struct raw_symbol *data;
	size_t len, cap;
};

/* Adds "name@plt" for each stub of the procedure linkage tables; false without memory. */
bool plt_collect(struct image *image, struct arena *names, struct raw_symbols *raw);

#endif

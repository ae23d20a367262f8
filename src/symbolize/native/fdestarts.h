/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_FDESTARTS_H
#define SPULSE_SYMBOLIZE_FDESTARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../image/image.h"

/*
 * Where functions start as the unwind tables know it: a label without a size does not reach into
 * a function that starts behind it, and code of a stripped file can be told apart by function.
 */
struct fde_start {
	int32_t start, entry; /* from the table: the code, and its entry in .eh_frame */
};

struct fde_starts {
	uint64_t base; /* address of the table */
	struct fde_start *data; /* by start */
	size_t len;
};

/* Empty when the image has no table of the usual form. */
void fde_starts_read(struct fde_starts *starts, struct image *image);
/* The first start above an address; UINT64_MAX without one. */
uint64_t fde_starts_after(const struct fde_starts *starts, uint64_t address);
/* The function that covers an address, by the length that its entry states; false: none does. */
bool fde_starts_find(const struct fde_starts *starts, struct image *image, uint64_t address,
		     uint64_t *start, uint64_t *end);
void fde_starts_release(struct fde_starts *starts);

#endif

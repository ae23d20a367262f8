/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_FDESTARTS_H
#define SPULSE_SYMBOLIZE_FDESTARTS_H

#include <stddef.h>
#include <stdint.h>

#include "../../image/image.h"

/*
 * Where functions start as the unwind tables know it: a label without a size does not reach into
 * a function that starts behind it.
 */
struct fde_starts {
	uint64_t *data; /* sorted */
	size_t len;
};

/* Empty when the image has no table of the usual form. */
void fde_starts_read(struct fde_starts *starts, struct image *image);
/* The first start above an address; UINT64_MAX without one. */
uint64_t fde_starts_after(const struct fde_starts *starts, uint64_t address);
void fde_starts_release(struct fde_starts *starts);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_IMAGE_MINIDEBUG_H
#define SPULSE_IMAGE_MINIDEBUG_H

#include "image.h"

/*
 * The small image inside an image, which names functions that .dynsym does not: section
 * .gnu_debugdata, compressed with xz. 1 found, 0 there is none, or an error.
 */
int minidebug_open(struct image *image, struct image **mini_out, struct spulse_error **err);

#endif

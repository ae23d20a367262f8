/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_IMAGE_DYNAMIC_H
#define SPULSE_IMAGE_DYNAMIC_H

struct image;
struct spulse_error;

/*
 * Finds the dynamic symbols of an image without section headers, once: the dynamic segment names
 * the tables, and a hash table says how many symbols there are. None is no failure.
 */
int dynamic_load(struct image *image, struct spulse_error **err);

#endif

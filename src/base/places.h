/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_PLACES_H
#define SPULSE_BASE_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The places of an array that is free at both ends: a change in it moves the shorter side. Its
 * owner has a pointer to the first element; the memory begins `before` elements earlier.
 */
struct places {
	size_t before, len, behind;
};

/* Free places for each end of a new array, two at least. */
static inline size_t places_spare(size_t len)
{
	return len / 8 + 2;
}

/* Whether the elements [first, end) can become `count` elements without more memory. */
bool places_fit(const struct places *places, size_t first, size_t end, size_t count);

/*
 * Makes them `count` elements, whose values the caller fills in. `data` is the first element, of
 * `size` bytes; the result is where it is now.
 */
void *places_splice(struct places *places, void *data, size_t size, size_t first, size_t end,
		    size_t count);

#endif

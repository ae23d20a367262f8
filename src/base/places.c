/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "places.h"

#include <string.h>

static bool front_is_shorter(const struct places *places, size_t first, size_t end)
{
	return first < places->len - end;
}

bool places_fit(const struct places *places, size_t first, size_t end, size_t count)
{
	size_t gone = end - first;

	if (count <= gone)
		return true;
	/* Not the longer side instead: with room left there only, each change would move it. */
	return count - gone <= (front_is_shorter(places, first, end) ? places->before :
								       places->behind);
}

void *places_splice(struct places *places, void *data, size_t size, size_t first, size_t end,
		    size_t count)
{
	size_t gone = end - first;
	char *old = data, *now = data;

	if (gone == count)
		return data;
	if (front_is_shorter(places, first, end)) {
		now = count > gone ? old - (count - gone) * size : old + (gone - count) * size;
		memmove(now, old, first * size);
		places->before = places->before + gone - count;
	} else {
		memmove(old + (first + count) * size, old + end * size,
			(places->len - end) * size);
		places->behind = places->behind + gone - count;
	}
	places->len = places->len - gone + count;
	return now;
}

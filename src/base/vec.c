/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include <stdint.h>

#include "util.h"

bool vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t size)
{
	size_t need, bytes, new_cap;
	void *p;

	if (add_overflows(len, more, &need))
		return false;
	new_cap = *cap ? *cap : 8;
	while (new_cap < need)
		if (mul_overflows(new_cap, (size_t)2, &new_cap))
			return false;
	if (mul_overflows(new_cap, size, &bytes))
		return false;
	p = realloc(*data, bytes);
	if (!p)
		return false;
	*data = p;
	*cap = new_cap;
	return true;
}

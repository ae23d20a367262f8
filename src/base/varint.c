/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "varint.h"

int varint_get(const uint8_t *p, size_t len, uint64_t *value)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len && i < VARINT_MAX; i++) {
		if (i == VARINT_MAX - 1 && p[i] > 1)
			return -1;
		v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*value = v;
			return i + 1;
		}
	}
	return 0;
}

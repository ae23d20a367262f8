/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "util.h"

#include <stdlib.h>

#include <stackpulse/common.h>

bool options_are_known(const void *options, size_t given_size, size_t known_size)
{
	const unsigned char *bytes = options;

	for (size_t i = known_size; i < given_size; i++)
		if (bytes[i])
			return false;
	return true;
}

void options_clear(void *options, size_t size)
{
	memset(options, 0, size);
	if (size >= sizeof(size))
		memcpy(options, &size, sizeof(size));
}

void spulse_array_free(void *array)
{
	free(array);
}

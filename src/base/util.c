/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "util.h"

#include <stdlib.h>

#include <stackpulse/common.h>

#include "errors.h"

int options_read(void *known, size_t known_size, const void *given, const char *what,
		 struct spulse_error **err)
{
	const unsigned char *bytes = given;
	size_t size;

	memcpy(&size, given, sizeof(size));
	if (size < sizeof(size))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "the size of the %s is not set",
			       what);
	for (size_t i = known_size; i < size; i++)
		if (bytes[i])
			return err_set(err, SPULSE_ERROR_UNSUPPORTED,
				       "%s that this version of the library does not know are set",
				       what);
	memset(known, 0, known_size);
	memcpy(known, given, MIN(size, known_size));
	memcpy(known, &known_size, sizeof(known_size));
	return 0;
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

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "codemap/codemap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t addresses[] = {0, 0x1000, 0x1045, 0x2000, 0x3001, UINT64_MAX};
	struct perfmap *map;

	if (perfmap_parse((const char *)data, size, &map, NULL) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct perfmap_entry entry;

		if (!perfmap_find(map, addresses[i], &entry))
			continue;
		/* What it promises. */
		if (entry.start > addresses[i] || entry.end <= addresses[i] ||
		    entry.name.len == 0 || memchr(entry.name.bytes, '\n', entry.name.len) ||
		    (entry.python && (entry.function.len == 0 || entry.file.len == 0)))
			abort();
	}
	perfmap_free(map);
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const char *const seeds[] = {
		"1000 100 outer\n1040 10 inner\nbad line\n3000 10 far\r\n2000 20 first\n"
		"2000 10 py::f:/a.py:3\n5000 10 last without end\r",
		"0x1000 0x20 py::a b:c\n+2000 +10 n\n\t1040\t1\tx\n\n",
	};
	char *copy;

	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return NULL;
	*len = strlen(seeds[i]);
	copy = strdup(seeds[i]);
	if (!copy)
		abort();
	return (uint8_t *)copy;
}

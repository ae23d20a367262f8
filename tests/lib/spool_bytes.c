/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spool_bytes.h"

#include <stdbool.h>
#include <string.h>

#include "base/varint.h"

void bytes_number(struct strbuf *out, uint64_t number)
{
	uint8_t bytes[VARINT_MAX];

	strbuf_add(out, (const char *)bytes, varint_put(bytes, number) - bytes);
}

void bytes_numbers_from(struct strbuf *out, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes_number(out, numbers[i]);
}

void bytes_text(struct strbuf *out, const char *text, size_t len)
{
	bytes_number(out, len);
	strbuf_add(out, text, len);
}

void bytes_header(struct strbuf *out, int version)
{
	strbuf_printf(out, "SPULSE%d", version);
	strbuf_putc(out, '\0');
	bytes_numbers(out, 2, 0, 0);
	if (version >= 4)
		bytes_number(out, 0);
}

void bytes_module(struct strbuf *out, uint64_t id, uint64_t pid, uint64_t start, uint64_t end,
		  const char *path)
{
	bool kernel = pid == 0;

	/* A kernel module's process id is -1, zigzag 1. */
	bytes_numbers(out, 10, 1, id, kernel ? 1 : pid * 2, start, end, 0, 0, 0, 0, 0);
	bytes_number(out, kernel);
	bytes_text(out, path, strlen(path));
}

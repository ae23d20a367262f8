/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Line programs, and the index of a package of split DWARF, from any bytes. */
#include "../driver.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/native/lines.h"
#include "symbolize/native/split.h"

static void read_lines(struct dwarf_info *info)
{
	struct row_buffer buffer = { 0 };
	struct line_table table;

	line_table_read(&table, info, 0, "/folder", &buffer);
	if (table.failed)
		abort();
	for (size_t i = 0; i + 1 < table.row_count; i++)
		if (table.rows[i].address > table.rows[i + 1].address)
			abort();
	for (size_t i = 0; i < table.row_count && i < 64; i++)
		line_table_path(&table, table.rows[i].file);
	line_table_release(&table);
	vec_free(&buffer.program);
	vec_free(&buffer.rows);
	vec_free(&buffer.sequences);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct memelf_part parts[] = {
		{ .name = ".debug_line", .bytes = data, .len = size },
		{ .name = ".debug_line_str", .bytes = data, .len = size },
	};
	struct dwarf_info info = { .base = 0x1000, .code_end = 0x100000 };
	struct split_slice slices[SPLIT_PARTS];

	pthread_mutex_init(&info.texts_lock, NULL);
	if (size && memelf_build(&info.elf, EM_X86_64, parts, 2, NULL) == 0)
		read_lines(&info);
	interner_release(&info.texts);
	memelf_release(&info.elf);
	pthread_mutex_destroy(&info.texts_lock);
	dwp_find(data, size, 0x0123456789abcdef, slices);
	return 0;
}

/* A version 3 program of two files, and an index with one unit. */
uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const uint8_t lines[] = {
		60, 0, 0, 0, 3, 0, 33, 0, 0, 0, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0,
		0, 1, 'd', 0, 0, 'a', '.', 'c', 0, 1, 0, 0, 'b', '.', 'c', 0, 0, 0, 0, 0,
		0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 20, 75, 4, 2, 33, 2, 16, 0, 1, 1,
	};
	static const uint32_t index[] = {
		5, 3, 1, 2, 0x89abcdef, 0x01234567, 0, 0, 1, 0, 1, 3, 6, 0, 0, 0, 10, 20, 30,
	};
	uint8_t *bytes;

	if (i > 1)
		return NULL;
	*len = i ? sizeof(index) : sizeof(lines);
	bytes = malloc(*len);
	if (!bytes)
		abort();
	memcpy(bytes, i ? (const void *)index : (const void *)lines, *len);
	return bytes;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Line rows of a unit. The reader gives them sorted by address, the end of a sequence before a
 * row at the same address. Of rows at one address the last counts, and a row that says the same
 * as the one before is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "dwarf.h"

struct row_builder {
	struct dwarf_info *info;
	const char *folder;
	VEC(struct dwarf_row) rows;
	VEC(uint32_t) file_ids; /* by number in the line table, plus one; 0: not asked yet */
};

enum { FILES_MAX = 1 << 20 };

static uint32_t row_file(struct row_builder *b, Dwarf_Line *line)
{
	Dwarf_Files *files;
	const char *path;
	size_t number;

	if (dwarf_line_file(line, &files, &number) != 0 || number >= FILES_MAX)
		return UINT32_MAX;
	if (number >= b->file_ids.len) {
		if (!vec_reserve(&b->file_ids, number + 1 - b->file_ids.len))
			return UINT32_MAX;
		memset(b->file_ids.data + b->file_ids.len, 0,
		       (number + 1 - b->file_ids.len) * sizeof(*b->file_ids.data));
		b->file_ids.len = number + 1;
	}
	if (!b->file_ids.data[number]) {
		path = dwarf_filesrc(files, number, NULL, NULL);
		b->file_ids.data[number] =
			(path ? dwarf_intern_file(b->info, b->folder, path) : UINT32_MAX) + 1;
	}
	return b->file_ids.data[number] - 1;
}

static void read_row(struct row_builder *b, Dwarf_Line *line, Dwarf_Addr address,
		     struct dwarf_row *row)
{
	int number = 0, column = 0;
	bool end = false;

	*row = (struct dwarf_row){ .address = address - b->info->base };
	dwarf_lineendsequence(line, &end);
	row->end = end;
	if (end)
		return;
	dwarf_lineno(line, &number);
	dwarf_linecol(line, &column);
	row->line = MAX(number, 0);
	row->column = MIN(MAX(column, 0), UINT16_MAX);
	row->file = row_file(b, line);
}

static bool says_the_same(const struct dwarf_row *a, const struct dwarf_row *b)
{
	return a->end == b->end && a->line == b->line && a->file == b->file &&
	       a->column == b->column;
}

static bool add_row(struct row_builder *b, const struct dwarf_row *row)
{
	if (b->rows.len && vec_last(&b->rows).address == row->address && !row->end)
		b->rows.len--;
	if (b->rows.len && says_the_same(&vec_last(&b->rows), row))
		return true;
	return vec_push(&b->rows, *row);
}

bool dwarf_fill_rows(struct dwarf_info *info, struct dwarf_unit *unit, Dwarf_Die *unit_die,
		     const char *folder)
{
	struct row_builder b = { .info = info, .folder = folder };
	Dwarf_Lines *lines;
	size_t count;
	bool filled = true;
	void *smaller;

	if (dwarf_getsrclines(unit_die, &lines, &count) != 0)
		return true;
	filled = vec_reserve(&b.rows, count / 2 + 1);
	for (size_t i = 0; i < count && filled; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		struct dwarf_row row;
		Dwarf_Addr address;

		if (!line || dwarf_lineaddr(line, &address) != 0 || address < info->base ||
		    address > info->code_end)
			continue;
		read_row(&b, line, address, &row);
		filled = add_row(&b, &row);
	}
	vec_free(&b.file_ids);
	if (!filled) {
		vec_free(&b.rows);
		return false;
	}
	smaller = realloc(b.rows.data, MAX(b.rows.len, 1) * sizeof(*unit->rows));
	unit->rows = smaller ? smaller : b.rows.data;
	unit->row_count = b.rows.len;
	return true;
}

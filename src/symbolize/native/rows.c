/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Line rows of a unit, in the order of addresses. */
#include <stdlib.h>

#include "lines.h"

struct sequence {
	uint32_t address, first, count;
};

static int compare_sequences(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

static bool says_the_same(const struct dwarf_row *a, const struct dwarf_row *b)
{
	return a->end == b->end && a->line == b->line && a->file == b->file &&
	       a->column == b->column;
}

/*
 * Of rows at one address the last counts, and a row that says the same as the one before is left
 * out. A row that goes back is broken, or of code that was laid over other code: left out too.
 */
static void add_row(struct dwarf_row *rows, size_t *n, const struct dwarf_row *row)
{
	if (*n && rows[*n - 1].address > row->address)
		return;
	if (*n && rows[*n - 1].address == row->address)
		(*n)--;
	if (*n && says_the_same(&rows[*n - 1], row))
		return;
	rows[(*n)++] = *row;
}

static struct sequence *list_sequences(const struct line_table *table)
{
	size_t count = table->sequences.len;
	struct sequence *list = malloc((count + 1) * sizeof(*list));

	for (size_t i = 0; i < count && list; i++) {
		uint32_t first = table->sequences.data[i];
		uint32_t end = i + 1 < count ? table->sequences.data[i + 1] : table->rows.len;

		list[i] = (struct sequence){ .first = first, .count = end - first };
		if (first < end)
			list[i].address = table->rows.data[first].address;
	}
	return list;
}

bool line_table_sort(struct line_table *table)
{
	struct sequence *list = list_sequences(table);
	struct dwarf_row *rows = malloc((table->rows.len + 1) * sizeof(*rows));
	size_t n = 0;

	if (!list || !rows || table->rows.len > UINT32_MAX) {
		free(list);
		free(rows);
		return false;
	}
	qsort(list, table->sequences.len, sizeof(*list), compare_sequences);
	for (size_t i = 0; i < table->sequences.len; i++)
		for (uint32_t k = 0; k < list[i].count; k++)
			add_row(rows, &n, &table->rows.data[list[i].first + k]);
	free(list);
	free(table->rows.data);
	table->rows.data = rows;
	table->rows.len = n;
	return true;
}

bool dwarf_fill_rows(struct dwarf_unit *unit)
{
	struct line_table *table = &unit->lines;
	void *smaller;

	if (!line_table_sort(table))
		return false;
	for (size_t i = 0; i < table->rows.len; i++) {
		struct dwarf_row *row = &table->rows.data[i];

		if (!row->end)
			row->file = line_table_file(table, row->file);
	}
	smaller = realloc(table->rows.data, MAX(table->rows.len, 1) * sizeof(*unit->rows));
	unit->rows = smaller ? smaller : table->rows.data;
	unit->row_count = table->rows.len;
	table->rows.data = NULL;
	table->rows.len = table->rows.cap = 0;
	vec_free(&table->sequences);
	return true;
}

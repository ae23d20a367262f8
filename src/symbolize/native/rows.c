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
	return a->line == b->line && a->file == b->file && a->column == b->column;
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

static struct sequence *list_sequences(const struct row_buffer *buffer)
{
	size_t count = buffer->sequences.len;
	struct sequence *list = malloc((count + 1) * sizeof(*list));

	for (size_t i = 0; i < count && list; i++) {
		uint32_t first = buffer->sequences.data[i];
		uint32_t end = i + 1 < count ? buffer->sequences.data[i + 1] : buffer->rows.len;

		list[i] = (struct sequence){ .first = first, .count = end - first };
		if (first < end)
			list[i].address = buffer->rows.data[first].address;
	}
	return list;
}

static bool is_sorted(const struct sequence *list, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (compare_sequences(&list[i - 1], &list[i]) > 0)
			return false;
	return true;
}

void line_table_sort(struct line_table *table, const struct row_buffer *buffer)
{
	struct sequence *list = list_sequences(buffer);
	struct dwarf_row *rows = malloc((buffer->rows.len + 1) * sizeof(*rows)), *smaller;
	size_t n = 0, count = buffer->sequences.len;

	if (!list || !rows || buffer->rows.len > UINT32_MAX) {
		free(list);
		free(rows);
		table->failed = true;
		return;
	}
	if (!is_sorted(list, count))
		qsort(list, count, sizeof(*list), compare_sequences);
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < list[i].count; k++)
			add_row(rows, &n, &buffer->rows.data[list[i].first + k]);
	free(list);
	smaller = realloc(rows, (n + 1) * sizeof(*rows));
	table->rows = smaller ? smaller : rows;
	table->row_count = n;
}

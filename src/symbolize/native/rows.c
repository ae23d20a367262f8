/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Line rows of a unit, in the order of addresses. */
#include <stdlib.h>
#include <string.h>

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

/* A row that goes back is of code that was laid over other code: left out. */
static void add_row(struct dwarf_row *rows, size_t *n, const struct dwarf_row *row)
{
	if (*n && rows[*n - 1].address > row->address)
		return;
	if (*n && rows[*n - 1].address == row->address)
		(*n)--;
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

/* A sequence's rows, whose first takes the place of what ended another one there. */
static void add_rows(struct dwarf_row *rows, size_t *n, const struct dwarf_row *first,
		     uint32_t count)
{
	if (!count)
		return;
	if (*n && rows[*n - 1].address == first->address)
		(*n)--;
	memcpy(rows + *n, first, count * sizeof(*rows));
	*n += count;
}

static bool merge(struct dwarf_row *rows, size_t *n, const struct row_buffer *buffer)
{
	struct sequence *list = list_sequences(buffer);

	if (!list)
		return false;
	if (buffer->unsorted)
		qsort(list, buffer->sequences.len, sizeof(*list), compare_sequences);
	for (size_t i = 0; i < buffer->sequences.len; i++) {
		const struct dwarf_row *first = &buffer->rows.data[list[i].first];

		if (!*n || rows[*n - 1].address <= list[i].address)
			add_rows(rows, n, first, list[i].count);
		else
			for (uint32_t k = 0; k < list[i].count; k++)
				add_row(rows, n, &first[k]);
	}
	free(list);
	return true;
}

void line_table_sort(struct line_table *table, const struct row_buffer *buffer)
{
	size_t n = 0, size = (buffer->rows.len + 1) * sizeof(struct dwarf_row);
	struct dwarf_row *rows =
		buffer->tables ? arena_alloc(buffer->tables, size) : malloc(size);

	table->failed = !rows || buffer->rows.len > UINT32_MAX || !merge(rows, &n, buffer);
	table->rows = rows;
	table->owns_rows = !buffer->tables;
	table->row_count = table->failed ? 0 : n;
}

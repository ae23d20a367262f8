/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * .debug_cu_index of a package: a hash table from unit ids to rows, and for each row the place of
 * the unit's part in each section. Versions 2 (with DWARF 4) and 5 differ in their section numbers.
 */
#include <string.h>

#include "split.h"

enum { HEADER_LEN = 16, SECTIONS_MAX = 16 };

struct index_layout {
	uint32_t version, columns, rows, slots;
	const uint8_t *hashes, *row_numbers, *sections, *offsets, *sizes;
};

static bool read_layout(struct index_layout *layout, const uint8_t *index, size_t len)
{
	uint64_t need = HEADER_LEN, table;

	if (len < HEADER_LEN)
		return false;
	/* The later version has 16 bits and as many of padding: the same number here. */
	layout->version = load_u32(index);
	layout->columns = load_u32(index + 4);
	layout->rows = load_u32(index + 8);
	layout->slots = load_u32(index + 12);
	if ((layout->version != 2 && layout->version != 5) || layout->columns > SECTIONS_MAX)
		return false;
	table = (uint64_t)layout->columns * layout->rows * 4;
	need += (uint64_t)layout->slots * 12 + layout->columns * 4 + 2 * table;
	if (need > len)
		return false;
	layout->hashes = index + HEADER_LEN;
	layout->row_numbers = layout->hashes + (size_t)layout->slots * 8;
	layout->sections = layout->row_numbers + (size_t)layout->slots * 4;
	layout->offsets = layout->sections + (size_t)layout->columns * 4;
	layout->sizes = layout->offsets + table;
	return true;
}

static int part_of(uint32_t version, uint32_t section)
{
	switch (section) {
	case 1:
		return SPLIT_INFO;
	case 3:
		return SPLIT_ABBREV;
	case 6:
		return SPLIT_STR_OFFSETS;
	case 8:
		return version == 5 ? SPLIT_RNGLISTS : -1;
	default:
		return -1;
	}
}

bool dwp_find(const uint8_t *index, size_t len, uint64_t id, struct split_slice slices[SPLIT_PARTS])
{
	struct index_layout layout;
	uint32_t row = 0;

	if (!read_layout(&layout, index, len))
		return false;
	for (uint32_t i = 0; i < layout.slots && !row; i++)
		if (load_u64(layout.hashes + (size_t)i * 8) == id)
			row = load_u32(layout.row_numbers + (size_t)i * 4);
	if (!row || row > layout.rows)
		return false;
	memset(slices, 0, SPLIT_PARTS * sizeof(*slices));
	for (uint32_t i = 0; i < layout.columns; i++) {
		int part = part_of(layout.version, load_u32(layout.sections + (size_t)i * 4));
		size_t cell = ((size_t)(row - 1) * layout.columns + i) * 4;

		if (part >= 0)
			slices[part] = (struct split_slice){ load_u32(layout.offsets + cell),
							     load_u32(layout.sizes + cell) };
	}
	return slices[SPLIT_INFO].size;
}

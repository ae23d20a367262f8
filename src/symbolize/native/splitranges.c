/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Range lists of split units. Their base address stands in the skeleton, which the reader of the
 * split file does not know.
 */
#include <dwarf.h>

#include "split.h"

enum { LISTS_HEADER = 12 };

static bool read_uleb(struct split_ranges *r, uint64_t *value)
{
	unsigned int shift = 0;

	*value = 0;
	while (r->at < r->end && shift < 64) {
		uint8_t byte = *r->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool read_address(struct split_ranges *r, uint64_t *value)
{
	if (r->end - r->at < 8)
		return false;
	*value = load_u64(r->at);
	r->at += 8;
	return true;
}

static bool read_indexed(struct split_ranges *r, uint64_t *value)
{
	uint64_t index;

	if (!read_uleb(r, &index) || index >= r->address_count)
		return false;
	*value = load_u64(r->addresses + index * 8);
	return true;
}

/* Where the list of an index starts; SIZE_MAX when there is none. */
static size_t list_offset(const uint8_t *lists, size_t len, uint64_t index)
{
	uint64_t offset;

	if (len < LISTS_HEADER || index >= load_u32(lists + 8) ||
	    (len - LISTS_HEADER) / 4 <= index)
		return SIZE_MAX;
	offset = LISTS_HEADER + (uint64_t)load_u32(lists + LISTS_HEADER + index * 4);
	return offset < len ? offset : SIZE_MAX;
}

bool split_ranges_start(struct split_ranges *r, const struct split *split, Dwarf_Die *die)
{
	bool old = split->version < 5;
	Dwarf_Attribute attribute;
	const uint8_t *lists;
	size_t len, offset;
	Dwarf_Word value;

	if (!dwarf_attr(die, DW_AT_ranges, &attribute))
		return false;
	*r = (struct split_ranges){ .split = split, .base = split->base };
	r->addresses = memelf_find(&split->elf, ".debug_addr", &r->address_count);
	r->address_count = r->addresses ? r->address_count / 8 : 0;
	lists = memelf_find(&split->elf, old ? ".debug_ranges" : ".debug_rnglists", &len);
	if (!lists)
		return true;
	if (dwarf_whatform(&attribute) == DW_FORM_rnglistx) {
		/* The reader gives the place of the list, or fails: the index is read here. */
		r->at = attribute.valp;
		r->end = r->at + 10;
		if (!read_uleb(r, &value))
			value = UINT64_MAX;
		offset = list_offset(lists, len, value);
	} else {
		offset = dwarf_formudata(&attribute, &value) ? SIZE_MAX : value;
	}
	r->at = offset < len ? lists + offset : NULL;
	r->end = r->at ? lists + len : NULL;
	return true;
}

static bool next_old(struct split_ranges *r, uint64_t *start, uint64_t *end)
{
	while (read_address(r, start) && read_address(r, end)) {
		if (*start == UINT64_MAX) {
			r->base = *end;
			continue;
		}
		if (!*start && !*end)
			return false;
		*start += r->base;
		*end += r->base;
		return true;
	}
	return false;
}

/* One entry: 1 a range, 0 none yet, -1 the end. */
static int next_entry(struct split_ranges *r, uint64_t *start, uint64_t *end)
{
	switch (r->at < r->end ? *r->at++ : DW_RLE_end_of_list) {
	case DW_RLE_base_addressx:
		return read_indexed(r, &r->base) ? 0 : -1;
	case DW_RLE_base_address:
		return read_address(r, &r->base) ? 0 : -1;
	case DW_RLE_startx_endx:
		return read_indexed(r, start) && read_indexed(r, end) ? 1 : -1;
	case DW_RLE_start_end:
		return read_address(r, start) && read_address(r, end) ? 1 : -1;
	case DW_RLE_startx_length:
		if (!read_indexed(r, start) || !read_uleb(r, end))
			return -1;
		break;
	case DW_RLE_start_length:
		if (!read_address(r, start) || !read_uleb(r, end))
			return -1;
		break;
	case DW_RLE_offset_pair:
		if (!read_uleb(r, start) || !read_uleb(r, end))
			return -1;
		*start += r->base;
		*end += r->base;
		return 1;
	default:
		return -1;
	}
	*end += *start;
	return 1;
}

bool split_ranges_next(struct split_ranges *r, uint64_t *start, uint64_t *end)
{
	int found = 0;

	if (!r->at)
		return false;
	if (r->split->version < 5)
		return next_old(r, start, end);
	while (!found)
		found = next_entry(r, start, end);
	return found > 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Units: where they are, and what their header and first entry say. */
#include <dwarf.h>
#include <stdlib.h>

#include "die.h"

enum { HEADER_MAX = 32, FIRST_MAX = 512, UNITS_KEPT = 256, ABBREVS_AHEAD = 8192 };

/* ---- files ---- */

static struct die_bytes section_of(const struct memelf *elf, const char *name)
{
	struct die_bytes bytes = { 0 };

	bytes.data = memelf_find(elf, name, &bytes.len);
	bytes.elf = elf;
	bytes.lazy = memelf_lazy_section(elf, name);
	return bytes.data ? bytes : (struct die_bytes){ 0 };
}

/* Length of a unit's header after the length field; 0: a unit without code of its own. */
static size_t rest_of_header(const uint8_t *bytes, size_t offset_size)
{
	unsigned int version = load_u16(bytes);

	if (version < 5)
		return 3 + offset_size;
	switch (bytes[2]) {
	case DW_UT_compile:
	case DW_UT_partial:
		return 4 + offset_size;
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		return 12 + offset_size;
	default:
		return 0;
	}
}

/* Bytes of the length field, and what it says; 0 when there is no unit there. */
static size_t read_length(const uint8_t *header, uint64_t left, uint64_t *length)
{
	size_t field = 4;

	*length = load_u32(header);
	if (*length == UINT32_MAX) {
		*length = load_u64(header + 4);
		field = 12;
	}
	if (*length > left - field || *length < HEADER_MAX / 4)
		return 0;
	return field;
}

/* Headers are copied: a page kept of each unit would be much of what one lookup needs. */
static bool list_units(struct die_file *file)
{
	VEC(struct die_place) places = { 0 };
	uint64_t at = 0;
	bool done = true;

	while (file->info.len - at >= HEADER_MAX / 2 && done) {
		uint64_t left = file->info.len - at, length;
		uint8_t bytes[HEADER_MAX] = { 0 };
		size_t field, header;

		done = memelf_peek(file->elf, ".debug_info", at, bytes,
				   MIN(left, sizeof(bytes)));
		field = done ? read_length(bytes, left, &length) : 0;
		if (!field)
			break;
		header = rest_of_header(bytes + field, field == 12 ? 8 : 4);
		done = vec_push(&places, (struct die_place){
				at, at + field + length, header ? at + field + header : 0 });
		at += field + length;
	}
	file->units = places.data;
	file->unit_count = places.len;
	return done;
}

bool die_file_open(struct die_file *file, const struct memelf *elf, bool split,
		   uint64_t split_base)
{
	*file = (struct die_file){
		.elf = elf,
		.info = section_of(elf, ".debug_info"),
		.abbrev = section_of(elf, ".debug_abbrev"),
		.str = section_of(elf, ".debug_str"),
		.line_str = section_of(elf, ".debug_line_str"),
		.str_offsets = section_of(elf, ".debug_str_offsets"),
		.addr = section_of(elf, ".debug_addr"),
		.ranges = section_of(elf, ".debug_ranges"),
		.rnglists = section_of(elf, ".debug_rnglists"),
		.split = split,
		.split_base = split_base,
	};
	return list_units(file);
}

void die_file_close(struct die_file *file)
{
	free(file->units);
	*file = (struct die_file){ 0 };
}

size_t die_file_find(const struct die_file *file, uint64_t offset)
{
	size_t low = 0, high = file->unit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->units[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && offset < file->units[low - 1].end ? low - 1 : SIZE_MAX;
}

/* ---- readers ---- */

void die_reader_open(struct die_reader *reader, const struct die_file *file,
		     const struct die_file *alt)
{
	*reader = (struct die_reader){ .file = file, .alt = alt };
}

void die_reader_close(struct die_reader *reader)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&reader->units, &i)))
		free((void *)(uintptr_t)slot->value);
	u64map_release(&reader->units);
	for (i = 0; (slot = u64map_next(&reader->abbrevs, &i));) {
		struct abbrevs *abbrevs = (void *)(uintptr_t)slot->value;

		if (abbrevs)
			abbrevs_release(abbrevs);
		free(abbrevs);
	}
	u64map_release(&reader->abbrevs);
}

void die_reader_trim(struct die_reader *reader)
{
	if (reader->units.count > UNITS_KEPT)
		die_reader_close(reader);
}

/* Reads a table at an offset, and of the section no more than about what it takes. */
static bool read_abbrevs(struct abbrevs *abbrevs, const struct die_unit *unit, uint64_t offset,
			 uint64_t max, uint64_t last)
{
	const struct die_bytes *section = &unit->file->abbrev;
	uint64_t len = section->lazy ? MIN(max, (uint64_t)ABBREVS_AHEAD) : max;

	for (;; len = MIN(max, len * 4)) {
		if (!memelf_touch_section(section->elf, section->lazy, offset, len) ||
		    !abbrevs_read(abbrevs, section->data + offset, len, &unit->sizes, last))
			return false;
		if (len == max || abbrevs->bytes < len)
			return true;
		abbrevs_release(abbrevs);
	}
}

/* Many units may share one table. */
static const struct abbrevs *find_abbrevs(struct die_reader *reader, bool alt,
					  const struct die_unit *unit, uint64_t offset)
{
	const struct die_bytes *section = &unit->file->abbrev;
	uint64_t key = offset << 4 | alt << 2 | (unit->sizes.offset == 8) << 1 |
		       (unit->version < 3);
	struct abbrevs *abbrevs;
	uint64_t *slot;

	if (offset >= section->len || offset > UINT64_MAX >> 4)
		return NULL;
	slot = u64map_add(&reader->abbrevs, key, NULL);
	if (!slot)
		return NULL;
	if (*slot)
		return (void *)(uintptr_t)*slot;
	abbrevs = malloc(sizeof(*abbrevs));
	if (abbrevs && !read_abbrevs(abbrevs, unit, offset, section->len - offset, UINT64_MAX)) {
		free(abbrevs);
		abbrevs = NULL;
	}
	*slot = (uintptr_t)abbrevs;
	return abbrevs;
}

/* The header; gives the place of the abbreviations. */
static bool read_header(struct die_unit *unit, uint64_t *abbrevs)
{
	const uint8_t *info = unit->file->info.data;
	struct cursor c = { info + unit->place.start, info + unit->place.end, false };

	unit->sizes.offset = take_fixed(&c, 4) == UINT32_MAX ? 8 : 4;
	if (unit->sizes.offset == 8)
		take_fixed(&c, 8);
	unit->version = take_fixed(&c, 2);
	if (unit->version < 2 || unit->version > 5)
		return false;
	if (unit->version >= 5) {
		take_fixed(&c, 1);
		unit->sizes.address = take_fixed(&c, 1);
	}
	*abbrevs = take_fixed(&c, unit->sizes.offset);
	if (unit->version < 5)
		unit->sizes.address = take_fixed(&c, 1);
	unit->sizes.reference = unit->version < 3 ? unit->sizes.address : unit->sizes.offset;
	return !c.broken && unit->sizes.address == 8;
}

/* What stands in for a base that a unit does not state: the end of the table's header. */
static void set_bases(struct die_unit *unit)
{
	bool wide = unit->sizes.offset == 8, old = unit->version < 5;

	unit->str_offsets = old ? 0 : wide ? 16 : 8;
	unit->rnglists = old ? 0 : wide ? 20 : 12;
	unit->addr = old || unit->file->split ? 0 : wide ? 16 : 8;
}

/* An offset or a small number: all that is asked of the first entry besides strings. */
static uint64_t plain_number(const struct die_unit *unit, const struct abbrev_attribute *attribute,
			     struct cursor *c)
{
	int size = form_size(attribute->form, &unit->sizes);

	if (attribute->form == DW_FORM_implicit_const)
		return (int64_t)attribute->constant;
	if (attribute->form == DW_FORM_udata)
		return take_uleb(c);
	if (size > 0 && size <= 8)
		return take_fixed(c, size);
	form_skip(c, attribute->form, &unit->sizes);
	return 0;
}

/* Numbers of the first entry. Strings may need the bases among them: die_read() comes later. */
static void read_numbers(struct die_unit *unit, const struct abbrev *abbrev, struct cursor c)
{
	const struct abbrev_attribute *at = unit->abbrevs->attributes.data + abbrev->first;

	for (unsigned int i = 0; i < abbrev->count; i++) {
		switch (at[i].name) {
		case DW_AT_str_offsets_base:
			unit->str_offsets = plain_number(unit, &at[i], &c);
			break;
		case DW_AT_addr_base:
		case DW_AT_GNU_addr_base:
			unit->addr = plain_number(unit, &at[i], &c);
			break;
		case DW_AT_rnglists_base:
			unit->rnglists = plain_number(unit, &at[i], &c);
			break;
		case DW_AT_stmt_list:
			unit->lines = plain_number(unit, &at[i], &c);
			break;
		case DW_AT_language:
			unit->language = plain_number(unit, &at[i], &c);
			break;
		case DW_AT_dwo_name:
		case DW_AT_GNU_dwo_name:
			unit->skeleton = true;
			form_skip(&c, at[i].form, &unit->sizes);
			break;
		default:
			form_skip(&c, at[i].form, &unit->sizes);
		}
	}
}

/* The first entry, once the header and the shapes are known. */
static bool read_first(struct die_unit *unit, const struct die_reader *reader, struct die *die)
{
	const struct abbrev *abbrev;
	struct cursor c;

	set_bases(unit);
	c = die_cursor(unit, unit->place.die);
	abbrev = die_next(unit, &c);
	if (!abbrev)
		return false;
	read_numbers(unit, abbrev, c);
	die_read(unit, reader, abbrev, &c, die);
	unit->base = unit->file->split ? unit->file->split_base : die->low;
	unit->folder = die->folder;
	return true;
}

static bool read_unit(struct die_reader *reader, bool alt, struct die_unit *unit)
{
	uint64_t abbrevs;
	struct die die;

	if (!read_header(unit, &abbrevs))
		return false;
	unit->abbrevs = find_abbrevs(reader, alt, unit, abbrevs);
	return unit->abbrevs && read_first(unit, reader, &die);
}

const struct die_unit *die_reader_unit(struct die_reader *reader, bool alt, size_t index)
{
	const struct die_file *file = alt ? reader->alt : reader->file;
	struct die_unit *unit;
	uint64_t *slot;

	if (!file || index >= file->unit_count || !file->units[index].die)
		return NULL;
	slot = u64map_add(&reader->units, (uint64_t)index << 1 | alt, NULL);
	if (!slot || *slot)
		return slot ? (void *)(uintptr_t)*slot : NULL;
	if (!memelf_touch(file->elf, ".debug_info", file->units[index].start,
			  file->units[index].end - file->units[index].start))
		return NULL;
	unit = malloc(sizeof(*unit));
	if (!unit)
		return NULL;
	*unit = (struct die_unit){ .file = file, .place = file->units[index], .lines = UINT64_MAX };
	if (!read_unit(reader, alt, unit)) {
		free(unit);
		return NULL;
	}
	*slot = (uintptr_t)unit;
	return unit;
}

bool die_file_first(const struct die_file *file, size_t index, struct die_unit *unit,
		    uint64_t *budget, struct die *die)
{
	const struct die_place *place = &file->units[index];
	const struct die_reader reader = { .file = file };
	struct abbrevs shapes;
	struct cursor code;
	uint64_t at;
	bool read;

	*unit = (struct die_unit){ .file = file, .place = *place, .lines = UINT64_MAX };
	if (!place->die || !memelf_touch(file->elf, ".debug_info", place->start, FIRST_MAX) ||
	    !read_header(unit, &at) || at >= file->abbrev.len)
		return false;
	code = die_cursor(unit, place->die);
	if (!read_abbrevs(&shapes, unit, at, MIN(file->abbrev.len - at, *budget),
			  take_uleb(&code)))
		return false;
	*budget -= shapes.bytes;
	unit->abbrevs = &shapes;
	read = read_first(unit, &reader, die);
	abbrevs_release(&shapes);
	unit->abbrevs = NULL;
	return read;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Entries and their attributes. */
#include "die.h"

#include <dwarf.h>
#include <stdlib.h>

static uint64_t take_offset(const struct die_unit *unit, struct cursor *c)
{
	return take_fixed(c, unit->sizes.offset);
}

static uint64_t take_number(const struct die_unit *unit, struct cursor *c,
			    const struct abbrev_attribute *attribute, uint16_t form)
{
	switch (form) {
	case DW_FORM_implicit_const:
		return (int64_t)attribute->constant;
	case DW_FORM_udata:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
		return take_uleb(c);
	case DW_FORM_sdata:
		return take_sleb(c);
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_sec_offset:
		return take_fixed(c, form_size(form, &unit->sizes));
	default:
		form_skip(c, form, &unit->sizes);
		return 0;
	}
}

static uint64_t indexed_address(const struct die_unit *unit, uint64_t index)
{
	const struct die_bytes *addr = &unit->file->addr;

	if (unit->addr > addr->len || index >= (addr->len - unit->addr) / 8)
		return 0;
	return load_u64(addr->data + unit->addr + index * 8);
}

/* False when the form is none of an address. */
static bool take_address(const struct die_unit *unit, struct cursor *c, uint16_t form,
			 uint64_t *address)
{
	switch (form) {
	case DW_FORM_addr:
		*address = take_fixed(c, unit->sizes.address);
		return true;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		*address = indexed_address(unit, take_uleb(c));
		return true;
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		*address = indexed_address(unit, take_fixed(c, form_size(form, &unit->sizes)));
		return true;
	default:
		return false;
	}
}

/* Bytes that are read ahead where it is not known how many are needed. */
enum { AHEAD = 16384 };

static bool touch(const struct die_bytes *section, uint64_t offset, uint64_t len)
{
	return memelf_touch_section(section->elf, section->lazy, offset, len);
}

/* Reads up to the end of a string; false when it has none. */
static bool touch_string(const struct die_bytes *section, uint64_t offset)
{
	for (uint64_t end; offset < section->len; offset = end) {
		end = MIN(section->len, (offset / AHEAD + 1) * AHEAD);
		if (!touch(section, offset, end - offset))
			return false;
		if (memchr(section->data + offset, 0, end - offset))
			return true;
	}
	return false;
}

/* Sections end with a NUL or the string is not used. */
static const char *string_at(const struct die_bytes *section, uint64_t offset)
{
	if (offset >= section->len)
		return NULL;
	if (memelf_section_complete(section->lazy) ? section->data[section->len - 1] :
						     !touch_string(section, offset))
		return NULL;
	return (const char *)section->data + offset;
}

static const char *indexed_string(const struct die_unit *unit, uint64_t index)
{
	const struct die_bytes *offsets = &unit->file->str_offsets;
	size_t size = unit->sizes.offset;
	struct cursor c;

	if (unit->str_offsets > offsets->len || index >= (offsets->len - unit->str_offsets) / size)
		return NULL;
	c.at = offsets->data + unit->str_offsets + index * size;
	c.end = c.at + size;
	return string_at(&unit->file->str, take_fixed(&c, size));
}

static const char *take_text(const struct die_unit *unit, const struct die_reader *reader,
			     struct cursor *c, uint16_t form)
{
	if (!reader) {
		form_skip(c, form, &unit->sizes);
		return NULL;
	}
	switch (form) {
	case DW_FORM_string:
		return take_string(c);
	case DW_FORM_strp:
		return string_at(&unit->file->str, take_offset(unit, c));
	case DW_FORM_line_strp:
		return string_at(&unit->file->line_str, take_offset(unit, c));
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		return indexed_string(unit, take_uleb(c));
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		return indexed_string(unit, take_fixed(c, form_size(form, &unit->sizes)));
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		if (reader->alt)
			return string_at(&reader->alt->str, take_offset(unit, c));
		break;
	default:
		break;
	}
	form_skip(c, form, &unit->sizes);
	return NULL;
}

static bool take_reference(const struct die_unit *unit, struct cursor *c, uint16_t form,
			   struct die *die)
{
	die->origin_alt = false;
	switch (form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
		die->origin = take_fixed(c, form_size(form, &unit->sizes));
		break;
	case DW_FORM_ref_udata:
		die->origin = take_uleb(c);
		break;
	case DW_FORM_ref_addr:
		die->origin = take_fixed(c, unit->sizes.reference);
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		die->origin = take_fixed(c, form_size(form, &unit->sizes));
		die->origin_alt = true;
		return true;
	default:
		form_skip(c, form, &unit->sizes);
		return false;
	}
	return !add_overflows(die->origin, unit->place.start, &die->origin);
}

static void take_high(const struct die_unit *unit, struct cursor *c,
		      const struct abbrev_attribute *attribute, uint16_t form, struct die *die,
		      bool *relative)
{
	die->flags |= DIE_HIGH;
	*relative = !take_address(unit, c, form, &die->high);
	if (*relative)
		die->high = take_number(unit, c, attribute, form);
}

/* Where a list of ranges is; an index stands for a place that a table holds. */
static void take_ranges(const struct die_unit *unit, struct cursor *c,
			const struct abbrev_attribute *attribute, uint16_t form, struct die *die)
{
	const struct die_bytes *lists = &unit->file->rnglists;
	uint64_t value = take_number(unit, c, attribute, form);
	size_t size = unit->sizes.offset;
	struct cursor entry;

	if (form == DW_FORM_rnglistx) {
		if (unit->rnglists > lists->len || value >= (lists->len - unit->rnglists) / size)
			return;
		entry.at = lists->data + unit->rnglists + value * size;
		entry.end = entry.at + size;
		if (!touch(lists, unit->rnglists + value * size, size))
			return;
		value = unit->rnglists + take_fixed(&entry, size);
	}
	die->ranges = value;
	die->flags |= DIE_RANGES;
}

static void take_sibling(const struct die_unit *unit, struct cursor *c, uint16_t form,
			 struct die *die)
{
	struct die to;

	/* Only forwards: no list goes in a circle. */
	if (take_reference(unit, c, form, &to) && !to.origin_alt && to.origin < unit->place.end &&
	    unit->file->info.data + to.origin > c->at)
		die->sibling = unit->file->info.data + to.origin;
}

static uint32_t clip(uint64_t value)
{
	return MIN(value, UINT32_MAX);
}

static void take_attribute(const struct die_unit *unit, const struct die_reader *reader,
			   const struct abbrev_attribute *attribute, struct cursor *c,
			   struct die *die, bool *relative)
{
	uint16_t form = attribute->form;

	while (unlikely(form == DW_FORM_indirect) && !c->broken)
		form = take_uleb(c);
	switch (attribute->name) {
	case DW_AT_low_pc:
		if (take_address(unit, c, form, &die->low))
			die->flags |= DIE_LOW;
		else
			form_skip(c, form, &unit->sizes);
		break;
	case DW_AT_high_pc:
		take_high(unit, c, attribute, form, die, relative);
		break;
	case DW_AT_ranges:
		take_ranges(unit, c, attribute, form, die);
		break;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		if (take_reference(unit, c, form, die))
			die->flags |= DIE_ORIGIN;
		break;
	case DW_AT_name:
		die->name = take_text(unit, reader, c, form);
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		die->linkage_name = take_text(unit, reader, c, form);
		break;
	case DW_AT_comp_dir:
		die->folder = take_text(unit, reader, c, form);
		break;
	case DW_AT_decl_line:
		die->declared_line = clip(take_number(unit, c, attribute, form));
		break;
	case DW_AT_decl_column:
		die->declared_column = clip(take_number(unit, c, attribute, form));
		break;
	case DW_AT_call_file:
		die->call_file = clip(take_number(unit, c, attribute, form));
		break;
	case DW_AT_call_line:
		die->call_line = clip(take_number(unit, c, attribute, form));
		break;
	case DW_AT_call_column:
		die->call_column = clip(take_number(unit, c, attribute, form));
		break;
	case DW_AT_sibling:
		take_sibling(unit, c, form, die);
		break;
	default:
		form_skip(c, form, &unit->sizes);
	}
}

void die_read(const struct die_unit *unit, const struct die_reader *reader,
	      const struct abbrev *abbrev, struct cursor *c, struct die *die)
{
	const struct abbrev_attribute *attributes = unit->abbrevs->attributes.data + abbrev->first;
	bool relative = false;

	*die = (struct die){ .tag = abbrev->tag, .children = abbrev->children };
	for (unsigned int i = 0; i < abbrev->count; i++)
		take_attribute(unit, reader, &attributes[i], c, die, &relative);
	if (relative)
		die->high += die->low;
}

struct cursor die_cursor(const struct die_unit *unit, uint64_t offset)
{
	const uint8_t *info = unit->file->info.data;

	if (offset < unit->place.die || offset > unit->place.end)
		return (struct cursor){ .broken = true };
	return (struct cursor){ .at = info + offset, .end = info + unit->place.end };
}

const struct abbrev *die_next(const struct die_unit *unit, struct cursor *c)
{
	uint64_t code = take_uleb(c);
	const struct abbrev *abbrev;

	if (!code || c->broken)
		return NULL;
	abbrev = abbrevs_find(unit->abbrevs, code);
	if (!abbrev)
		cursor_break(c);
	return abbrev;
}

/* Only the attributes. Gives where the next sibling is, if the entry says so. */
static const uint8_t *skip_attributes(const struct die_unit *unit, const struct abbrev *abbrev,
				      struct cursor *c)
{
	const struct abbrev_attribute *attributes = unit->abbrevs->attributes.data + abbrev->first;
	struct die die = { 0 };

	if (abbrev->size != ABBREV_VARIABLE && !(abbrev->sibling && abbrev->children)) {
		skip_bytes(c, abbrev->size);
		return NULL;
	}
	for (unsigned int i = 0; i < abbrev->count; i++) {
		if (attributes[i].name == DW_AT_sibling && abbrev->children)
			take_sibling(unit, c, attributes[i].form, &die);
		else if (attributes[i].size != FORM_VARIABLE)
			skip_bytes(c, attributes[i].size);
		else
			form_skip(c, attributes[i].form, &unit->sizes);
	}
	return die.sibling;
}

void die_skip_children(const struct die_unit *unit, struct cursor *c)
{
	for (size_t depth = 1; depth && !c->broken;) {
		const struct abbrev *abbrev = die_next(unit, c);
		const uint8_t *sibling;

		if (!abbrev) {
			depth--;
			continue;
		}
		sibling = skip_attributes(unit, abbrev, c);
		if (!abbrev->children)
			continue;
		if (sibling && sibling >= c->at)
			c->at = sibling;
		else
			depth++;
	}
}

void die_skip(const struct die_unit *unit, const struct abbrev *abbrev, struct cursor *c)
{
	const uint8_t *sibling = skip_attributes(unit, abbrev, c);

	if (!abbrev->children)
		return;
	if (sibling && sibling >= c->at)
		c->at = sibling;
	else
		die_skip_children(unit, c);
}

/* ---- ranges ---- */

enum { ENTRY_MAX = 32 }; /* longer than any sensible one */

struct range_walk {
	const struct die_unit *unit;
	const struct die_bytes *lists;
	struct cursor c; /* ends where the list was read to */
	uint64_t base, start, end;
};

static bool next_old(struct range_walk *w)
{
	while (!w->c.broken) {
		w->start = take_fixed(&w->c, 8);
		w->end = take_fixed(&w->c, 8);
		if (w->c.broken || (!w->start && !w->end))
			return false;
		if (w->start != UINT64_MAX) {
			w->start += w->base;
			w->end += w->base;
			return true;
		}
		w->base = w->end;
	}
	return false;
}

static uint64_t take_indexed(struct range_walk *w)
{
	return indexed_address(w->unit, take_uleb(&w->c));
}

/* One entry: 1 a range, 0 none yet, -1 the end. */
static int next_entry(struct range_walk *w)
{
	switch (take_fixed(&w->c, 1)) {
	case DW_RLE_base_addressx:
		w->base = take_indexed(w);
		return 0;
	case DW_RLE_base_address:
		w->base = take_fixed(&w->c, 8);
		return 0;
	case DW_RLE_startx_endx:
		w->start = take_indexed(w);
		w->end = take_indexed(w);
		return 1;
	case DW_RLE_startx_length:
		w->start = take_indexed(w);
		w->end = w->start + take_uleb(&w->c);
		return 1;
	case DW_RLE_offset_pair:
		w->start = w->base + take_uleb(&w->c);
		w->end = w->base + take_uleb(&w->c);
		return 1;
	case DW_RLE_start_end:
		w->start = take_fixed(&w->c, 8);
		w->end = take_fixed(&w->c, 8);
		return 1;
	case DW_RLE_start_length:
		w->start = take_fixed(&w->c, 8);
		w->end = w->start + take_uleb(&w->c);
		return 1;
	default:
		return -1;
	}
}

/* Reads on when the next entry may not be there. */
static bool extend(struct range_walk *w)
{
	uint64_t at = w->c.at - w->lists->data, len = MIN(w->lists->len - at, (uint64_t)AHEAD);

	w->c.end = w->c.at + len;
	return touch(w->lists, at, len);
}

static bool next_range(struct range_walk *w)
{
	int found = 0;

	if (w->unit->version < 5)
		return next_old(w);
	while (!found) {
		if (cursor_left(&w->c) < ENTRY_MAX && !extend(w))
			return false;
		found = next_entry(w);
	}
	return found > 0 && !w->c.broken;
}

void die_each_range(const struct die_unit *unit, const struct die *die,
		    bool (*fn)(void *data, uint64_t start, uint64_t end), void *data)
{
	const struct die_bytes *lists = unit->version < 5 ? &unit->file->ranges :
							    &unit->file->rnglists;
	struct range_walk w = { .unit = unit, .lists = lists, .base = unit->base };

	if ((die->flags & DIE_LOW) && (die->flags & DIE_HIGH)) {
		fn(data, die->low, die->high);
		return;
	}
	if (!(die->flags & DIE_RANGES) || die->ranges >= lists->len)
		return;
	w.c = (struct cursor){ .at = lists->data + die->ranges, .end = lists->data + lists->len };
	if (lists->lazy)
		w.c.end = w.c.at;
	while (next_range(&w))
		if (!fn(data, w.start, w.end))
			return;
}

bool die_is_block(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	default:
		return false;
	}
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which unit covers an address. The headers of all units are read, as entries of one may refer to
 * another. Where compilers left .debug_aranges, that tells the rest at once; only an address that
 * it does not cover has the units themselves asked, once: the entry and the abbreviations of every
 * unit take ten times as long to read.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "dwarf.h"

enum { HEADER_MAX = 32, UNIT_ENTRY = 512 };

struct unit_scan {
	struct dwarf_info *info;
	VEC(struct span_range) ranges;
	uint64_t ranges_max; /* a hostile file may repeat one long list for every unit */
};

/* Length of a unit's header after the length field; 0: a unit without code of its own. */
static size_t rest_of_header(const uint8_t *bytes, size_t offset_size)
{
	unsigned int version = bytes[0] | bytes[1] << 8;

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

static bool list_units(struct dwarf_info *info, struct spulse_error **err)
{
	size_t len;
	const uint8_t *bytes = memelf_find(&info->elf, ".debug_info", &len);
	VEC(struct dwarf_unit) units = { 0 };
	uint64_t at = 0;

	while (len - at >= HEADER_MAX / 2) {
		size_t field = 4, header;
		uint64_t length;

		if (!memelf_touch(&info->elf, ".debug_info", at, HEADER_MAX)) {
			err_set(err, SPULSE_ERROR_IO, "debug information cannot be read");
			break;
		}
		length = load_u32(bytes + at);
		if (length == UINT32_MAX) {
			length = load_u64(bytes + at + 4);
			field = 12;
		}
		if (length > len - at - field || length < HEADER_MAX / 4)
			break;
		header = rest_of_header(bytes + at + field, field == 12 ? 8 : 4);
		if (!vec_push(&units, (struct dwarf_unit){
				.start = at,
				.end = at + field + length,
				.die = header ? at + field + header : 0,
			})) {
			err_no_memory(err);
			break;
		}
		at += field + length;
	}
	info->units = units.data;
	info->unit_count = units.len;
	return !err || !*err;
}

struct dwarf_unit *dwarf_unit_at(const struct dwarf_info *info, uint64_t offset)
{
	size_t low = 0, high = info->unit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (info->units[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && offset < info->units[low - 1].end ? &info->units[low - 1] : NULL;
}

/* False when no more are to come. */
static bool add_range(struct unit_scan *scan, uint64_t start, uint64_t end, uint32_t id)
{
	if (start < scan->info->base || end > scan->info->code_end || start >= end)
		return true;
	return scan->ranges.len < scan->ranges_max &&
	       vec_push(&scan->ranges, (struct span_range){ start, end, 0, id });
}

/* ---- .debug_aranges ---- */

/* One set: of 32-bit DWARF, 64-bit addresses, no segments; pairs from the next multiple of 16. */
static void read_set(struct unit_scan *scan, const uint8_t *bytes, size_t at, size_t end)
{
	const struct dwarf_unit *unit;

	if (end - at < 12 || bytes[at + 10] != 8 || bytes[at + 11] != 0)
		return;
	unit = dwarf_unit_at(scan->info, load_u32(bytes + at + 6));
	if (!unit || unit->start != load_u32(bytes + at + 6) || !unit->die)
		return;
	for (at += 16; at <= end && end - at >= 16; at += 16) {
		uint64_t start = load_u64(bytes + at), length = load_u64(bytes + at + 8), limit;

		if (!start && !length)
			break;
		if (add_overflows(start, length, &limit) ||
		    !add_range(scan, start, limit, unit - scan->info->units))
			break;
	}
}

static bool read_aranges(struct unit_scan *scan, struct image *image)
{
	const struct image_section *section = image_section_by_name(image, ".debug_aranges");
	struct spulse_error *error = NULL;
	const uint8_t *bytes;
	size_t len, at = 0;

	if (!section || image_section_bytes(image, section, &bytes, &len, &error) < 0) {
		spulse_error_free(error);
		return false;
	}
	while (len - at >= 12) {
		uint32_t length = load_u32(bytes + at);

		if (length == UINT32_MAX || length > len - at - 4)
			break;
		read_set(scan, bytes, at, at + 4 + length);
		at += 4 + (size_t)length;
	}
	return scan->ranges.len;
}

/* ---- the units themselves ---- */

static void read_units(struct unit_scan *scan, Dwarf *dwarf)
{
	struct dwarf_info *info = scan->info;

	for (size_t i = 0; i < info->unit_count; i++) {
		Dwarf_Addr base, start, end;
		ptrdiff_t offset = 0;
		Dwarf_Die die;
		int tag;

		if (!info->units[i].die ||
		    !memelf_touch(&info->elf, ".debug_info", info->units[i].start, UNIT_ENTRY) ||
		    !dwarf_offdie(dwarf, info->units[i].die, &die))
			continue;
		tag = dwarf_tag(&die);
		if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
			continue;
		while ((offset = dwarf_ranges(&die, offset, &base, &start, &end)) > 0)
			if (!add_range(scan, start, end, i))
				break;
	}
}

static bool scan_units(struct dwarf_info *info)
{
	struct unit_scan scan = { .info = info, .ranges_max = 65536 + info->elf.size / 8 };
	struct dwarf_reader reader;
	struct spans spans;
	bool done = dwarf_reader_open(&reader, info);

	info->scanned = true;
	if (done) {
		read_units(&scan, reader.dwarf);
		dwarf_reader_close(&reader);
		done = spans_build(&spans, scan.ranges.data, scan.ranges.len);
	}
	if (done)
		info->scanned_spans = spans;
	vec_free(&scan.ranges);
	return done;
}

int dwarf_index_units(struct dwarf_info *info, struct image *image, struct spulse_error **err)
{
	struct unit_scan scan = { .info = info, .ranges_max = 65536 + info->elf.size / 8 };
	struct spulse_error *error = NULL;
	bool done = list_units(info, &error);

	if (!done) {
		int r = -(int)spulse_error_kind(error);

		if (err)
			*err = error;
		else
			spulse_error_free(error);
		return r;
	}
	if (read_aranges(&scan, image))
		done = spans_build(&info->unit_spans, scan.ranges.data, scan.ranges.len);
	else
		done = scan_units(info);
	vec_free(&scan.ranges);
	if (done)
		return 0;
	return err_set(err, SPULSE_ERROR_UNSUPPORTED, "debug information cannot be used");
}

struct dwarf_unit *dwarf_find_unit(struct dwarf_info *info, uint64_t address)
{
	uint32_t id = spans_find(&info->unit_spans, address);

	if (id == SPAN_NONE && !info->scanned)
		scan_units(info);
	if (id == SPAN_NONE)
		id = spans_find(&info->scanned_spans, address);
	return id == SPAN_NONE ? NULL : &info->units[id];
}

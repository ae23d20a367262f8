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

struct unit_scan {
	struct dwarf_info *info;
	VEC(struct span_range) ranges;
	uint32_t unit;	     /* whose ranges are being added */
	/* A hostile file may have one long list, or table of shapes, read for every unit. */
	uint64_t ranges_max;
	uint64_t budget; /* bytes that may still be read, of what units may share */
};

enum { SCAN_BYTES = 64 << 20, SCAN_SIZES = 8, RANGE_COST = 16 };

static bool list_units(struct dwarf_info *info, struct spulse_error **err)
{
	if (!die_file_open(&info->file, &info->elf, false, 0)) {
		err_set(err, SPULSE_ERROR_IO, "debug information cannot be read");
		return false;
	}
	info->unit_count = info->file.unit_count;
	info->units = calloc(info->unit_count + 1, sizeof(*info->units));
	for (size_t i = 0; i < info->unit_count && info->units; i++) {
		const struct die_place *place = &info->file.units[i];

		info->units[i].start = place->start;
		info->units[i].end = place->end;
		info->units[i].die = place->die;
	}
	if (info->units)
		return true;
	info->unit_count = 0;
	err_no_memory(err);
	return false;
}

/* False when no more are to come. */
static bool add_range(void *data, uint64_t start, uint64_t end)
{
	struct unit_scan *scan = data;

	if (start < scan->info->base || end > scan->info->code_end || start >= end)
		return true;
	return scan->ranges.len < scan->ranges_max &&
	       vec_push(&scan->ranges, (struct span_range){ start, end, 0, scan->unit });
}

/* ---- .debug_aranges ---- */

/* One set: of 32-bit DWARF, 64-bit addresses, no segments; pairs from the next multiple of 16. */
static void read_set(struct unit_scan *scan, const uint8_t *bytes, size_t at, size_t end)
{
	uint32_t place;
	size_t unit;

	if (end - at < 12 || bytes[at + 10] != 8 || bytes[at + 11] != 0)
		return;
	place = load_u32(bytes + at + 6);
	unit = die_file_find(&scan->info->file, place);
	if (unit == SIZE_MAX || scan->info->units[unit].start != place ||
	    !scan->info->units[unit].die)
		return;
	scan->unit = unit;
	for (at += 16; at <= end && end - at >= 16; at += 16) {
		uint64_t start = load_u64(bytes + at), length = load_u64(bytes + at + 8), limit;

		if (!start && !length)
			break;
		if (add_overflows(start, length, &limit) || !add_range(scan, start, limit))
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

static bool add_range_within(void *data, uint64_t start, uint64_t end)
{
	struct unit_scan *scan = data;

	if (scan->budget < RANGE_COST)
		return false;
	scan->budget -= RANGE_COST;
	return add_range(data, start, end);
}

static void read_unit(struct unit_scan *scan, size_t index)
{
	struct die_unit unit;
	struct die die;

	if (!die_file_first(&scan->info->file, index, &unit, &scan->budget, &die) ||
	    (die.tag != DW_TAG_compile_unit && die.tag != DW_TAG_skeleton_unit))
		return;
	scan->unit = index;
	die_each_range(&unit, &die, add_range_within, scan);
}

static bool scan_units(struct dwarf_info *info)
{
	struct unit_scan scan = {
		.info = info,
		.ranges_max = 65536 + info->elf.size / 8,
		.budget = SCAN_BYTES + SCAN_SIZES * info->elf.size,
	};
	struct spans spans;
	bool done;

	info->scanned = true;
	for (size_t i = 0; i < info->unit_count; i++)
		read_unit(&scan, i);
	done = spans_build(&spans, scan.ranges.data, scan.ranges.len);
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

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A unit's tables, in two steps. The first passes over all entries once and notes where functions
 * are; the calls that were inlined into a function are read when one of its addresses is asked
 * for, since few functions of a large program ever show in a profile.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "lines.h"
#include "split.h"

enum { DEPTH_MAX = 512, NESTED_MAX = 16 };

struct walk {
	struct dwarf_info *info;
	const struct die_unit *unit;
	struct cursor c;
	VEC(struct dwarf_function) functions;
	struct span_list found;
	bool enter_types;
	bool local_classes; /* inside of functions, with functions such as lambdas */
	bool failed;
};

/* Notes a function with code; false when it has none. */
static bool add_function(struct walk *walk, const struct die *die, uint64_t place)
{
	size_t first = walk->found.ranges.len;
	struct dwarf_function function = { .die = place - walk->unit->place.start };

	walk->found.id = walk->functions.len;
	die_each_range(walk->unit, die, span_list_add, &walk->found);
	walk->failed |= walk->found.failed;
	if (walk->failed || walk->found.ranges.len == first)
		return false;
	function.entry = walk->found.ranges.data[first].low - walk->info->base;
	if (!vec_push(&walk->functions, function))
		walk->failed = true;
	return !walk->failed;
}

/* Functions stand at the top, in these, and in each other. */
static bool is_entered(const struct walk *walk, uint16_t tag, unsigned int nested)
{
	switch (tag) {
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		return walk->enter_types || (walk->local_classes && nested);
	default:
		return die_is_block(tag);
	}
}

static void walk_children(struct walk *walk, uint32_t depth, unsigned int nested);

static void walk_function(struct walk *walk, const struct abbrev *abbrev, uint64_t place,
			  uint32_t depth, unsigned int nested)
{
	struct die die;
	bool found;

	die_read(walk->unit, NULL, abbrev, &walk->c, &die);
	walk->found.depth = depth;
	found = add_function(walk, &die, place);
	if (!die.children)
		return;
	/* One that is always inlined may hold a class whose functions have code. */
	if ((found || walk->local_classes) && nested < NESTED_MAX)
		walk_children(walk, depth + 1, nested + 1);
	else if (die.sibling && die.sibling >= walk->c.at)
		walk->c.at = die.sibling;
	else
		die_skip_children(walk->unit, &walk->c);
}

static void walk_children(struct walk *walk, uint32_t depth, unsigned int nested)
{
	const uint8_t *info = walk->unit->file->info.data, *at;
	const struct abbrev *abbrev;
	struct die die;

	if (depth > DEPTH_MAX) {
		die_skip_children(walk->unit, &walk->c);
		return;
	}
	while (!walk->failed && (at = walk->c.at, abbrev = die_next(walk->unit, &walk->c))) {
		if (abbrev->tag == DW_TAG_subprogram) {
			walk_function(walk, abbrev, at - info, depth, nested);
		} else if (abbrev->children && is_entered(walk, abbrev->tag, nested)) {
			die_read(walk->unit, NULL, abbrev, &walk->c, &die);
			walk_children(walk, depth + 1, nested);
		} else {
			die_skip(walk->unit, abbrev, &walk->c);
		}
	}
}

/*
 * C and C++ define functions outside of their classes, unless a class is local to a function;
 * others inside of types too.
 */
static void choose_types(struct walk *walk, unsigned int language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		walk->local_classes = true;
		return;
	default:
		walk->enter_types = true;
	}
}

/* Gives memory that growth left over back. */
static void *shrink(void *array, size_t size)
{
	void *smaller = size ? realloc(array, size) : NULL;

	return smaller ? smaller : array;
}

static bool keep_functions(struct dwarf_unit *unit, struct walk *walk)
{
	if (walk->failed ||
	    !spans_build(&unit->spans, walk->found.ranges.data, walk->found.ranges.len))
		return false;
	unit->spans.starts = shrink(unit->spans.starts, unit->spans.count * sizeof(uint64_t));
	unit->spans.ids = shrink(unit->spans.ids, unit->spans.count * sizeof(uint32_t));
	unit->function_count = walk->functions.len;
	unit->functions = shrink(walk->functions.data,
				 walk->functions.len * sizeof(*unit->functions));
	walk->functions.data = NULL;
	return true;
}

static bool fill_functions(struct dwarf_info *info, struct dwarf_unit *unit,
			   const struct die_unit *from)
{
	struct walk walk = { .info = info, .unit = from,
			     .found = dwarf_code_ranges(info) };
	const struct abbrev *abbrev;
	bool filled;

	choose_types(&walk, from->language);
	walk.c = die_cursor(from, from->place.die);
	abbrev = die_next(from, &walk.c);
	if (abbrev && abbrev->children) {
		struct die die;

		die_read(from, NULL, abbrev, &walk.c, &die);
		walk_children(&walk, 0, 0);
	}
	filled = keep_functions(unit, &walk);
	vec_free(&walk.functions);
	vec_free(&walk.found.ranges);
	return filled;
}

/* Lines are in the program itself, functions in another file: without it there are lines. */
static bool fill_split(struct dwarf_info *info, struct dwarf_reader *reader,
		       struct dwarf_unit *unit)
{
	const struct split_places places = { info->folder, info->package, info->sysroot };
	const struct die_unit *from;
	struct die_reader dies;
	const char *why = NULL;
	bool filled;

	unit->split = split_open(info, reader, unit->die, &places, &why);
	if (!unit->split) {
		log_debug("split DWARF: %s", why);
		__atomic_add_fetch(&info->splits_missing, 1, __ATOMIC_RELAXED);
		return true;
	}
	__atomic_add_fetch(&info->table_bytes, unit->split->elf.size, __ATOMIC_RELAXED);
	die_reader_open(&dies, &unit->split->file, NULL);
	from = die_reader_unit(&dies, false, unit->split->unit);
	filled = !from || fill_functions(info, unit, from);
	die_reader_close(&dies);
	return filled;
}

static bool fill_unit(struct dwarf_info *info, struct dwarf_reader *reader,
		      struct dwarf_unit *unit, const struct die_unit *from)
{
	line_table_read(&unit->lines, info, from->lines, dwarf_keep_text(info, from->folder),
			&reader->rows);
	return !unit->lines.failed &&
	       (from->skeleton ? fill_split(info, reader, unit) :
				 fill_functions(info, unit, from));
}

void dwarf_fill_unit(struct dwarf_info *info, struct dwarf_reader *reader, struct dwarf_unit *unit)
{
	const struct die_unit *from;

	unit->state = UNIT_FAILED;
	die_reader_trim(&reader->dies);
	from = die_reader_unit(&reader->dies, false, unit - info->units);
	if (!from || !fill_unit(info, reader, unit, from))
		return;
	unit->state = UNIT_READY;
	__atomic_add_fetch(&info->table_bytes,
			   unit->function_count * sizeof(*unit->functions) +
				   unit->lines.row_count * sizeof(*unit->lines.rows) +
				   unit->spans.count * 12,
			   __ATOMIC_RELAXED);
}

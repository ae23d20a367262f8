/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A unit's tables. The tree of debug entries is walked once. Functions and inlined calls become
 * nodes, each with its parent; their address ranges are flattened at the end. Names come from the
 * entry that a node is an instance of, which many nodes share: they are remembered by its place.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "split.h"

enum { DEPTH_MAX = 512, ORIGINS_MAX = 16 };

/* What nodes share with all other instances of a function. */
struct origin {
	const char *name;
	uint32_t line;
	uint16_t column;
};

struct walk {
	struct dwarf_info *info;
	const struct split *split; /* NULL: the unit has its functions itself */
	struct line_table *lines;
	VEC(struct dwarf_node) nodes;
	VEC(struct span_range) ranges;
	VEC(struct origin) origins;
	struct u64map origin_by_place;
	uint64_t ranges_max;
	bool enter_types;
	bool has_local_classes; /* and their functions, such as lambdas */
	unsigned int functions; /* around the entry */
	bool failed;
};

static uint64_t attribute_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value))
		return 0;
	return value;
}

/* The entry that this one continues or is an instance of. */
static bool follow_origin(const struct dwarf_info *info, Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;
	uint64_t offset;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	    !dwarf_attr(die, DW_AT_specification, &attribute))
		return false;
	if (dwarf_whatform(&attribute) == DW_FORM_ref_addr) {
		/* Where the entry lies must be there before it is looked at. */
		offset = load_u32(attribute.valp);
		if (!dwarf_touch_unit(info, offset))
			return false;
	}
	return dwarf_formref_die(&attribute, origin);
}

static void read_origin(const struct dwarf_info *info, Dwarf_Die *die, struct origin *origin)
{
	Dwarf_Die current = *die;
	const char *plain = NULL;

	for (int i = 0; i < ORIGINS_MAX; i++) {
		Dwarf_Attribute attribute;

		if (dwarf_attr(&current, DW_AT_linkage_name, &attribute) ||
		    dwarf_attr(&current, DW_AT_MIPS_linkage_name, &attribute))
			origin->name = dwarf_formstring(&attribute);
		if (!plain && dwarf_attr(&current, DW_AT_name, &attribute))
			plain = dwarf_formstring(&attribute);
		if (!origin->line) {
			origin->line = attribute_number(&current, DW_AT_decl_line);
			origin->column = attribute_number(&current, DW_AT_decl_column);
		}
		if (origin->name || !follow_origin(info, &current, &current))
			break;
	}
	if (!origin->name)
		origin->name = plain;
}

/* Reads each origin once. */
static struct origin find_origin(struct walk *walk, Dwarf_Die *die)
{
	struct origin origin = { 0 };
	Dwarf_Die shared;
	uint64_t *known;
	bool added;

	if (!follow_origin(walk->info, die, &shared)) {
		read_origin(walk->info, die, &origin);
		return origin;
	}
	known = u64map_add(&walk->origin_by_place, (uintptr_t)shared.addr, &added);
	if (!known) {
		walk->failed = true;
		return origin;
	}
	if (!added)
		return walk->origins.data[*known];
	read_origin(walk->info, &shared, &origin);
	*known = walk->origins.len;
	if (!vec_push(&walk->origins, origin))
		walk->failed = true;
	return origin;
}

/* False when the walk is to end. */
static bool add_range(struct walk *walk, uint64_t start, uint64_t end, uint32_t depth)
{
	struct span_range range = { start, end, depth, walk->nodes.len };

	if (start < walk->info->base || end > walk->info->code_end || start >= end)
		return true;
	if (walk->ranges.len >= walk->ranges_max)
		return false;
	if (!vec_push(&walk->ranges, range))
		walk->failed = true;
	return !walk->failed;
}

static void add_ranges(struct walk *walk, Dwarf_Die *die, uint32_t depth)
{
	struct split_ranges list;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	if (walk->split && split_ranges_start(&list, walk->split, die)) {
		while (split_ranges_next(&list, &start, &end))
			if (!add_range(walk, start, end, depth))
				return;
		return;
	}
	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
		if (!add_range(walk, start, end, depth))
			return;
}

/* Adds a node for an entry with code; SPAN_NONE when it has none. */
static uint32_t add_node(struct walk *walk, Dwarf_Die *die, uint32_t parent, uint32_t depth)
{
	const struct dwarf_info *info = walk->info;
	uint32_t id = walk->nodes.len;
	size_t first = walk->ranges.len;
	struct dwarf_node node;
	struct origin origin;

	add_ranges(walk, die, depth);
	if (walk->failed || walk->ranges.len == first)
		return SPAN_NONE;
	origin = find_origin(walk, die);
	node = (struct dwarf_node){
		.name = origin.name,
		.parent = parent,
		.declared_line = origin.line,
		.declared_column = origin.column,
		.entry = walk->ranges.data[first].low - info->base,
		.call_file = UINT32_MAX,
	};
	if (parent != SPAN_NONE) {
		node.call_file = line_table_file(walk->lines,
						 attribute_number(die, DW_AT_call_file));
		node.call_line = attribute_number(die, DW_AT_call_line);
		node.call_column = attribute_number(die, DW_AT_call_column);
		node.entry = walk->nodes.data[parent].entry;
	}
	if (!vec_push(&walk->nodes, node))
		walk->failed = true;
	return id;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent_die, uint32_t parent,
			  uint32_t depth);

static void walk_entry(struct walk *walk, Dwarf_Die *die, uint32_t parent, uint32_t depth)
{
	uint32_t node;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		/* A function inside of another is a function of its own. */
		node = add_node(walk, die, SPAN_NONE, depth);
		walk->functions++;
		/* One that is always inlined may hold a class whose functions have code. */
		if (node != SPAN_NONE || walk->has_local_classes)
			walk_children(walk, die, node, depth + 1);
		walk->functions--;
		break;
	case DW_TAG_inlined_subroutine:
		node = add_node(walk, die, parent, depth);
		if (node != SPAN_NONE)
			walk_children(walk, die, node, depth + 1);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
		walk_children(walk, die, parent, depth + 1);
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		if (walk->enter_types || (walk->has_local_classes && walk->functions))
			walk_children(walk, die, parent, depth + 1);
		break;
	default:
		break;
	}
}

static void walk_children(struct walk *walk, Dwarf_Die *parent_die, uint32_t parent,
			  uint32_t depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent_die, &die) != 0)
		return;
	do {
		walk_entry(walk, &die, parent, depth);
	} while (!walk->failed && dwarf_siblingof(&die, &die) == 0);
}

/*
 * C and C++ define functions outside of their classes, unless a class is local to a function;
 * others inside of types too.
 */
static void choose_types(struct walk *walk, Dwarf_Die *unit_die)
{
	switch (dwarf_srclang(unit_die)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		walk->has_local_classes = true;
		return;
	default:
		walk->enter_types = true;
	}
}

static void walk_release(struct walk *walk)
{
	vec_free(&walk->nodes);
	vec_free(&walk->ranges);
	vec_free(&walk->origins);
	u64map_release(&walk->origin_by_place);
}

/* Gives memory that growth left over back. */
static void *shrink(void *array, size_t size)
{
	void *smaller = size ? realloc(array, size) : NULL;

	return smaller ? smaller : array;
}

static bool fill_functions(struct dwarf_info *info, struct dwarf_unit *unit, Dwarf_Die *unit_die,
			   const struct split *split, struct line_table *lines)
{
	struct walk walk = { .info = info, .lines = lines, .split = split,
			     .ranges_max = 65536 + info->elf.size / 2 };
	bool filled;

	choose_types(&walk, unit_die);
	walk_children(&walk, unit_die, SPAN_NONE, 0);
	filled = !walk.failed && spans_build(&unit->functions, walk.ranges.data, walk.ranges.len);
	if (filled) {
		unit->functions.starts = shrink(unit->functions.starts,
						unit->functions.count * sizeof(uint64_t));
		unit->functions.ids = shrink(unit->functions.ids,
					     unit->functions.count * sizeof(uint32_t));
		unit->node_count = walk.nodes.len;
		unit->nodes = shrink(walk.nodes.data, walk.nodes.len * sizeof(*unit->nodes));
		walk.nodes.data = NULL;
	}
	walk_release(&walk);
	return filled;
}

static void read_lines(struct dwarf_info *info, Dwarf_Die *unit_die, struct line_table *lines)
{
	Dwarf_Attribute attribute;
	const char *folder = dwarf_formstring(dwarf_attr(unit_die, DW_AT_comp_dir, &attribute));
	Dwarf_Word offset = UINT64_MAX;

	if (dwarf_attr(unit_die, DW_AT_stmt_list, &attribute) &&
	    dwarf_formudata(&attribute, &offset))
		offset = UINT64_MAX;
	line_table_read(lines, info, offset, folder);
}

/* Lines are in the program itself, functions in another file: without it there are lines. */
static bool fill_split(struct dwarf_info *info, struct dwarf_unit *unit, Dwarf_Die *skeleton,
		       struct line_table *lines)
{
	const struct split_places places = { info->folder, info->package, info->sysroot };
	const char *why = NULL;
	struct split split;
	bool filled;

	if (!split_open(&split, info, skeleton, &places, &why)) {
		log_debug("split DWARF: %s", why);
		__atomic_add_fetch(&info->splits_missing, 1, __ATOMIC_RELAXED);
		return true;
	}
	unit->split = malloc(sizeof(*unit->split));
	filled = unit->split && fill_functions(info, unit, &split.die, &split, lines);
	if (unit->split) {
		/* Its names stay; the reader goes. */
		*unit->split = split.elf;
		split.elf = (struct memelf){ 0 };
		__atomic_add_fetch(&info->table_bytes, unit->split->size, __ATOMIC_RELAXED);
	}
	split_release(&split);
	return filled;
}

void dwarf_fill_unit(struct dwarf_info *info, struct dwarf_reader *reader, struct dwarf_unit *unit)
{
	struct line_table lines;
	Dwarf_Die die;
	bool filled;

	unit->state = UNIT_FAILED;
	if (!memelf_touch(&info->elf, ".debug_info", unit->start, unit->end - unit->start) ||
	    !dwarf_offdie(reader->dwarf, unit->die, &die))
		return;
	read_lines(info, &die, &lines);
	filled = !lines.failed &&
		 (split_is_skeleton(&die) ? fill_split(info, unit, &die, &lines) :
					    fill_functions(info, unit, &die, NULL, &lines)) &&
		 dwarf_fill_rows(unit, &lines);
	line_table_release(&lines);
	if (!filled)
		return;
	unit->state = UNIT_READY;
	__atomic_add_fetch(&info->table_bytes,
			   unit->node_count * sizeof(*unit->nodes) +
				   unit->row_count * sizeof(*unit->rows) +
				   unit->functions.count * 12,
			   __ATOMIC_RELAXED);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One function's own facts and the calls that were inlined into it, each with its parent; their
 * ranges are flattened at the end. Names come from the entry that a call is an instance of, which
 * many calls share: they are remembered by its place.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "split.h"

enum { DEPTH_MAX = 512, ORIGINS_MAX = 16 };

/* What calls share with all other instances of a function. */
struct origin {
	const char *name;
	uint32_t line, column;
};

struct inline_walk {
	struct dwarf_info *info;
	const struct die_unit *unit;
	struct die_reader *reader;
	struct arena *tables;
	struct cursor c;
	VEC(struct dwarf_node) nodes;
	struct span_list found;
	VEC(struct origin) origins;
	struct u64map origin_by_place;
	bool failed;
};

static const struct die_unit *unit_around(struct die_reader *reader, bool alt, uint64_t offset)
{
	const struct die_file *file = alt ? reader->alt : reader->file;

	return file ? die_reader_unit(reader, alt, die_file_find(file, offset)) : NULL;
}

/* The entry that a reference leads to. */
static bool read_referenced(struct die_reader *reader, const struct die *from, bool in_alt,
			    const struct die_unit **unit_out, struct die *die)
{
	const struct die_unit *unit =
		unit_around(reader, from->origin_alt || in_alt, from->origin);
	const struct abbrev *abbrev;
	struct cursor c;

	if (!unit)
		return false;
	c = die_cursor(unit, from->origin);
	abbrev = die_next(unit, &c);
	if (!abbrev)
		return false;
	die_read(unit, reader, abbrev, &c, die);
	*unit_out = unit;
	return true;
}

/* Follows an entry to those that it continues or is an instance of, up to a linkage name. */
static struct origin read_origin(struct die_reader *reader, const struct die *first, bool in_alt)
{
	struct origin origin = { 0 };
	const char *plain = NULL;
	struct die die = *first;

	for (int i = 0; i < ORIGINS_MAX; i++) {
		const struct die_unit *unit;
		struct die next;

		origin.name = die.linkage_name;
		if (!plain)
			plain = die.name;
		if (!origin.line) {
			origin.line = die.declared_line;
			origin.column = die.declared_column;
		}
		if (origin.name || !(die.flags & DIE_ORIGIN) ||
		    !read_referenced(reader, &die, in_alt, &unit, &next))
			break;
		in_alt = unit->file == reader->alt;
		die = next;
	}
	if (!origin.name)
		origin.name = plain;
	return origin;
}

/* Reads each origin once. */
static struct origin find_origin(struct inline_walk *walk, const struct die *die)
{
	const struct die_unit *unit;
	struct origin origin = { 0 };
	struct die shared;
	uint64_t *known;
	bool added;

	if (!(die->flags & DIE_ORIGIN))
		return read_origin(walk->reader, die, false);
	known = u64map_add(&walk->origin_by_place, die->origin << 1 | die->origin_alt, &added);
	if (!known) {
		walk->failed = true;
		return origin;
	}
	if (!added)
		return walk->origins.data[*known];
	*known = walk->origins.len;
	if (read_referenced(walk->reader, die, false, &unit, &shared))
		origin = read_origin(walk->reader, &shared, unit->file == walk->reader->alt);
	origin.name = dwarf_keep_text(walk->info, origin.name);
	if (!vec_push(&walk->origins, origin))
		walk->failed = true;
	return origin;
}

static uint16_t clip16(uint32_t value)
{
	return MIN(value, UINT16_MAX);
}

/* Adds a call with code; SPAN_NONE when it has none. */
static uint32_t add_call(struct inline_walk *walk, const struct die *die, uint32_t parent)
{
	uint32_t id = walk->nodes.len;
	size_t first = walk->found.ranges.len;
	struct dwarf_node node;
	struct origin origin;

	walk->found.id = id;
	die_each_range(walk->unit, die, span_list_add, &walk->found);
	walk->failed |= walk->found.failed;
	if (walk->failed || walk->found.ranges.len == first)
		return SPAN_NONE;
	origin = find_origin(walk, die);
	node = (struct dwarf_node){
		.name = origin.name,
		.parent = parent,
		.call_file = die->call_file,
		.call_line = die->call_line,
		.call_column = clip16(die->call_column),
		.declared_line = origin.line,
		.declared_column = clip16(origin.column),
	};
	if (!vec_push(&walk->nodes, node))
		walk->failed = true;
	return id;
}

static void walk_calls(struct inline_walk *walk, uint32_t parent, uint32_t depth);

static void walk_call(struct inline_walk *walk, const struct abbrev *abbrev, uint32_t parent,
		      uint32_t depth)
{
	bool block = die_is_block(abbrev->tag);
	struct die die;

	die_read(walk->unit, walk->reader, abbrev, &walk->c, &die);
	walk->found.depth = depth;
	if (!block)
		parent = add_call(walk, &die, parent);
	if (!die.children)
		return;
	if (block || parent != SPAN_NONE)
		walk_calls(walk, parent, depth + 1);
	else if (die.sibling && die.sibling >= walk->c.at)
		walk->c.at = die.sibling;
	else
		die_skip_children(walk->unit, &walk->c);
}

static void walk_calls(struct inline_walk *walk, uint32_t parent, uint32_t depth)
{
	const struct abbrev *abbrev;

	if (depth > DEPTH_MAX) {
		die_skip_children(walk->unit, &walk->c);
		return;
	}
	while (!walk->failed && (abbrev = die_next(walk->unit, &walk->c))) {
		if (abbrev->tag == DW_TAG_inlined_subroutine ||
		    (abbrev->children && die_is_block(abbrev->tag)))
			walk_call(walk, abbrev, parent, depth);
		else
			die_skip(walk->unit, abbrev, &walk->c);
	}
}

/* Exactly what is needed: spans are built in room for twice as many. */
static bool keep_spans(struct arena *tables, struct spans *kept, const struct spans *spans)
{
	kept->count = spans->count;
	kept->starts = arena_alloc(tables, spans->count * sizeof(*spans->starts));
	kept->ids = arena_alloc(tables, spans->count * sizeof(*spans->ids));
	if (!kept->starts || !kept->ids)
		return false;
	if (spans->count) {
		memcpy(kept->starts, spans->starts, spans->count * sizeof(*spans->starts));
		memcpy(kept->ids, spans->ids, spans->count * sizeof(*spans->ids));
	}
	return true;
}

static struct dwarf_inlines *keep(struct inline_walk *walk, const struct origin *own)
{
	struct dwarf_inlines *inlines =
		arena_alloc(walk->tables,
			    sizeof(*inlines) + walk->nodes.len * sizeof(inlines->nodes[0]));
	struct spans spans;
	bool kept;

	if (!inlines)
		return NULL;
	*inlines = (struct dwarf_inlines){ .name = own->name, .declared_line = own->line,
					   .declared_column = clip16(own->column),
					   .node_count = walk->nodes.len };
	kept = spans_build(&spans, walk->found.ranges.data, walk->found.ranges.len) &&
	       keep_spans(walk->tables, &inlines->spans, &spans);
	spans_release(&spans);
	if (!kept)
		return NULL;
	if (walk->nodes.len)
		memcpy(inlines->nodes, walk->nodes.data,
		       walk->nodes.len * sizeof(inlines->nodes[0]));
	return inlines;
}

static struct dwarf_inlines *read_function(struct inline_walk *walk, uint64_t place)
{
	struct dwarf_inlines *inlines = NULL;
	const struct abbrev *abbrev;
	struct origin own;
	struct die die;

	walk->c = die_cursor(walk->unit, place);
	abbrev = die_next(walk->unit, &walk->c);
	if (!abbrev)
		return NULL;
	die_read(walk->unit, walk->reader, abbrev, &walk->c, &die);
	own = find_origin(walk, &die);
	if (!own.name)
		own.name = die.linkage_name ? die.linkage_name : die.name;
	own.name = dwarf_keep_text(walk->info, own.name);
	if (die.children)
		walk_calls(walk, SPAN_NONE, 0);
	if (!walk->failed)
		inlines = keep(walk, &own);
	vec_free(&walk->nodes);
	vec_free(&walk->found.ranges);
	vec_free(&walk->origins);
	u64map_release(&walk->origin_by_place);
	return inlines;
}

static void fill(struct dwarf_info *info, struct die_reader *reader, struct arena *tables,
		 size_t index, struct dwarf_function *function)
{
	struct inline_walk walk = { .info = info, .reader = reader, .tables = tables,
				    .found = dwarf_code_ranges(info) };

	walk.unit = die_reader_unit(reader, false, index);
	if (!walk.unit)
		return;
	function->inlines = read_function(&walk, walk.unit->place.start + function->die);
	if (function->inlines)
		__atomic_add_fetch(&info->table_bytes,
				   sizeof(*function->inlines) +
					   function->inlines->node_count *
						   sizeof(struct dwarf_node) +
					   function->inlines->spans.count * 12,
				   __ATOMIC_RELAXED);
}

void dwarf_fill_function(struct dwarf_info *info, struct dwarf_reader *reader,
			 struct dwarf_unit *unit, uint64_t address)
{
	uint32_t id = spans_find(&unit->spans, address);
	struct dwarf_function *function = id == SPAN_NONE ? NULL : &unit->functions[id];

	if (!function || function->tried)
		return;
	function->tried = true;
	if (unit->split) {
		struct die_reader dies;

		die_reader_open(&dies, &unit->split->file, NULL);
		fill(info, &dies, &reader->tables, unit->split->unit, function);
		die_reader_close(&dies);
		return;
	}
	die_reader_trim(&reader->dies);
	fill(info, &reader->dies, &reader->tables, unit - info->units, function);
}

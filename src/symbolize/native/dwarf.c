/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "dwarf.h"

#include <dwarf.h>
#include <elf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "split.h"

/* What is read; location lists, types, macros and indexes are not needed. */
static const char *const wanted_sections[] = {
	".debug_info",	   ".debug_abbrev",   ".debug_str",	 ".debug_line",
	".debug_line_str", ".debug_ranges",   ".debug_rnglists", ".debug_addr",
	".debug_str_offsets",
};

/* Sections of which a reader of entries makes sure by itself that they are there. */
static bool is_piecewise(const char *name)
{
	return !strcmp(name, ".debug_str") || !strcmp(name, ".debug_rnglists") ||
	       !strcmp(name, ".debug_abbrev");
}

/* By its name, or by the one that it has in files of the older way of compression. */
static const struct image_section *find_section(const struct image *image, const char *name)
{
	const struct image_section *section = image_section_by_name(image, name);
	char older[32];

	if (section)
		return section;
	snprintf(older, sizeof(older), ".z%s", name + 1);
	return image_section_by_name(image, older);
}

/* Sections of a file as a small ELF; 0 and no base when it has no .debug_info. */
static int load_sections(struct image *image, struct memelf *elf, bool lazy,
			 struct spulse_error **err)
{
	struct memelf_part parts[ARRAY_LEN(wanted_sections)];
	size_t n = 0;

	*elf = (struct memelf){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(wanted_sections); i++) {
		const struct image_section *section =
			find_section(image, wanted_sections[i]);

		if (!section || section->type == SHT_NOBITS || !section->size) {
			if (!i)
				return 0;
			continue;
		}
		parts[n++] = (struct memelf_part){
			.name = wanted_sections[i],
			.image = image,
			.section = section,
			.lazy = lazy && (!i || !strcmp(wanted_sections[i], ".debug_line") ||
					 is_piecewise(wanted_sections[i])),
		};
	}
	return memelf_build(elf, image_machine(image), parts, n, err);
}

void dwarf_reader_open(struct dwarf_reader *reader, struct dwarf_info *info)
{
	*reader = (struct dwarf_reader){ .info = info };
	reader->rows.tables = &reader->tables;
	die_reader_open(&reader->dies, &info->file, info->alt.elf ? &info->alt : NULL);
}

static void touch_pieces(const struct memelf *elf)
{
	for (size_t i = 0; i < ARRAY_LEN(wanted_sections); i++)
		if (is_piecewise(wanted_sections[i]))
			memelf_touch(elf, wanted_sections[i], 0, UINT64_MAX);
}

void dwarf_info_expect(const struct dwarf_info *info, bool all)
{
	memelf_touch(&info->elf, ".debug_str", 0, UINT64_MAX);
	if (!all)
		return;
	memelf_expect_all(&info->elf, ".debug_info");
	touch_pieces(&info->elf);
}

Dwarf *dwarf_reader_libdw(struct dwarf_reader *reader)
{
	const struct memelf *elf = &reader->info->elf;

	if (reader->dwarf)
		return reader->dwarf;
	elf_version(EV_CURRENT);
	touch_pieces(elf);
	if (!reader->elf)
		reader->elf = elf_memory((char *)elf->base, elf->size);
	if (reader->elf)
		reader->dwarf = dwarf_begin_elf(reader->elf, DWARF_C_READ, NULL);
	return reader->dwarf;
}

/* What a reader made stays as long as the info. */
static void keep_tables(struct dwarf_reader *reader)
{
	struct dwarf_info *info = reader->info;

	if (!reader->tables.chunk)
		return;
	pthread_mutex_lock(&info->texts_lock);
	if (!vec_push(&info->tables, reader->tables))
		log_debug("out of memory: tables of debug information are never freed");
	pthread_mutex_unlock(&info->texts_lock);
}

void dwarf_reader_close(struct dwarf_reader *reader)
{
	keep_tables(reader);
	die_reader_close(&reader->dies);
	vec_free(&reader->rows.program);
	vec_free(&reader->rows.rows);
	vec_free(&reader->rows.sequences);
	dwarf_end(reader->dwarf);
	elf_end(reader->elf);
	*reader = (struct dwarf_reader){ 0 };
}

/* Addresses that sections or segments say are code: debug information of code that the linker
 * threw away points elsewhere. */
static void find_code_range(struct dwarf_info *info, const struct image *image)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	info->base = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		if (!(segments[i].flags & PF_X) ||
		    segments[i].memsz > UINT64_MAX - segments[i].vaddr)
			continue;
		info->base = MIN(info->base, segments[i].vaddr);
		info->code_end = MAX(info->code_end, segments[i].vaddr + segments[i].memsz);
	}
	if (info->base == UINT64_MAX) {
		info->base = 0;
		info->code_end = UINT32_MAX;
	}
	if (info->code_end - info->base > UINT32_MAX)
		info->code_end = info->base + UINT32_MAX;
}

/* A shared file that makes no sense costs only the names in it. */
static void open_alt(struct dwarf_info *info)
{
	if (info->alt_elf.base && !die_file_open(&info->alt, &info->alt_elf, false, 0))
		die_file_close(&info->alt);
}

int dwarf_info_open(struct image *program, struct image *debug, struct image *alt,
		    struct dwarf_info **info_out, struct spulse_error **err)
{
	struct dwarf_info *info = calloc(1, sizeof(*info));
	int r;

	*info_out = NULL;
	if (!info)
		return err_no_memory(err);
	pthread_mutex_init(&info->texts_lock, NULL);
	find_code_range(info, program);
	r = load_sections(debug, &info->elf, true, err);
	if (!r && info->elf.base && alt)
		r = load_sections(alt, &info->alt_elf, false, err);
	if (!r && info->elf.base) {
		open_alt(info);
		r = dwarf_index_units(info, debug, err);
	}
	if (r < 0 || !info->elf.base) {
		dwarf_info_free(info);
		return r;
	}
	*info_out = info;
	return 0;
}

bool dwarf_info_set_places(struct dwarf_info *info, const char *program_path, const char *sysroot,
			   struct image *package)
{
	const char *slash = strrchr(program_path, '/');

	info->package = image_ref(package);
	if (slash)
		info->folder = strndup(program_path, slash - program_path);
	if (sysroot && *sysroot)
		info->sysroot = strdup(sysroot);
	return (!slash || info->folder) && (!sysroot || !*sysroot || info->sysroot);
}

static void unit_release(struct dwarf_unit *unit)
{
	free(unit->functions);
	spans_release(&unit->spans);
	line_table_release(&unit->lines);
	split_free(unit->split);
}

void dwarf_info_free(struct dwarf_info *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < info->unit_count; i++)
		unit_release(&info->units[i]);
	free(info->units);
	spans_release(&info->unit_spans);
	spans_release(&info->scanned_spans);
	interner_release(&info->texts);
	for (size_t i = 0; i < info->tables.len; i++)
		arena_release(&info->tables.data[i]);
	vec_free(&info->tables);
	die_file_close(&info->file);
	die_file_close(&info->alt);
	memelf_release(&info->elf);
	memelf_release(&info->alt_elf);
	pthread_mutex_destroy(&info->texts_lock);
	image_unref(info->package);
	free(info->folder);
	free(info->sysroot);
	free(info);
}

struct span_list dwarf_code_ranges(const struct dwarf_info *info)
{
	return (struct span_list){ .low = info->base,
				   .high = info->code_end,
				   .max = 65536 + info->elf.size / 2 };
}

uint32_t dwarf_intern(struct dwarf_info *info, const char *text)
{
	uint32_t id;

	pthread_mutex_lock(&info->texts_lock);
	id = intern(&info->texts, text, strlen(text));
	pthread_mutex_unlock(&info->texts_lock);
	return id;
}

const char *dwarf_keep_text(struct dwarf_info *info, const char *text)
{
	const char *start = (const char *)info->file.info.data, *kept = NULL;
	uint32_t id;

	if (!text || text < start || text >= start + info->file.info.len)
		return text;
	pthread_mutex_lock(&info->texts_lock);
	id = intern(&info->texts, text, strlen(text));
	if (id != UINT32_MAX)
		kept = info->texts.strings.data[id].bytes;
	pthread_mutex_unlock(&info->texts_lock);
	return kept;
}

void dwarf_info_forget(struct dwarf_info *info)
{
	memelf_forget(&info->elf, ".debug_info");
}

/* ---- lookups ---- */

static const struct dwarf_row *find_row(const struct dwarf_unit *unit, uint32_t address)
{
	const struct dwarf_row *base = unit->lines.rows;
	size_t n = unit->lines.row_count;

	if (!n || address < base->address)
		return NULL;
	while (n > 1) {
		size_t half = n / 2;

		base += base[half].address <= address ? half : 0;
		n -= half;
	}
	return base->file == ROW_END ? NULL : base;
}

static const struct dwarf_function *find_function(const struct dwarf_unit *unit,
						 uint64_t address)
{
	uint32_t id = spans_find(&unit->spans, address);

	return id == SPAN_NONE || !unit->functions[id].inlines ? NULL : &unit->functions[id];
}

size_t dwarf_lookup(const struct dwarf_info *info, struct dwarf_unit *unit, uint64_t address,
		    struct dwarf_level levels[DWARF_LEVELS_MAX])
{
	const struct dwarf_row *row = find_row(unit, address - info->base);
	const struct dwarf_function *function = find_function(unit, address);
	const struct dwarf_inlines *inlines = function ? function->inlines : NULL;
	struct dwarf_level level = { 0 };
	uint32_t id;
	size_t n = 0;

	if (!row && !function)
		return 0;
	if (row) {
		level.file = line_table_path(&unit->lines, row->file);
		level.line = row->line;
		level.column = row->column;
	}
	id = inlines ? spans_find(&inlines->spans, address) : SPAN_NONE;
	while (id != SPAN_NONE && n + 2 < DWARF_LEVELS_MAX) {
		const struct dwarf_node *node = &inlines->nodes[id];

		level.name = node->name;
		level.declared_line = node->declared_line;
		level.declared_column = node->declared_column;
		levels[n++] = level;
		level = (struct dwarf_level){
			.file = line_table_path(&unit->lines, node->call_file),
			.line = node->call_line,
			.column = node->call_column,
		};
		id = node->parent;
	}
	if (function) {
		level.name = inlines->name;
		level.declared_line = inlines->declared_line;
		level.declared_column = inlines->declared_column;
		level.entry = info->base + function->entry;
	}
	levels[n++] = level;
	return n;
}

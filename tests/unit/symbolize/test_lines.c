/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Our reading of line programs against libdw's, over the programs and libraries that are here:
 * every address that libdw has a row for must give the same file, line and column. The places
 * that may have files with many units are those of this system; the test itself is always there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <dwarf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/native/lines.h"

enum { UNITS_MAX = 400, ROWS_WANTED = 100 };

struct tally {
	size_t units, rows, differing;
};

/* The row of an address in a sorted table; NULL where no code is. */
static const struct dwarf_row *row_at(const struct line_table *table, uint32_t address)
{
	const struct dwarf_row *found = NULL;

	for (size_t low = 0, high = table->row_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].address <= address) {
			found = &table->rows[middle];
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found && found->file != ROW_END ? found : NULL;
}

static bool same_file(struct line_table *table, const struct dwarf_row *row, const char *want)
{
	const char *path = line_table_path(table, row->file), *have = path ? path : "???";

	/* libdw leaves a relative folder relative; ours goes on from the unit's. */
	if (want[0] == '/')
		return !strcmp(have, want);
	return strlen(have) >= strlen(want) && !strcmp(have + strlen(have) - strlen(want), want);
}

static bool same_row(struct line_table *table, Dwarf_Line *line, uint64_t address)
{
	const struct dwarf_row *row = row_at(table, address - table->info->base);
	const char *file = dwarf_linesrc(line, NULL, NULL);
	int number = 0, column = 0;

	dwarf_lineno(line, &number);
	dwarf_linecol(line, &column);
	return row && (int)row->line == number && row->column == column && file &&
	       same_file(table, row, file);
}

static void compare_rows(struct tally *tally, struct line_table *table, Dwarf_Lines *lines,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr address, next;
		bool end;

		/* Of the rows at one address the last counts. */
		if (dwarf_lineaddr(line, &address) || dwarf_lineendsequence(line, &end) || end)
			continue;
		if (i + 1 < count && !dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &next) &&
		    next == address)
			continue;
		if (address < table->info->base || address >= table->info->code_end)
			continue;
		tally->rows++;
		if (!same_row(table, line, address))
			tally->differing++;
	}
}

static void compare_unit(struct tally *tally, struct dwarf_info *info, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	Dwarf_Lines *lines;
	struct row_buffer buffer = { 0 };
	struct line_table table;
	size_t count, line_len;
	const char *folder;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &offset))
		return;
	/* What libdw reads must be there. */
	if (memelf_find(&info->elf, ".debug_line", &line_len))
		memelf_touch(&info->elf, ".debug_line", 0, line_len);
	if (dwarf_getsrclines(die, &lines, &count))
		return;
	folder = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attribute));
	line_table_read(&table, info, offset, folder, &buffer);
	assert_false(table.failed);
	compare_rows(tally, &table, lines, count);
	tally->units++;
	line_table_release(&table);
	vec_free(&buffer.program);
	vec_free(&buffer.rows);
	vec_free(&buffer.sequences);
}

static void compare_file(struct tally *tally, const char *path)
{
	struct dwarf_info *info = NULL;
	struct image *image = NULL;
	struct dwarf_reader reader;

	if (image_open_path(path, &image, NULL) < 0)
		return;
	if (!dwarf_info_open(image, image, NULL, &info, NULL) && info) {
		dwarf_reader_open(&reader, info);
		assert_non_null(dwarf_reader_libdw(&reader));
		for (size_t i = 0; i < MIN(info->unit_count, (size_t)UNITS_MAX); i++) {
			Dwarf_Die die;

			memelf_touch(&info->elf, ".debug_info", info->units[i].start,
				     info->units[i].end - info->units[i].start);
			if (info->units[i].die && dwarf_offdie(reader.dwarf, info->units[i].die, &die))
				compare_unit(tally, info, &die);
		}
		dwarf_reader_close(&reader);
		dwarf_info_free(info);
	}
	image_unref(image);
}

static void check(const struct tally *tally, const char *what)
{
	print_message("%s: %zu units, %zu rows, %zu differ\n", what, tally->units, tally->rows,
		      tally->differing);
	/* Rows of overlaid code, which each reader orders in its own way. */
	assert_true(tally->differing * 1000 <= tally->rows);
}

static void rows_of_this_program(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	compare_file(&tally, "/proc/self/exe");
	assert_true(tally.rows >= ROWS_WANTED);
	assert_int_equal(tally.differing, 0);
	check(&tally, "this program");
}

/* Files of the folders of build IDs, which hold the debug information of system libraries. */
static void rows_of_system_libraries(void **state)
{
	static const char root[] = "/usr/lib/debug/.build-id";
	struct dirent *entry, *file;
	struct tally tally = { 0 };
	int files = 0;
	DIR *top = opendir(root);

	(void)state;
	if (!top)
		skip();
	while ((entry = readdir(top)) && files < 6) {
		char folder[512];
		DIR *sub;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), "%s/%s", root, entry->d_name);
		sub = opendir(folder);
		while (sub && (file = readdir(sub)) && files < 6) {
			char path[1024];
			struct stat st;

			snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
			if (file->d_name[0] == '.' || stat(path, &st) || st.st_size < 1 << 18)
				continue;
			compare_file(&tally, path);
			files++;
		}
		if (sub)
			closedir(sub);
	}
	closedir(top);
	if (!tally.rows)
		skip();
	check(&tally, "system libraries");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_this_program),
		cmocka_unit_test(rows_of_system_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

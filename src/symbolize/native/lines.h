/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_LINES_H
#define SPULSE_SYMBOLIZE_LINES_H

#include "dwarf.h"

/*
 * A unit's line program: its files and its rows. Decoded here and not by the library that reads
 * the rest: rows are most of what a unit has, and copying them twice takes longer than all else.
 * The table itself is in dwarf.h.
 */
/*
 * Reads the program at an offset of .debug_line; a broken one gives what came before. Of rows at
 * one address the last counts. `buffer` is only used meanwhile.
 */
void line_table_read(struct line_table *table, struct dwarf_info *info, uint64_t offset,
		     const char *unit_folder, struct row_buffer *buffer);
/* Sorts rows into the table; what line_table_read() ends with. */
void line_table_sort(struct line_table *table, const struct row_buffer *buffer);
/* Path of a file of the table; NULL without one. */
const char *line_table_path(struct line_table *table, uint64_t number);
void line_table_release(struct line_table *table);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_DWARF_H
#define SPULSE_SYMBOLIZE_DWARF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "../../image/image.h"
#include "memelf.h"
#include "spans.h"

/*
 * DWARF as flat tables. libdw reads: once over the units for their address ranges, then each
 * unit at its first hit, whose functions, inlined calls and line rows are copied into sorted
 * arrays. Lookups are binary searches and never touch libdw. Names point into the debug sections.
 */

/* A function or an inlined call. */
struct dwarf_node {
	const char *name; /* linkage name if there is one; NULL = none */
	uint32_t parent;  /* SPAN_NONE for a function */
	uint32_t call_file, call_line; /* where the parent calls it */
	uint32_t declared_line;
	uint32_t entry;	  /* of a function: its first address less the base */
	uint16_t call_column, declared_column;
};

struct dwarf_row {
	uint32_t address; /* less the base */
	uint32_t file, line;
	uint16_t column;
	bool end; /* no code from here on */
};

enum unit_state { UNIT_EMPTY = 0, UNIT_QUEUED, UNIT_READY, UNIT_FAILED };

struct dwarf_unit {
	uint64_t start, end; /* in .debug_info */
	uint64_t die;	     /* offset of its DIE; 0: it has no code */
	enum unit_state state;
	struct spans functions;
	struct dwarf_node *nodes;
	uint32_t node_count;
	struct dwarf_row *rows;
	uint32_t row_count;
	struct memelf *split; /* names of its functions lie here; NULL: in the file's sections */
};

struct dwarf_info {
	struct memelf elf, alt_elf;
	uint64_t base, code_end; /* all code lies in between; rows are relative to base */
	struct dwarf_unit *units; /* by start */
	size_t unit_count;
	struct spans unit_spans;    /* as .debug_aranges has them */
	struct spans scanned_spans; /* as the units have them; for what the former lack */
	bool scanned; /* the units themselves were asked what they cover */
	pthread_mutex_t files_lock;
	struct interner files;
	uint64_t table_bytes;
	struct image *package; /* of split DWARF, or NULL */
	char *folder;	       /* of the program, or NULL */
	char *sysroot;
	uint32_t splits_missing; /* units whose functions could not be found; atomic */
};

/* A libdw handle on a dwarf_info's bytes; one per thread, never shared. */
struct dwarf_reader {
	Elf *elf, *alt_elf;
	Dwarf *dwarf, *alt;
};

struct dwarf_level {
	const char *name; /* NULL: use the symbol table's */
	const char *file; /* NULL unknown */
	uint32_t line, column; /* 0 unknown */
	uint32_t declared_line, declared_column;
	uint64_t entry; /* start of the function, on the outermost level */
};

enum { DWARF_LEVELS_MAX = 256 };

/*
 * Reads the debug sections of `debug` (code ranges come from `program`); *info_out is NULL when
 * there are none. `alt` is the file shared by dwz, or NULL.
 */
int dwarf_info_open(struct image *program, struct image *debug, struct image *alt,
		    struct dwarf_info **info_out, struct spulse_error **err);
void dwarf_info_free(struct dwarf_info *info);
/* Where files of split DWARF may be. */
bool dwarf_info_set_places(struct dwarf_info *info, const char *program_path, const char *sysroot,
			   struct image *package);

bool dwarf_reader_open(struct dwarf_reader *reader, const struct dwarf_info *info);
void dwarf_reader_close(struct dwarf_reader *reader);

/* Makes sure that the unit around an offset of .debug_info was read. */
bool dwarf_touch_unit(const struct dwarf_info *info, uint64_t offset);
/* Lists the units of a file and what they cover; `image` is where the sections are from. */
int dwarf_index_units(struct dwarf_info *info, struct image *image, struct spulse_error **err);
/* The unit around an offset of .debug_info, or NULL. */
struct dwarf_unit *dwarf_unit_at(const struct dwarf_info *info, uint64_t offset);
/* The unit that covers an address, or NULL. Not while other threads fill units. */
struct dwarf_unit *dwarf_find_unit(struct dwarf_info *info, uint64_t address);
/* Fills an empty unit. Several threads may fill different units, each with its own reader. */
void dwarf_fill_unit(struct dwarf_info *info, struct dwarf_reader *reader,
		     struct dwarf_unit *unit);
/* Levels over an address in a filled unit, innermost first; returns their number. */
size_t dwarf_lookup(const struct dwarf_info *info, const struct dwarf_unit *unit,
		    uint64_t address, struct dwarf_level levels[DWARF_LEVELS_MAX]);

/* Number of a source file's path; UINT32_MAX when memory ran out. */
uint32_t dwarf_intern_file(struct dwarf_info *info, const char *path);
/* Takes a unit's rows over from its line table. */
struct line_table;
bool dwarf_fill_rows(struct dwarf_unit *unit, struct line_table *table);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_DWARF_H
#define SPULSE_SYMBOLIZE_DWARF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "../../image/image.h"
#include "die.h"
#include "memelf.h"
#include "spans.h"

/*
 * DWARF as flat tables: each unit's functions and line rows are copied into sorted arrays at its
 * first hit, and the calls inlined into a function at the function's. Lookups are binary searches.
 * Names point into the debug sections. libdw opens what is split off into other files.
 */

/* A call that was inlined. */
struct dwarf_node {
	const char *name; /* linkage name if there is one; NULL = none */
	uint32_t parent;  /* SPAN_NONE: the function */
	uint32_t call_file, call_line; /* where the parent calls it; of the line table's files */
	uint32_t declared_line;
	uint16_t call_column, declared_column;
};

/* What is read of a function when it is asked for. */
struct dwarf_inlines {
	const char *name;
	uint32_t declared_line;
	uint16_t declared_column;
	struct spans spans; /* of nodes */
	uint32_t node_count;
	struct dwarf_node nodes[];
};

struct dwarf_function {
	uint32_t die;	/* from the start of its unit */
	uint32_t entry; /* its first address less the base */
	bool tried;
	struct dwarf_inlines *inlines; /* NULL: not read yet, or not readable */
};

struct dwarf_row {
	uint32_t address; /* less the base */
	uint32_t line;
	uint16_t file; /* of the line table's; ROW_END: no code from here on */
	uint16_t column;
};

enum { ROW_NO_FILE = UINT16_MAX - 1, ROW_END = UINT16_MAX };

/* Memory that is used for one unit after another. */
struct row_buffer {
	VEC(uint8_t) program;
	VEC(struct dwarf_row) rows;
	VEC(uint32_t) sequences; /* index of each first row */
	bool unsorted;		 /* a sequence lies before an earlier one */
	struct arena *tables;	 /* where the sorted rows go; NULL: they are the table's own */
};

struct line_file {
	const char *name;
	uint32_t folder;
	uint32_t id; /* dwarf_intern()'s; UINT32_MAX: not asked yet */
};

/* A unit's line program: its files and rows. */
struct line_table {
	struct dwarf_info *info;
	const char *unit_folder; /* NULL without one */
	VEC(const char *) folders;
	VEC(struct line_file) files;
	struct arena names; /* of both, unless they lie in the sections */
	struct dwarf_row *rows; /* by address */
	uint32_t row_count;
	bool owns_rows;
	bool failed; /* memory ran out */
};

enum unit_state { UNIT_EMPTY = 0, UNIT_READY, UNIT_FAILED };

struct dwarf_unit {
	uint64_t start, end; /* in .debug_info */
	uint64_t die;	     /* offset of its DIE; 0: it has no code */
	enum unit_state state;
	struct spans spans; /* of functions */
	struct dwarf_function *functions;
	uint32_t function_count;
	struct line_table lines;
	struct split *split; /* what its functions are read from; NULL: the file itself */
};

struct dwarf_info {
	struct memelf elf, alt_elf;
	struct die_file file, alt; /* over those */
	uint64_t base, code_end; /* all code lies in between; rows are relative to base */
	struct dwarf_unit *units; /* by start */
	size_t unit_count;
	struct spans unit_spans;    /* as .debug_aranges has them */
	struct spans scanned_spans; /* as the units have them; for what the former lack */
	bool scanned; /* the units themselves were asked what they cover */
	pthread_mutex_t texts_lock; /* of the next two */
	struct interner texts; /* paths of source files, and names that lay in .debug_info */
	VEC(struct arena) tables; /* of readers that were closed */
	uint64_t table_bytes;
	struct image *package; /* of split DWARF, or NULL */
	char *folder;	       /* of the program, or NULL */
	char *sysroot;
	uint32_t splits_missing; /* units whose functions could not be found; atomic */
};

/*
 * What one thread has open of a dwarf_info; never shared. Its tables are not freed one by one, and
 * many small blocks of a thread's heap would cost a system call each.
 */
struct dwarf_reader {
	struct dwarf_info *info; /* NULL: not open */
	struct arena tables;
	struct die_reader dies;
	struct row_buffer rows;
	Elf *elf;
	Dwarf *dwarf; /* libdw's; see dwarf_reader_libdw() */
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
/* An empty list for ranges within the code of the file. */
struct span_list dwarf_code_ranges(const struct dwarf_info *info);
/* Where files of split DWARF may be. */
bool dwarf_info_set_places(struct dwarf_info *info, const char *program_path, const char *sysroot,
			   struct image *package);

void dwarf_reader_open(struct dwarf_reader *reader, struct dwarf_info *info);
void dwarf_reader_close(struct dwarf_reader *reader);
/* Opens libdw on the same bytes, if it is not yet; NULL when it cannot be. */
Dwarf *dwarf_reader_libdw(struct dwarf_reader *reader);

/* Lists the units of a file and what they cover; `image` is where the sections are from. */
int dwarf_index_units(struct dwarf_info *info, struct image *image, struct spulse_error **err);
/* The unit that covers an address, or NULL. Not while other threads fill units. */
struct dwarf_unit *dwarf_find_unit(struct dwarf_info *info, uint64_t address);
/* Fills an empty unit. Several threads may fill different units, each with its own reader. */
void dwarf_fill_unit(struct dwarf_info *info, struct dwarf_reader *reader,
		     struct dwarf_unit *unit);
/* Reads the calls inlined into the function at an address of a filled unit; once. */
void dwarf_fill_function(struct dwarf_info *info, struct dwarf_reader *reader,
			 struct dwarf_unit *unit, uint64_t address);
/* Levels over an address whose function was filled, innermost first; returns their number. */
size_t dwarf_lookup(const struct dwarf_info *info, struct dwarf_unit *unit, uint64_t address,
		    struct dwarf_level levels[DWARF_LEVELS_MAX]);
/* Says that many units will be filled, or nearly all: larger reads take less then. */
void dwarf_info_expect(const struct dwarf_info *info, bool all);
/* Gives back what was read of the units; lookups do not need it. Not while threads fill units. */
void dwarf_info_forget(struct dwarf_info *info);

/* Number of a text that stays as long as the info; UINT32_MAX when memory ran out. */
uint32_t dwarf_intern(struct dwarf_info *info, const char *text);
/* A text in .debug_info, which may be forgotten, as one that stays; others as they are. */
const char *dwarf_keep_text(struct dwarf_info *info, const char *text);

#endif

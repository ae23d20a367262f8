/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_DIE_H
#define SPULSE_SYMBOLIZE_DIE_H

#include "abbrevs.h"
#include "memelf.h"

/*
 * Debug entries (DIEs), versions 2 to 5: what a symbolizer asks of them and nothing else. A
 * general reader looks up every attribute of every entry; this one passes over most entries with
 * one addition and takes the few attributes that matter in one go.
 */
struct die_bytes {
	const uint8_t *data;
	size_t len;
	const struct memelf *elf;
	struct memelf_lazy *lazy; /* NULL: all of it is there */
};

/* A unit in .debug_info. */
struct die_place {
	uint64_t start, end, die; /* die 0: one without code, of types */
};

/* Sections of one file. Shared by readers, never changed. */
struct die_file {
	const struct memelf *elf;
	struct die_bytes info, abbrev, str, line_str, str_offsets, addr, ranges, rnglists;
	struct die_place *units; /* by start */
	size_t unit_count;
	bool split;	     /* the functions of one unit of another file: */
	uint64_t split_base; /* the address that its ranges are relative to */
};

/* What is known of a unit from its header and its first entry. */
struct die_unit {
	const struct die_file *file;
	struct die_place place;
	const struct abbrevs *abbrevs;
	struct form_sizes sizes;
	uint16_t version, language;
	bool skeleton; /* its functions are in another file */
	uint64_t str_offsets, addr, rnglists; /* where its parts of those sections start */
	uint64_t base; /* address that ranges are relative to */
	uint64_t lines; /* in .debug_line; UINT64_MAX: none */
	const char *folder; /* of the compilation, or NULL */
};

enum die_flag {
	DIE_LOW = 1 << 0,
	DIE_HIGH = 1 << 1,
	DIE_RANGES = 1 << 2,
	DIE_ORIGIN = 1 << 3,
};

struct die {
	uint16_t tag;
	bool children;
	uint8_t flags;		/* enum die_flag */
	bool origin_alt;	/* in the file shared by dwz */
	const uint8_t *sibling; /* NULL: not said */
	uint64_t low, high, ranges;
	uint64_t origin; /* in .debug_info: what this one continues or is an instance of */
	const char *name, *linkage_name, *folder;
	uint32_t declared_line, declared_column;
	uint32_t call_file, call_line, call_column;
};

/* Units and shapes that one thread has read. */
struct die_reader {
	const struct die_file *file, *alt; /* alt may be NULL */
	struct u64map units, abbrevs;
};

/* False when bytes cannot be read or memory ran out. Nothing of `elf` is copied. */
bool die_file_open(struct die_file *file, const struct memelf *elf, bool split,
		   uint64_t split_base);
void die_file_close(struct die_file *file);
/* Index of the unit around an offset of .debug_info; SIZE_MAX without one. */
size_t die_file_find(const struct die_file *file, uint64_t offset);

/*
 * A unit's first entry, reading no more of the unit and of its shapes than that takes: the unit
 * serves die_each_range() only. Reads at most `budget` bytes of shapes, and takes them from it: all
 * units of a file may share one long table.
 */
bool die_file_first(const struct die_file *file, size_t index, struct die_unit *unit,
		    uint64_t *budget, struct die *die);

void die_reader_open(struct die_reader *reader, const struct die_file *file,
		     const struct die_file *alt);
void die_reader_close(struct die_reader *reader);
/* Forgets units when there are many; those that were given out are gone then. */
void die_reader_trim(struct die_reader *reader);
/* NULL when it cannot be used. */
const struct die_unit *die_reader_unit(struct die_reader *reader, bool alt, size_t index);

/* A cursor over the entries of a unit from an offset of .debug_info on. */
struct cursor die_cursor(const struct die_unit *unit, uint64_t offset);
/* The next entry's shape; NULL at the end of a list of siblings, or when bytes make no sense. */
const struct abbrev *die_next(const struct die_unit *unit, struct cursor *c);
/* Takes the attributes of an entry, whose shape was taken already; no texts without a reader. */
void die_read(const struct die_unit *unit, const struct die_reader *reader,
	      const struct abbrev *abbrev, struct cursor *c, struct die *die);
/* Passes over the attributes, and over all children. */
void die_skip(const struct die_unit *unit, const struct abbrev *abbrev, struct cursor *c);
/* Passes over children up to the end of their list. */
void die_skip_children(const struct die_unit *unit, struct cursor *c);
/* Whether entries of this kind stand for a part of what they are in, as blocks do. */
bool die_is_block(uint16_t tag);
/* Calls fn for each range of addresses until it returns false. */
void die_each_range(const struct die_unit *unit, const struct die *die,
		    bool (*fn)(void *data, uint64_t start, uint64_t end), void *data);

#endif

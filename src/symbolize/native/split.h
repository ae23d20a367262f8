/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_SPLIT_H
#define SPULSE_SYMBOLIZE_SPLIT_H

#include "dwarf.h"

/*
 * Split DWARF: a skeleton unit names another file (.dwo), or a part of a package (.dwp), that has
 * its functions. That part is put into a small ELF of its own in which everything is where a
 * reader expects it: the skeleton's addresses from their base on, and only the strings that it
 * refers to.
 */
struct split {
	struct memelf elf;
	struct die_file file; /* over it */
	size_t unit;	      /* of the file */
};

/* What a unit's own folder and file name may lead to. */
struct split_places {
	const char *folder; /* of the program, or NULL */
	struct image *package; /* or NULL */
	const char *sysroot;
};

/*
 * Opens what the skeleton at an offset of .debug_info stands for; NULL when that is not possible,
 * and *why is static text then.
 */
struct split *split_open(const struct dwarf_info *info, struct dwarf_reader *reader,
			 uint64_t skeleton, const struct split_places *places, const char **why);
void split_free(struct split *split);

/* dwpindex.c: the parts of a package that belong to a unit, by its id. */
enum split_part { SPLIT_INFO, SPLIT_ABBREV, SPLIT_STR_OFFSETS, SPLIT_RNGLISTS, SPLIT_PARTS };
struct split_slice {
	uint64_t offset, size;
};
bool dwp_find(const uint8_t *index, size_t len, uint64_t id,
	      struct split_slice slices[SPLIT_PARTS]);

#endif

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
	struct dwarf_reader reader;
	Dwarf_Die die; /* of the unit */
	uint64_t base; /* address that ranges are relative to */
	uint16_t version;
};

/* What a unit's own folder and file name may lead to. */
struct split_places {
	const char *folder; /* of the program, or NULL */
	struct image *package; /* or NULL */
	const char *sysroot;
};

/* Whether an entry of a unit says that its functions are elsewhere. */
bool split_is_skeleton(Dwarf_Die *die);
/* Opens what a skeleton stands for; *why is static text when that is not possible. */
bool split_open(struct split *split, const struct dwarf_info *info, Dwarf_Die *skeleton,
		const struct split_places *places, const char **why);
void split_release(struct split *split);

/* Walks the address ranges of an entry of a split unit that has a list of them. */
struct split_ranges {
	const struct split *split;
	const uint8_t *at, *end;
	uint64_t base;
	const uint8_t *addresses;
	size_t address_count;
};
/* False when the entry has no list. */
bool split_ranges_start(struct split_ranges *ranges, const struct split *split, Dwarf_Die *die);
bool split_ranges_next(struct split_ranges *ranges, uint64_t *start, uint64_t *end);

/* dwpindex.c: the parts of a package that belong to a unit, by its id. */
enum split_part { SPLIT_INFO, SPLIT_ABBREV, SPLIT_STR_OFFSETS, SPLIT_RNGLISTS, SPLIT_PARTS };
struct split_slice {
	uint64_t offset, size;
};
bool dwp_find(const uint8_t *index, size_t len, uint64_t id,
	      struct split_slice slices[SPLIT_PARTS]);

#endif

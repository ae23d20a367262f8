/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_SYMTAB_H
#define SPULSE_SYMBOLIZE_SYMTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "../../image/image.h"
#include "spans.h"

/*
 * Functions of an image by address: of aliases the best one, sized functions exactly as long as
 * they say, unsized labels up to the next symbol of their section, PLT entries as "name@plt".
 */
struct symtab_entry {
	uint64_t start;
	const char *name; /* linker name, a version cut off; lives as long as the table */
	const char *file; /* source file of a local symbol, without its folder; or NULL */
	bool sized;
};

struct symtab {
	struct spans spans;
	struct symtab_entry *entries;
	size_t count;
	struct arena names; /* those that are not in a string table */
};

/*
 * Reads the tables of up to `count` images of one program (the program, its debug file, its mini
 * debug information). A table that cannot be read is left out; false when memory ran out.
 */
bool symtab_build(struct symtab *symtab, struct image *const *images, size_t count);
const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t address);
void symtab_release(struct symtab *symtab);

#endif

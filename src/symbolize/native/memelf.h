/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_MEMELF_H
#define SPULSE_SYMBOLIZE_MEMELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../image/image.h"

/*
 * An ELF file made in memory of chosen sections of a real one: the DWARF reader works on bytes
 * that nobody can change or truncate, gets every compression undone, and sees nothing it could
 * follow to another file.
 */
struct memelf {
	uint8_t *base; /* anonymous memory; NULL = empty */
	size_t size;
};

/* A section to put in: either of an image, or bytes. */
struct memelf_part {
	const char *name;
	struct image *image;
	const struct image_section *section;
	const uint8_t *bytes; /* when image is NULL */
	size_t len;
};

/* IO (the file became shorter), CORRUPT (UNSUPPORTED: sizes that no file has), NO_MEMORY. */
int memelf_build(struct memelf *elf, uint16_t machine, const struct memelf_part *parts,
		 size_t count, struct spulse_error **err);
/* A section's content in a built file; NULL when absent. */
const uint8_t *memelf_find(const struct memelf *elf, const char *name, size_t *len);
void memelf_release(struct memelf *elf);

#endif

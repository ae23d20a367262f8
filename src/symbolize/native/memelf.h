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
	struct memelf_lazy *lazy; /* sections that are read piece by piece */
	size_t lazy_count;
};

/* A section to put in: either of an image, or bytes. */
struct memelf_part {
	const char *name;
	struct image *image;
	const struct image_section *section;
	const uint8_t *bytes; /* when image is NULL */
	size_t len;
	bool lazy; /* read by memelf_touch(), where the section is stored plainly */
};

/*
 * IO (the file became shorter), UNSUPPORTED (sizes that no file has), NO_MEMORY. The images of lazy
 * parts must live as long as the result.
 */
int memelf_build(struct memelf *elf, uint16_t machine, const struct memelf_part *parts,
		 size_t count, struct spulse_error **err);
/* A section's content in a built file; NULL when absent. */
const uint8_t *memelf_find(const struct memelf *elf, const char *name, size_t *len);
/*
 * Makes sure that a range of a section is there, as far as the section goes. Any thread may call
 * it. False when it could not be read: those bytes are zero.
 */
bool memelf_touch(const struct memelf *elf, const char *name, uint64_t offset, uint64_t len);
/* The same for a section found once: NULL when it is read already, or absent. */
struct memelf_lazy *memelf_lazy_section(const struct memelf *elf, const char *name);
/* Whether all of it is there. */
bool memelf_section_complete(const struct memelf_lazy *section);
bool memelf_touch_section(const struct memelf *elf, struct memelf_lazy *section, uint64_t offset,
			  uint64_t len);
/* Copies bytes of a section and keeps nothing. False when they cannot be read. */
bool memelf_peek(const struct memelf *elf, const char *name, uint64_t offset, void *to, size_t len);
/*
 * Says that most of a lazy section will be touched: the kernel may then use large pages, which
 * cost a fraction of as many small ones.
 */
void memelf_expect_all(const struct memelf *elf, const char *name);
/* Gives back the memory of a lazy section, which is read again where it is touched again. */
void memelf_forget(const struct memelf *elf, const char *name);
void memelf_release(struct memelf *elf);

#endif

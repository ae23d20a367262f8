/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_ELF_BUILDER_H
#define TESTS_LIB_ELF_BUILDER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes ELF files for tests: `struct elf_builder b; elf_builder_init(&b, ET_DYN, EM_X86_64);`, add
 * sections and segments, then elf_builder_finish() (bytes to free) or elf_builder_write() (a file).
 * Running out of memory aborts. Section 0 exists from the start; .shstrtab comes last by itself.
 */
struct elf_builder_section {
	const char *name;
	uint32_t type; /* 0: SHT_PROGBITS */
	uint64_t flags, addr, align, entsize;
	uint32_t link, info;
	const void *data; /* copied */
	size_t len;
	uint64_t offset; /* 0: behind what there is */
	uint64_t size;	 /* of SHT_NOBITS, or a lie */
};

struct elf_builder_segment {
	uint32_t type, flags; /* type 0: PT_LOAD */
	uint64_t offset, vaddr, filesz, memsz, align;
	unsigned int section; /* not 0: range and address of this section */
};

struct elf_builder_symbol {
	const char *name;
	uint64_t value, size;
	unsigned char type, bind, visibility;
	uint16_t shndx;
};

struct elf_builder_stored {
	struct elf_builder_section spec;
	char *name;
	uint8_t *data;
};

struct elf_builder {
	Elf64_Ehdr header; /* may be changed before finishing */
	struct elf_builder_stored *sections;
	size_t section_count;
	struct elf_builder_segment *segments;
	size_t segment_count;
	bool extended;	  /* counts go to section 0 */
	bool no_sections; /* section headers are left out */
};

void elf_builder_init(struct elf_builder *b, uint16_t type, uint16_t machine);
/* Index of the new section. */
unsigned int elf_builder_section(struct elf_builder *b, const struct elf_builder_section *spec);
void elf_builder_segment(struct elf_builder *b, const struct elf_builder_segment *spec);
/* .symtab and .strtab, or .dynsym and .dynstr. */
unsigned int elf_builder_symbols(struct elf_builder *b, bool dynamic,
				 const struct elf_builder_symbol *symbols, size_t count);
/* .note.gnu.build-id; returns its section. */
unsigned int elf_builder_build_id(struct elf_builder *b, const void *id, size_t len);
/* The file; the builder is released. */
uint8_t *elf_builder_finish(struct elf_builder *b, size_t *len);
/* As finish, written to a path. False with errno when that failed. */
bool elf_builder_write(struct elf_builder *b, const char *path);
/* Compressed content of a section: an Elf64_Chdr and the packed bytes; to be freed. */
uint8_t *elf_builder_zlib(const void *data, size_t len, size_t *packed_len);
/* Writes bytes to a new file of mode 0644. */
bool write_test_file(const char *path, const void *bytes, size_t len);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Headers, tables and notes of a 64-bit little-endian ELF file, read with pread(). Program
 * headers must be sound, for they say what the kernel maps. A broken section table only costs the
 * sections: programs run without one.
 */
#include "elfimage.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#define NOTE_ALIGN(n, align) (((n) + (align) - 1) & ~((uint64_t)(align) - 1))

static int malformed(const struct image *image, struct spulse_error **err, uint64_t offset,
		     const char *what)
{
	return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, image->path,
			"%s: malformed ELF file at offset %#llx: %s", image->path,
			(unsigned long long)offset, what);
}

static int unsupported(const struct image *image, struct spulse_error **err, const char *what)
{
	return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, image->path, "%s: %s", image->path, what);
}

/* Whether [offset, offset + len) lies in the file. */
static bool in_file(const struct image *image, uint64_t offset, uint64_t len)
{
	uint64_t end;

	return !add_overflows(offset, len, &end) && end <= image->size;
}

static int read_header(struct image *image, Elf64_Ehdr *header, struct spulse_error **err)
{
	int r;

	if (image->size < sizeof(*header))
		return unsupported(image, err, "not an ELF file: too short");
	if ((r = image_read(image, 0, header, sizeof(*header), err)) < 0)
		return r;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return unsupported(image, err, "not an ELF file");
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return unsupported(image, err, "not a 64-bit little-endian ELF file");
	image->machine = header->e_machine;
	image->type = header->e_type;
	image->entry = header->e_entry;
	return 0;
}

/* Section 0 holds numbers that do not fit the header. */
static bool read_first_section(struct image *image, const Elf64_Ehdr *header, Elf64_Shdr *first)
{
	return header->e_shoff && header->e_shentsize == sizeof(*first) &&
	       image_read(image, header->e_shoff, first, sizeof(*first), NULL) == 0;
}

static int add_segment(struct image *image, const Elf64_Phdr *ph, struct spulse_error **err)
{
	struct image_segment segment = {
		.offset = ph->p_offset, .vaddr = ph->p_vaddr, .filesz = ph->p_filesz,
		.memsz = ph->p_memsz, .flags = ph->p_flags,
	};

	if (ph->p_type == PT_LOAD) {
		if (!vec_push(&image->segments, segment))
			return err_no_memory(err);
	} else if (ph->p_type == PT_GNU_EH_FRAME && !image->has_eh_frame_hdr) {
		image->eh_frame_hdr = segment;
		image->has_eh_frame_hdr = true;
	} else if (ph->p_type == PT_DYNAMIC && !image->has_dynamic) {
		image->dynamic = segment;
		image->has_dynamic = true;
	}
	return 0;
}

/* Looks for the GNU build ID in notes; damaged ones end the search. */
static void scan_notes(struct image *image, const uint8_t *notes, uint64_t len, uint64_t align)
{
	uint64_t at = 0;

	align = align == 8 ? 8 : 4;
	while (len - at >= sizeof(Elf64_Nhdr)) {
		uint64_t namesz = load_u32(notes + at), descsz = load_u32(notes + at + 4);
		uint64_t name = at + sizeof(Elf64_Nhdr);
		uint64_t desc = NOTE_ALIGN(name + namesz, align);

		if (desc > len || descsz > len - desc)
			return;
		if (load_u32(notes + at + 8) == NT_GNU_BUILD_ID && namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && descsz > 0 &&
		    descsz <= ELF_MAX_BUILD_ID) {
			memcpy(image->build_id, notes + desc, descsz);
			image->build_id_len = descsz;
			return;
		}
		at = NOTE_ALIGN(desc + descsz, align);
		if (at > len)
			return;
	}
}

static int read_notes(struct image *image, uint64_t offset, uint64_t len, uint64_t align,
		      struct spulse_error **err)
{
	_cleanup_free_ uint8_t *notes = NULL;

	if (image->build_id_len || len == 0 || len > ELF_MAX_NOTES || !in_file(image, offset, len))
		return 0;
	notes = malloc(len);
	if (!notes)
		return err_no_memory(err);
	if (image_read(image, offset, notes, len, NULL) == 0)
		scan_notes(image, notes, len, align);
	return 0;
}

static int read_segments(struct image *image, const Elf64_Ehdr *header, struct spulse_error **err)
{
	_cleanup_free_ Elf64_Phdr *table = NULL;
	uint64_t count = header->e_phnum;
	Elf64_Shdr first;
	int r;

	if (count == PN_XNUM && read_first_section(image, header, &first))
		count = first.sh_info;
	if (count == 0 || header->e_phoff == 0)
		return 0;
	if (header->e_phentsize != sizeof(*table))
		return malformed(image, err, offsetof(Elf64_Ehdr, e_phentsize),
				 "program headers of an unknown size");
	if (count > ELF_MAX_SEGMENTS)
		return malformed(image, err, header->e_phoff, "too many program headers");
	if (!in_file(image, header->e_phoff, count * sizeof(*table)))
		return malformed(image, err, header->e_phoff,
				 "program headers lie outside the file");
	table = malloc(count * sizeof(*table));
	if (!table)
		return err_no_memory(err);
	if ((r = image_read(image, header->e_phoff, table, count * sizeof(*table), err)) < 0)
		return r;
	for (uint64_t i = 0; i < count; i++) {
		if ((r = add_segment(image, &table[i], err)) < 0)
			return r;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (table[i].p_type == PT_NOTE &&
		    (r = read_notes(image, table[i].p_offset, table[i].p_filesz, table[i].p_align,
				    err)) < 0)
			return r;
	}
	return 0;
}

/* The string table of section names; without it every name is "". */
static int read_section_names(struct image *image, const Elf64_Shdr *names,
			      struct spulse_error **err)
{
	uint64_t len = names->sh_size;

	if (names->sh_type == SHT_NOBITS || len > ELF_MAX_NAMES ||
	    !in_file(image, names->sh_offset, len))
		len = 0;
	image->section_names = malloc(len + 1);
	if (!image->section_names)
		return err_no_memory(err);
	if (len && image_read(image, names->sh_offset, image->section_names, len, NULL) < 0)
		len = 0;
	image->section_names[len] = '\0';
	image->section_names_len = len;
	return 0;
}

static int take_sections(struct image *image, const Elf64_Shdr *table, size_t count,
			 struct spulse_error **err)
{
	int r;

	image->sections = calloc(count, sizeof(*image->sections));
	image->contents = calloc(count, sizeof(*image->contents));
	if (!image->sections || !image->contents)
		return err_no_memory(err);
	image->section_count = count;
	for (size_t i = 0; i < count; i++) {
		const Elf64_Shdr *sh = &table[i];

		image->sections[i] = (struct image_section){
			.name = image->section_names + MIN(sh->sh_name, image->section_names_len),
			.type = sh->sh_type, .flags = sh->sh_flags, .addr = sh->sh_addr,
			.offset = sh->sh_offset, .size = sh->sh_size, .entsize = sh->sh_entsize,
			.align = sh->sh_addralign, .link = sh->sh_link, .info = sh->sh_info,
		};
		if (sh->sh_type == SHT_NOTE &&
		    (r = read_notes(image, sh->sh_offset, sh->sh_size, sh->sh_addralign, err)) < 0)
			return r;
	}
	return 0;
}

static int read_sections(struct image *image, const Elf64_Ehdr *header, struct spulse_error **err)
{
	_cleanup_free_ Elf64_Shdr *table = NULL;
	uint64_t count = header->e_shnum, names = header->e_shstrndx;
	Elf64_Shdr first;
	int r;

	if (!read_first_section(image, header, &first))
		return 0;
	if (count == 0)
		count = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (count == 0 || count > ELF_MAX_SECTIONS ||
	    !in_file(image, header->e_shoff, count * sizeof(*table))) {
		log_debug("%s: section headers ignored: %llu of them at %#llx do not fit the file",
			  image->path, (unsigned long long)count,
			  (unsigned long long)header->e_shoff);
		return 0;
	}
	table = malloc(count * sizeof(*table));
	if (!table)
		return err_no_memory(err);
	if ((r = image_read(image, header->e_shoff, table, count * sizeof(*table), err)) < 0 ||
	    (r = read_section_names(image, names < count ? &table[names] : &(Elf64_Shdr){0},
				    err)) < 0)
		return r;
	return take_sections(image, table, count, err);
}

int elf_parse(struct image *image, struct spulse_error **err)
{
	Elf64_Ehdr header;
	int r;

	if ((r = read_header(image, &header, err)) < 0 ||
	    (r = read_segments(image, &header, err)) < 0)
		return r;
	return read_sections(image, &header, err);
}

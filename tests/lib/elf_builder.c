/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "elf_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void *copy_of(const void *bytes, size_t len)
{
	uint8_t *copy = must(malloc(len + 1));

	if (len)
		memcpy(copy, bytes, len);
	copy[len] = 0;
	return copy;
}

void elf_builder_init(struct elf_builder *b, uint16_t type, uint16_t machine)
{
	memset(b, 0, sizeof(*b));
	memcpy(b->header.e_ident, ELFMAG, SELFMAG);
	b->header.e_ident[EI_CLASS] = ELFCLASS64;
	b->header.e_ident[EI_DATA] = ELFDATA2LSB;
	b->header.e_ident[EI_VERSION] = EV_CURRENT;
	b->header.e_type = type;
	b->header.e_machine = machine;
	b->header.e_version = EV_CURRENT;
	b->header.e_ehsize = sizeof(Elf64_Ehdr);
	b->header.e_phentsize = sizeof(Elf64_Phdr);
	b->header.e_shentsize = sizeof(Elf64_Shdr);
	elf_builder_section(b, &(struct elf_builder_section){.name = ""});
	b->sections[0].spec.type = SHT_NULL;
}

unsigned int elf_builder_section(struct elf_builder *b, const struct elf_builder_section *spec)
{
	struct elf_builder_stored *stored;

	b->sections = must(realloc(b->sections, (b->section_count + 1) * sizeof(*b->sections)));
	stored = &b->sections[b->section_count];
	stored->spec = *spec;
	stored->name = copy_of(spec->name, strlen(spec->name));
	stored->data = copy_of(spec->data, spec->len);
	if (stored->spec.type == 0)
		stored->spec.type = SHT_PROGBITS;
	if (stored->spec.align == 0)
		stored->spec.align = 1;
	return b->section_count++;
}

void elf_builder_segment(struct elf_builder *b, const struct elf_builder_segment *spec)
{
	b->segments = must(realloc(b->segments, (b->segment_count + 1) * sizeof(*b->segments)));
	b->segments[b->segment_count] = *spec;
	if (spec->type == 0)
		b->segments[b->segment_count].type = PT_LOAD;
	b->segment_count++;
}

unsigned int elf_builder_symbols(struct elf_builder *b, bool dynamic,
				 const struct elf_builder_symbol *symbols, size_t count)
{
	Elf64_Sym *table = must(calloc(count + 1, sizeof(*table)));
	char *strings = must(calloc(1, 1));
	size_t len = 1;
	unsigned int link, index;

	for (size_t i = 0; i < count; i++) {
		const struct elf_builder_symbol *s = &symbols[i];
		size_t n = strlen(s->name) + 1;

		strings = must(realloc(strings, len + n));
		memcpy(strings + len, s->name, n);
		table[i + 1] = (Elf64_Sym){
			.st_name = len, .st_value = s->value, .st_size = s->size,
			.st_info = ELF64_ST_INFO(s->bind, s->type), .st_other = s->visibility,
			.st_shndx = s->shndx,
		};
		len += n;
	}
	link = elf_builder_section(b, &(struct elf_builder_section){
		.name = dynamic ? ".dynstr" : ".strtab", .type = SHT_STRTAB, .data = strings,
		.len = len});
	index = elf_builder_section(b, &(struct elf_builder_section){
		.name = dynamic ? ".dynsym" : ".symtab", .type = dynamic ? SHT_DYNSYM : SHT_SYMTAB,
		.data = table, .len = (count + 1) * sizeof(*table), .link = link, .align = 8,
		.entsize = sizeof(*table), .info = 1});
	free(table);
	free(strings);
	return index;
}

unsigned int elf_builder_build_id(struct elf_builder *b, const void *id, size_t len)
{
	uint8_t note[16 + 256] = {0};
	Elf64_Nhdr head = {.n_namesz = 4, .n_descsz = len, .n_type = NT_GNU_BUILD_ID};

	memcpy(note, &head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memcpy(note + 16, id, len);
	return elf_builder_section(b, &(struct elf_builder_section){
		.name = ".note.gnu.build-id", .type = SHT_NOTE, .flags = SHF_ALLOC, .data = note,
		.len = 16 + ((len + 3) & ~(size_t)3), .align = 4});
}

struct output {
	uint8_t *bytes;
	size_t len;
};

/* Puts bytes at an offset; the file grows with zeros as needed. */
static void put(struct output *out, uint64_t offset, const void *bytes, size_t len)
{
	if (offset + len > out->len) {
		out->bytes = must(realloc(out->bytes, offset + len));
		memset(out->bytes + out->len, 0, offset + len - out->len);
		out->len = offset + len;
	}
	if (len)
		memcpy(out->bytes + offset, bytes, len);
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) / align * align;
}

static Elf64_Shdr *put_sections(struct elf_builder *b, struct output *out)
{
	Elf64_Shdr *headers = must(calloc(b->section_count, sizeof(*headers)));
	size_t name = 0;

	for (size_t i = 0; i < b->section_count; i++) {
		const struct elf_builder_section *s = &b->sections[i].spec;
		bool held = s->type != SHT_NOBITS && s->type != SHT_NULL;

		headers[i] = (Elf64_Shdr){
			.sh_name = name, .sh_type = s->type, .sh_flags = s->flags,
			.sh_addr = s->addr, .sh_size = s->size ? s->size : s->len,
			.sh_link = s->link, .sh_info = s->info, .sh_addralign = s->align,
			.sh_entsize = s->entsize,
		};
		if (i > 0)
			headers[i].sh_offset = s->offset ? s->offset :
							   align_up(out->len, s->align);
		if (held)
			put(out, headers[i].sh_offset, b->sections[i].data, s->len);
		name += strlen(b->sections[i].name) + 1;
	}
	return headers;
}

static void put_segments(struct elf_builder *b, struct output *out, const Elf64_Shdr *sections)
{
	for (size_t i = 0; i < b->segment_count; i++) {
		const struct elf_builder_segment *s = &b->segments[i];
		Elf64_Phdr header = {
			.p_type = s->type, .p_flags = s->flags, .p_offset = s->offset,
			.p_vaddr = s->vaddr, .p_paddr = s->vaddr, .p_filesz = s->filesz,
			.p_memsz = s->memsz ? s->memsz : s->filesz, .p_align = s->align,
		};

		if (s->section) {
			header.p_offset = sections[s->section].sh_offset;
			header.p_vaddr = header.p_paddr = sections[s->section].sh_addr;
			header.p_filesz = header.p_memsz = sections[s->section].sh_size;
		}
		put(out, sizeof(Elf64_Ehdr) + i * sizeof(header), &header, sizeof(header));
	}
}

static void set_counts(struct elf_builder *b, Elf64_Shdr *sections)
{
	b->header.e_phnum = b->segment_count;
	b->header.e_phoff = b->segment_count ? sizeof(Elf64_Ehdr) : 0;
	if (b->no_sections)
		return;
	b->header.e_shnum = b->section_count;
	b->header.e_shstrndx = b->section_count - 1;
	if (!b->extended)
		return;
	sections[0].sh_size = b->section_count;
	sections[0].sh_link = b->section_count - 1;
	sections[0].sh_info = b->segment_count;
	b->header.e_shnum = 0;
	b->header.e_shstrndx = SHN_XINDEX;
	b->header.e_phnum = PN_XNUM;
}

static void add_names(struct elf_builder *b)
{
	struct output names = {0};
	unsigned int index = elf_builder_section(b, &(struct elf_builder_section){
		.name = ".shstrtab", .type = SHT_STRTAB});

	for (size_t i = 0; i < b->section_count; i++)
		put(&names, names.len, b->sections[i].name, strlen(b->sections[i].name) + 1);
	free(b->sections[index].data);
	b->sections[index].data = names.bytes;
	b->sections[index].spec.len = names.len;
}

uint8_t *elf_builder_finish(struct elf_builder *b, size_t *len)
{
	struct output out = {0};
	Elf64_Shdr *sections;
	uint64_t table;

	if (!b->no_sections)
		add_names(b);
	put(&out, sizeof(Elf64_Ehdr) + b->segment_count * sizeof(Elf64_Phdr), "", 0);
	sections = put_sections(b, &out);
	put_segments(b, &out, sections);
	set_counts(b, sections);
	if (!b->no_sections) {
		table = align_up(out.len, 8);
		b->header.e_shoff = table;
		put(&out, table, sections, b->section_count * sizeof(*sections));
	}
	put(&out, 0, &b->header, sizeof(b->header));
	for (size_t i = 0; i < b->section_count; i++) {
		free(b->sections[i].name);
		free(b->sections[i].data);
	}
	free(b->sections);
	free(b->segments);
	free(sections);
	*len = out.len;
	return out.bytes;
}

bool write_test_file(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "we");
	bool ok = f && fwrite(bytes, 1, len, f) == len;

	if (f && fclose(f) != 0)
		ok = false;
	return ok;
}

bool elf_builder_write(struct elf_builder *b, const char *path)
{
	size_t len;
	uint8_t *bytes = elf_builder_finish(b, &len);
	bool ok = write_test_file(path, bytes, len);

	free(bytes);
	return ok;
}

uint8_t *elf_builder_zlib(const void *data, size_t len, size_t *packed_len)
{
	Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = len, .ch_addralign = 1};
	uLongf room = compressBound(len);
	uint8_t *packed = must(malloc(sizeof(head) + room));

	memcpy(packed, &head, sizeof(head));
	if (compress(packed + sizeof(head), &room, data, len) != Z_OK)
		abort();
	*packed_len = sizeof(head) + room;
	return packed;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "elfimage.h"

#include <elf.h>

#include "dynamic.h"

static const struct image_section *find_table(const struct image *image, uint32_t type)
{
	for (size_t i = 0; i < image->section_count; i++) {
		const struct image_section *s = &image->sections[i];

		if (s->type == type && s->size >= sizeof(Elf64_Sym))
			return s;
	}
	return NULL;
}

struct symbol_table {
	const uint8_t *symbols;
	const char *strings;
	size_t count, strings_len;
};

static int table_of_section(struct image *image, const struct image_section *section,
			    struct symbol_table *table, struct spulse_error **err)
{
	const uint8_t *strings;
	size_t len;
	int r;

	if (section->entsize != sizeof(Elf64_Sym) || section->link >= image->section_count)
		return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, image->path,
				"%s: section %s at offset %#llx is no table of symbols",
				image->path, section->name, (unsigned long long)section->offset);
	if ((r = image_section_bytes(image, section, &table->symbols, &len, err)) < 0)
		return r;
	table->count = len / sizeof(Elf64_Sym);
	if ((r = image_section_bytes(image, &image->sections[section->link], &strings,
				     &table->strings_len, err)) < 0)
		return r;
	table->strings = (const char *)strings;
	return 0;
}

static int find_symbols(struct image *image, bool dynamic, struct symbol_table *table,
			struct spulse_error **err)
{
	const struct image_section *section = find_table(image, dynamic ? SHT_DYNSYM : SHT_SYMTAB);
	int r;

	if (section)
		return table_of_section(image, section, table, err);
	if (!dynamic || image->section_count)
		return 0;
	if ((r = dynamic_load(image, err)) < 0)
		return r;
	table->symbols = image->dynamic_symbols.bytes;
	table->count = image->dynamic_symbols.len / sizeof(Elf64_Sym);
	table->strings = (const char *)image->dynamic_strings.bytes;
	table->strings_len = image->dynamic_strings.len;
	return 0;
}

int image_symbols(struct image *image, bool dynamic,
		  bool (*fn)(void *data, const struct image_symbol *symbol), void *data,
		  struct spulse_error **err)
{
	struct symbol_table table = {0};
	int r = find_symbols(image, dynamic, &table, err);

	if (r < 0)
		return r;
	/* The first symbol means "none". */
	for (size_t i = 1; i < table.count; i++) {
		Elf64_Sym sym;
		struct image_symbol symbol;

		memcpy(&sym, table.symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_name >= table.strings_len)
			continue;
		symbol = (struct image_symbol){
			.value = sym.st_value, .size = sym.st_size,
			.name = table.strings + sym.st_name, .index = i,
			.type = ELF64_ST_TYPE(sym.st_info), .bind = ELF64_ST_BIND(sym.st_info),
			.visibility = ELF64_ST_VISIBILITY(sym.st_other), .shndx = sym.st_shndx,
		};
		if (!fn(data, &symbol))
			break;
	}
	return 0;
}

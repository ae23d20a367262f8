/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elf_builder.h"
#include "image/image.h"

static const struct elf_builder_symbol sample[] = {
	{"main", 0x1000, 0x20, STT_FUNC, STB_GLOBAL, STV_DEFAULT, 1},
	{"helper", 0x1020, 8, STT_FUNC, STB_LOCAL, STV_HIDDEN, 1},
	{"data", 0x4000, 4, STT_OBJECT, STB_WEAK, STV_DEFAULT, 2},
};

struct seen {
	struct image_symbol symbols[16];
	size_t count, stop_at;
};

static bool remember(void *data, const struct image_symbol *symbol)
{
	struct seen *seen = data;

	seen->symbols[seen->count++] = *symbol;
	return seen->count != seen->stop_at && seen->count < 16;
}

static struct image *image_of(struct elf_builder *b)
{
	struct image *image = NULL;
	size_t len;
	uint8_t *bytes = elf_builder_finish(b, &len);

	assert_int_equal(image_from_bytes(bytes, len, "x.so", &image, NULL), 0);
	free(bytes);
	return image;
}

static void assert_sample(struct image *image, bool dynamic)
{
	struct seen seen = {0};

	assert_int_equal(image_symbols(image, dynamic, remember, &seen, NULL), 0);
	assert_int_equal(seen.count, 3);
	for (int i = 0; i < 3; i++) {
		const struct image_symbol *s = &seen.symbols[i];

		assert_string_equal(s->name, sample[i].name);
		assert_int_equal(s->value, sample[i].value);
		assert_int_equal(s->size, sample[i].size);
		assert_int_equal(s->type, sample[i].type);
		assert_int_equal(s->bind, sample[i].bind);
		assert_int_equal(s->visibility, sample[i].visibility);
		assert_int_equal(s->shndx, sample[i].shndx);
	}
	seen = (struct seen){.stop_at = 2};
	assert_int_equal(image_symbols(image, dynamic, remember, &seen, NULL), 0);
	assert_int_equal(seen.count, 2);
}

static void assert_none(struct image *image, bool dynamic)
{
	struct seen seen = {0};

	assert_int_equal(image_symbols(image, dynamic, remember, &seen, NULL), 0);
	assert_int_equal(seen.count, 0);
}

static void test_both_tables(void **state)
{
	struct elf_builder b;
	struct image *image;
	(void)state;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_symbols(&b, false, sample, 3);
	image = image_of(&b);
	assert_sample(image, false);
	assert_none(image, true);
	image_unref(image);

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_symbols(&b, true, sample, 3);
	image = image_of(&b);
	assert_sample(image, true);
	assert_none(image, false);
	image_unref(image);
}

static void test_bad_names_and_links(void **state)
{
	Elf64_Sym table[3] = {{0}, {.st_name = 100}, {.st_name = 1}};
	struct elf_builder_section section = {.name = ".symtab", .type = SHT_SYMTAB, .data = table,
					      .len = sizeof(table), .entsize = sizeof(*table),
					      .link = 1};
	struct elf_builder b;
	struct image *image;
	struct seen seen = {0};
	(void)state;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	/* Strings without an end. */
	elf_builder_section(&b, &(struct elf_builder_section){.name = ".strtab", .data = "\0abc",
							       .len = 4});
	elf_builder_section(&b, &section);
	image = image_of(&b);
	assert_int_equal(image_symbols(image, false, remember, &seen, NULL), 0);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.symbols[0].name, "abc");
	image_unref(image);

	for (int i = 0; i < 2; i++) {
		elf_builder_init(&b, ET_DYN, EM_X86_64);
		section.link = i ? 1 : 99;
		section.entsize = i ? 16 : 24;
		elf_builder_section(&b, &section);
		image = image_of(&b);
		assert_int_equal(image_symbols(image, false, remember, &seen, NULL),
				 -SPULSE_ERROR_INVALID_INPUT);
		image_unref(image);
	}
}

enum { BASE = 0x10000, STRINGS = 0x200, SYMBOLS = 0x300, HASH = 0x400, DYNAMIC = 0x500 };

/* A whole image in one segment at BASE, with a dynamic segment but no section headers. */
static struct image *stripped_image(bool gnu, uint32_t hash0, uint32_t hash1, uint64_t strings_len)
{
	uint8_t *body = calloc(1, 0x1000);
	Elf64_Dyn dyn[] = {
		{DT_STRTAB, {BASE + STRINGS}}, {DT_SYMTAB, {BASE + SYMBOLS}},
		{DT_STRSZ, {strings_len}}, {gnu ? DT_GNU_HASH : DT_HASH, {BASE + HASH}},
		{DT_NULL, {0}},
	};
	/* Buckets, first symbol, bloom words, shift, one bloom word, one bucket, chain. */
	uint32_t gnu_hash[] = {hash0, 1, 1, 0, 0, 0, hash1, 2, 4, 7};
	uint32_t old_hash[] = {hash0, hash1};
	struct elf_builder b;
	struct image *image;

	for (int i = 0; i < 3; i++) {
		Elf64_Sym sym = {
			.st_name = i * 10 + 1, .st_value = sample[i].value,
			.st_size = sample[i].size, .st_shndx = sample[i].shndx,
			.st_other = sample[i].visibility,
			.st_info = ELF64_ST_INFO(sample[i].bind, sample[i].type),
		};

		strcpy((char *)body + STRINGS + sym.st_name, sample[i].name);
		memcpy(body + SYMBOLS + (i + 1) * sizeof(sym), &sym, sizeof(sym));
	}
	if (gnu)
		memcpy(body + HASH, gnu_hash, sizeof(gnu_hash));
	else
		memcpy(body + HASH, old_hash, sizeof(old_hash));
	memcpy(body + DYNAMIC, dyn, sizeof(dyn));

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	b.no_sections = true;
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".all", .offset = 0x1000, .data = body, .len = 0x1000});
	elf_builder_segment(&b, &(struct elf_builder_segment){
		.offset = 0x1000, .vaddr = BASE, .filesz = 0x1000});
	elf_builder_segment(&b, &(struct elf_builder_segment){
		.type = PT_DYNAMIC, .offset = 0x1000 + DYNAMIC, .vaddr = BASE + DYNAMIC,
		.filesz = sizeof(dyn)});
	image = image_of(&b);
	free(body);
	return image;
}

static void test_without_section_headers(void **state)
{
	struct image *image = stripped_image(true, 1, 1, 40);
	(void)state;

	assert_sample(image, true);
	image_unref(image);
	image = stripped_image(false, 1, 4, 40);
	assert_sample(image, true);
	image_unref(image);
}

static void test_hostile_dynamic_segment(void **state)
{
	struct seen seen = {0};
	struct image *image = stripped_image(false, 1, 0xfffffff, 40);
	(void)state;

	assert_int_equal(image_symbols(image, true, remember, &seen, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	image_unref(image);
	image = stripped_image(false, 1, 4, UINT64_MAX);
	assert_int_equal(image_symbols(image, true, remember, &seen, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	image_unref(image);
	/* No buckets, and buckets that lead out of the file. */
	image = stripped_image(true, 0, 1, 40);
	assert_none(image, true);
	image_unref(image);
	image = stripped_image(true, 0xffffffff, 1, 40);
	assert_none(image, true);
	image_unref(image);
	image = stripped_image(true, 1, 0xffffff00, 40);
	assert_int_equal(image_symbols(image, true, remember, &seen, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_tables),
		cmocka_unit_test(test_bad_names_and_links),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_hostile_dynamic_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Which of the symbols over an address names it, and where no name is the right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf_builder.h"
#include "symbolize/native/symtab.h"

enum { TEXT = 1, HOT = 2, DATA = 3 };

/* Code at 0x1000-0x1400 and, in a segment of its own, 0x2000-0x2100; data at 0x4000-0x4100. */
static struct image *make_image(const struct elf_builder_symbol *symbols, size_t count,
				const struct elf_builder_symbol *dynamic, size_t dynamic_count)
{
	static const uint8_t bytes[0x400];
	struct image *image = NULL;
	struct elf_builder b;
	uint8_t *file;
	size_t len;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x1000,
		.data = bytes, .len = 0x400 });
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text.hot", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x2000,
		.data = bytes, .len = 0x100 });
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".data", .flags = SHF_ALLOC | SHF_WRITE, .addr = 0x4000,
		.data = bytes, .len = 0x100 });
	for (unsigned int section = TEXT; section <= DATA; section++)
		elf_builder_segment(&b, &(struct elf_builder_segment){
			.flags = section == DATA ? PF_R | PF_W : PF_R | PF_X, .section = section });
	if (count)
		elf_builder_symbols(&b, false, symbols, count);
	if (dynamic_count)
		elf_builder_symbols(&b, true, dynamic, dynamic_count);
	file = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(file, len, "x.so", &image, NULL), 0);
	free(file);
	return image;
}

#define NONE { { 0 } }
#define FUNC(name, at, size, bind) { name, at, size, STT_FUNC, STB_##bind, STV_DEFAULT, TEXT }
#define LABEL(name, at, size, bind) { name, at, size, STT_NOTYPE, STB_##bind, STV_DEFAULT, TEXT }

static const struct name_case {
	const char *what;
	struct elf_builder_symbol symbols[4];
	struct elf_builder_symbol dynamic[2];
	uint64_t address;
	const char *name; /* NULL: none */
} cases[] = {
	{ "first byte", { FUNC("f", 0x1000, 16, GLOBAL) }, NONE, 0x1000, "f" },
	{ "last byte", { FUNC("f", 0x1000, 16, GLOBAL) }, NONE, 0x100f, "f" },
	{ "past a sized function", { FUNC("f", 0x1000, 16, GLOBAL) }, NONE, 0x1010, NULL },
	{ "before the first", { FUNC("f", 0x1010, 16, GLOBAL) }, NONE, 0x100f, NULL },
	{ "far from any: never the nearest", { FUNC("f", 0x1000, 16, GLOBAL) }, NONE, 0x1300, NULL },
	{ "no symbols at all", NONE, NONE, 0x1000, NULL },

	{ "global over local", { FUNC("loc", 0x1000, 16, LOCAL), FUNC("glob", 0x1000, 16, GLOBAL) },
	  NONE, 0x1004, "glob" },
	{ "global over weak, weak first",
	  { FUNC("weak", 0x1000, 16, WEAK), FUNC("glob", 0x1000, 16, GLOBAL) }, NONE, 0x1004, "glob" },
	{ "global over weak, weak last",
	  { FUNC("glob", 0x1000, 16, GLOBAL), FUNC("weak", 0x1000, 16, WEAK) }, NONE, 0x1004, "glob" },
	{ "weak over local", { FUNC("loc", 0x1000, 16, LOCAL), FUNC("weak", 0x1000, 16, WEAK) },
	  NONE, 0x1004, "weak" },
	{ "local function over global without a size",
	  { FUNC("loc", 0x1000, 16, LOCAL), FUNC("glob", 0x1000, 0, GLOBAL) }, NONE, 0x1004, "loc" },
	{ "function over a sized label",
	  { LABEL("label", 0x1000, 16, GLOBAL), FUNC("f", 0x1000, 16, LOCAL) }, NONE, 0x1004, "f" },
	{ "static table over dynamic", { FUNC("f", 0x1000, 16, GLOBAL) },
	  { FUNC("g", 0x1000, 16, GLOBAL) }, 0x1004, "f" },
	{ "dynamic table where the static one has nothing", { FUNC("f", 0x1000, 16, GLOBAL) },
	  { FUNC("g", 0x1010, 16, GLOBAL) }, 0x1014, "g" },
	{ "dynamic table alone", NONE, { FUNC("g", 0x1010, 16, GLOBAL) }, 0x1014, "g" },
	{ "equal in all: the same on every run",
	  { FUNC("b", 0x1000, 16, GLOBAL), FUNC("a", 0x1000, 16, GLOBAL) }, NONE, 0x1004, "a" },

	{ "label without a size reaches the next symbol",
	  { LABEL("entry", 0x1000, 0, GLOBAL), FUNC("f", 0x1100, 16, GLOBAL) }, NONE, 0x10ff,
	  "entry" },
	{ "label without a size ends with its section", { LABEL("last", 0x1300, 0, GLOBAL) },
	  NONE, 0x1400, NULL },
	{ "label inside of a sized function",
	  { FUNC("f", 0x1000, 64, GLOBAL), LABEL("loop", 0x1010, 0, LOCAL) }, NONE, 0x1020, "f" },
	{ "sized function inside of another",
	  { FUNC("outer", 0x1000, 64, GLOBAL), FUNC("inner", 0x1010, 16, LOCAL) }, NONE, 0x1018,
	  "inner" },
	{ "behind a function inside of another",
	  { FUNC("outer", 0x1000, 64, GLOBAL), FUNC("inner", 0x1010, 16, LOCAL) }, NONE, 0x1020,
	  "outer" },
	{ "assembler's own label", { LABEL(".Ltmp0", 0x1000, 16, LOCAL) }, NONE, 0x1004, NULL },
	{ "mapping symbol", { LABEL("$x", 0x1000, 0, LOCAL) }, NONE, 0x1004, NULL },
	{ "no name", { FUNC("", 0x1000, 16, GLOBAL) }, NONE, 0x1004, NULL },

	{ "indirect function's resolver",
	  { { "choose", 0x1000, 16, STT_GNU_IFUNC, STB_GLOBAL, STV_DEFAULT, TEXT } }, NONE, 0x1004,
	  "choose" },
	{ "undefined", { { "away", 0x1000, 16, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF } },
	  NONE, 0x1004, NULL },
	{ "an object is no function",
	  { { "table", 0x1000, 16, STT_OBJECT, STB_GLOBAL, STV_DEFAULT, TEXT } }, NONE, 0x1004, NULL },
	{ "a function in data", { { "odd", 0x4000, 16, STT_FUNC, STB_GLOBAL, STV_DEFAULT, DATA } },
	  NONE, 0x4004, NULL },
	{ "second executable segment",
	  { { "hot", 0x2000, 16, STT_FUNC, STB_GLOBAL, STV_DEFAULT, HOT } }, NONE, 0x2004, "hot" },
	{ "a size that leaves the section", { FUNC("long", 0x13f0, 0x1000, GLOBAL) }, NONE, 0x2004,
	  NULL },
	{ "a size that overflows", { FUNC("long", 0x1000, UINT64_MAX, GLOBAL) }, NONE, 0x1004,
	  "long" },
	{ "version of a symbol", { FUNC("memcpy@@GLIBC_2.14", 0x1000, 16, GLOBAL) }, NONE, 0x1004,
	  "memcpy" },
	{ "name that starts with an underscore", { FUNC("_init", 0x1000, 16, GLOBAL) }, NONE, 0x1004,
	  "_init" },
};

static size_t count_of(const struct elf_builder_symbol *symbols, size_t max)
{
	size_t n = 0;

	while (n < max && symbols[n].name)
		n++;
	return n;
}

static void the_right_name_or_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct name_case *c = &cases[i];
		struct image *image = make_image(c->symbols, count_of(c->symbols, 4), c->dynamic,
						 count_of(c->dynamic, 2));
		const struct symtab_entry *entry;
		struct symtab symtab;

		assert_true(symtab_build(&symtab, &image, 1));
		entry = symtab_find(&symtab, c->address);
		if ((entry != NULL) != (c->name != NULL) || (entry && strcmp(entry->name, c->name)))
			fail_msg("%s: %s instead of %s", c->what, entry ? entry->name : "none",
				 c->name ? c->name : "none");
		symtab_release(&symtab);
		image_unref(image);
	}
}

static void assert_name(const struct symtab *symtab, uint64_t address, const char *name)
{
	const struct symtab_entry *entry = symtab_find(symtab, address);

	assert_non_null(entry);
	assert_string_equal(entry->name, name);
}

static void a_debug_file_adds_to_the_program_s_own(void **state)
{
	const struct elf_builder_symbol own[] = { FUNC("exported", 0x1000, 16, GLOBAL) };
	const struct elf_builder_symbol more[] = { FUNC("internal", 0x1020, 16, LOCAL) };
	struct image *images[2] = { make_image(NULL, 0, own, 1), make_image(more, 1, NULL, 0) };
	struct symtab symtab;

	(void)state;
	assert_true(symtab_build(&symtab, images, 2));
	assert_name(&symtab, 0x1000, "exported");
	assert_name(&symtab, 0x1020, "internal");
	assert_null(symtab_find(&symtab, 0x1010));
	symtab_release(&symtab);
	image_unref(images[0]);
	image_unref(images[1]);
}

/* ---- stubs ---- */

/* Two stubs of a table with end-branches, their slots in the order of the relocations. */
static struct image *make_stubs(void)
{
	static const struct elf_builder_symbol dynamic[] = {
		{ "puts@GLIBC_2.2.5", 0, 0, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF },
		{ "qsort", 0, 0, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF },
	};
	uint8_t code[32] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 };
	Elf64_Rela relocations[2] = {
		{ 0x3000, ELF64_R_INFO(1ull, R_X86_64_JUMP_SLOT), 0 },
		{ 0x3008, ELF64_R_INFO(2ull, R_X86_64_JUMP_SLOT), 0 },
	};
	struct image *image = NULL;
	struct elf_builder b;
	uint8_t *file;
	size_t len;

	memcpy(code + 16, code, 6);
	code[6] = (0x3008 - 0x100a) & 0xff; /* the first stub jumps through the second slot */
	code[7] = (0x3008 - 0x100a) >> 8;
	code[22] = (0x3000 - 0x101a) & 0xff;
	code[23] = (0x3000 - 0x101a) >> 8;
	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".plt.sec", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x1000, .entsize = 16,
		.data = code, .len = sizeof(code) });
	elf_builder_symbols(&b, true, dynamic, 2);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".rela.plt", .type = SHT_RELA, .data = relocations,
		.len = sizeof(relocations), .entsize = sizeof(relocations[0]) });
	file = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(file, len, "x.so", &image, NULL), 0);
	free(file);
	return image;
}

static void stubs_are_named_by_the_slot_they_jump_through(void **state)
{
	struct image *image = make_stubs();
	struct symtab symtab;

	(void)state;
	assert_true(symtab_build(&symtab, &image, 1));
	assert_name(&symtab, 0x1004, "qsort@plt");
	assert_name(&symtab, 0x101f, "puts@plt");
	assert_null(symtab_find(&symtab, 0x1020));
	symtab_release(&symtab);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_name_or_none),
		cmocka_unit_test(a_debug_file_adds_to_the_program_s_own),
		cmocka_unit_test(stubs_are_named_by_the_slot_they_jump_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

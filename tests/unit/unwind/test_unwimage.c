/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* An ELF file as the unwinder sees it: where its tables are found, and its code bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "elf_builder.h"
#include "image/image.h"
#include "livemem.h"
#include "unwind/unwimage.h"
#include "unwind_world.h"

enum { TEXT = 0x1000, MORE_TEXT = 0x9000, EH = 0x20000, HDR = 0x30000 };

static const uint8_t x86_start[] = {0x0c, 7, 8, 0x90, 1};
static uint8_t code[0x100];

struct file {
	struct elf_builder elf;
	struct cfi_builder eh;
	uint64_t cie;
	struct image *image;
	struct unw_image *unw;
	uint8_t *bytes;
};

/* A file with code at TEXT and MORE_TEXT, each a segment. */
static struct file *file_new(uint16_t machine)
{
	static const uint64_t places[] = {TEXT, MORE_TEXT};
	struct cfi_builder_cie cie = {
		.ra = 16, .program = x86_start, .program_len = sizeof(x86_start)};
	struct file *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(code, 0x90, sizeof(code));
	elf_builder_init(&f->elf, ET_DYN, machine);
	for (size_t i = 0; i < 2; i++) {
		unsigned int text = elf_builder_section(
			&f->elf, &(struct elf_builder_section){.name = i ? ".text2" : ".text",
							       .flags = SHF_ALLOC | SHF_EXECINSTR,
							       .addr = places[i],
							       .data = code,
							       .len = sizeof(code)});

		elf_builder_segment(&f->elf, &(struct elf_builder_segment){.section = text,
									   .flags = PF_R | PF_X});
	}
	f->eh.addr = EH;
	f->cie = cfi_build_cie(&f->eh, &cie);
	return f;
}

static void add_function(struct file *f, uint64_t start, const uint8_t *program, size_t len)
{
	cfi_build_fde(&f->eh, f->cie, start, 0x40, program, len);
}

static void add_section(struct file *f, const char *name, uint64_t addr, const void *data,
			size_t len, bool loaded)
{
	unsigned int section = elf_builder_section(
		&f->elf, &(struct elf_builder_section){.name = name,
						       .flags = loaded ? SHF_ALLOC : 0,
						       .addr = addr,
						       .data = data,
						       .len = len,
						       .align = 8});

	if (loaded)
		elf_builder_segment(
			&f->elf, &(struct elf_builder_segment){.section = section, .flags = PF_R});
	if (strcmp(name, ".eh_frame_hdr") == 0)
		elf_builder_segment(&f->elf, &(struct elf_builder_segment){.type = PT_GNU_EH_FRAME,
									   .section = section});
}

static void add_tables(struct file *f, bool hdr)
{
	uint8_t bytes[256];

	add_section(f, ".eh_frame", EH, f->eh.bytes, f->eh.len, true);
	if (hdr)
		add_section(f, ".eh_frame_hdr", HDR, bytes, cfi_build_hdr(&f->eh, HDR, bytes),
			    true);
}

static void open_file(struct file *f)
{
	size_t len;

	f->bytes = elf_builder_finish(&f->elf, &len);
	assert_int_equal(image_from_bytes(f->bytes, len, "test", &f->image, NULL), 0);
	assert_int_equal(unw_image_new(f->image, &f->unw, NULL), 0);
}

static void file_free(struct file *f)
{
	unw_image_unref(f->unw);
	image_unref(f->image);
	free(f->bytes);
	free(f);
}

static void expect_frame(struct file *f, uint64_t address, int64_t words)
{
	rule_t rule = unw_image_rule(f->unw, address);

	assert_int_equal(rule_kind(rule), RULE_SP);
	assert_int_equal(rule_n(rule), words);
}

/* Code of several segments, with and without the header's table. */
static void test_several_executable_segments(void **state)
{
	(void)state;
	for (int hdr = 0; hdr < 2; hdr++) {
		struct file *f = file_new(EM_X86_64);

		add_function(f, TEXT, CFI(0x0e, 24));
		add_function(f, MORE_TEXT, CFI(0x0e, 48));
		/* leftovers of code that the linker threw away */
		add_function(f, 0, CFI(0x0e, 64));
		add_function(f, 0x700000, CFI(0x0e, 64));
		add_tables(f, hdr);
		open_file(f);
		expect_frame(f, TEXT + 4, 3);
		expect_frame(f, MORE_TEXT + 4, 6);
		assert_int_not_equal(rule_kind(unw_image_rule(f->unw, TEXT + 0x50)), RULE_SP);
		file_free(f);
	}
}

/* Stripped of its section headers: the program headers lead to the table, which leads to the rest.
 */
static void test_without_section_headers(void **state)
{
	struct file *f = file_new(EM_X86_64);

	(void)state;
	add_function(f, TEXT, CFI(0x0e, 24));
	cfi_build_terminator(&f->eh);
	add_tables(f, true);
	f->elf.no_sections = true;
	open_file(f);
	expect_frame(f, TEXT + 4, 3);
	file_free(f);
}

/* A segment that claims far more than the file holds costs no memory. */
static void test_claims_of_program_headers(void **state)
{
	struct file *f = file_new(EM_X86_64);
	size_t len, count;
	Elf64_Phdr *program;
	Elf64_Ehdr *header;

	(void)state;
	add_function(f, TEXT, CFI(0x0e, 24));
	add_tables(f, true);
	f->elf.no_sections = true;
	f->bytes = elf_builder_finish(&f->elf, &len);
	header = (Elf64_Ehdr *)f->bytes;
	program = (Elf64_Phdr *)(f->bytes + header->e_phoff);
	count = header->e_phnum;
	for (size_t i = 0; i < count; i++)
		if (program[i].p_vaddr >= EH)
			program[i].p_filesz = program[i].p_memsz = 400 << 20;
	if (image_from_bytes(f->bytes, len, "test", &f->image, NULL) == 0) {
		assert_int_equal(unw_image_new(f->image, &f->unw, NULL), 0);
		livemem_reset();
		unw_image_rule(f->unw, TEXT + 4);
		assert_true(livemem_peak() < 1 << 20);
	}
	file_free(f);
}

/* .debug_frame answers where .eh_frame is silent, not where it speaks. */
static void test_debug_frame(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct file *f = file_new(EM_X86_64);
		struct cfi_builder debug = {.debug = true};
		struct cfi_builder_cie cie = {
			.ra = 16, .program = x86_start, .program_len = sizeof(x86_start)};
		uint64_t at = cfi_build_cie(&debug, &cie);
		uint8_t *small = NULL;
		size_t len = debug.len;

		cfi_build_fde(&debug, at, TEXT, 0x40, CFI(0x0e, 80));
		cfi_build_fde(&debug, at, TEXT + 0x40, 0x40, CFI(0x0e, 32));
		add_function(f, TEXT, CFI(0x0e, 24));
		add_tables(f, true);
		if (packed)
			small = elf_builder_zlib(debug.bytes, debug.len, &len);
		elf_builder_section(
			&f->elf, &(struct elf_builder_section){.name = ".debug_frame",
							       .flags = packed ? SHF_COMPRESSED : 0,
							       .data = packed ? small : debug.bytes,
							       .len = packed ? len : debug.len,
							       .align = 8});
		free(small);
		open_file(f);
		expect_frame(f, TEXT + 4, 3);
		expect_frame(f, TEXT + 0x44, 4);
		assert_int_not_equal(rule_kind(unw_image_rule(f->unw, TEXT + 0x90)), RULE_SP);
		file_free(f);
	}
}

/* Go's tables never tell of rbp, which its functions save below the return address. */
static void test_go(void **state)
{
	struct file *f = file_new(EM_X86_64);
	struct cfi_builder debug = {.debug = true};
	struct cfi_builder_cie cie = {
		.ra = 16, .program = x86_start, .program_len = sizeof(x86_start)};
	uint64_t at = cfi_build_cie(&debug, &cie);
	rule_t rule;

	(void)state;
	cfi_build_fde(&debug, at, TEXT, 0x40, CFI(0x0e, 32));
	cfi_build_fde(&debug, at, TEXT + 0x40, 0x40, NO_CFI);
	add_section(f, ".debug_frame", 0, debug.bytes, debug.len, false);
	add_section(f, ".gopclntab", 0x50000, "go", 2, true);
	open_file(f);
	rule = unw_image_rule(f->unw, TEXT + 4);
	assert_int_equal(rule_kind(rule), RULE_SP);
	assert_int_equal(rule_cell(rule, 0), 0);
	rule = unw_image_rule(f->unw, TEXT + 0x44); /* a leaf has no frame */
	assert_int_equal(rule_cell(rule, 0), RULE_UNSAVED);
	file_free(f);
}

/* Other machines' tables say nothing, and nothing of them is read. */
static void test_other_machines(void **state)
{
	struct file *f = file_new(EM_386);

	(void)state;
	add_function(f, TEXT, CFI(0x0e, 24));
	add_tables(f, true);
	open_file(f);
	assert_int_not_equal(rule_kind(unw_image_rule(f->unw, TEXT + 4)), RULE_SP);
	file_free(f);
}

static void test_without_tables(void **state)
{
	struct file *f = file_new(EM_X86_64);
	rule_t rule;

	(void)state;
	memset(code, 0xf4, sizeof(code));
	open_file(f);
	rule = unw_image_rule(f->unw, TEXT + 4);
	assert_true(rule_kind(rule) == RULE_NONE || rule_kind(rule) == RULE_DECODED);
	assert_false(unw_image_row(f->unw, TEXT + 4, &(struct cfi_row){0}));
	file_free(f);
}

/* A start routine without a mark of being the outermost: there is no return address to read. */
static void test_entry(void **state)
{
	struct file *f = file_new(EM_X86_64);

	(void)state;
	f->elf.header.e_entry = TEXT + 0x20;
	open_file(f);
	assert_false(unw_image_is_entry(f->unw, TEXT + 0x1f));
	assert_true(unw_image_is_entry(f->unw, TEXT + 0x20));
	assert_true(unw_image_is_entry(f->unw, TEXT + 0x5f));
	assert_false(unw_image_is_entry(f->unw, TEXT + 0x60));
	file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_executable_segments),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_claims_of_program_headers),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_other_machines),
		cmocka_unit_test(test_without_tables),
		cmocka_unit_test(test_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

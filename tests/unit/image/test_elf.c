/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elf_builder.h"
#include "image/image.h"

static const uint8_t id[20] = {0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};

static void sample_builder(struct elf_builder *b)
{
	unsigned int text;

	elf_builder_init(b, ET_DYN, EM_X86_64);
	b->header.e_entry = 0x1010;
	text = elf_builder_section(b, &(struct elf_builder_section){
		.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x1000,
		.align = 0x1000, .data = "\xc3\x90\x90\x90", .len = 4});
	elf_builder_build_id(b, id, sizeof(id));
	elf_builder_section(b, &(struct elf_builder_section){
		.name = ".bss", .type = SHT_NOBITS, .addr = 0x5000, .size = 1 << 30});
	elf_builder_segment(b, &(struct elf_builder_segment){.section = text, .flags = PF_R | PF_X});
	elf_builder_segment(b, &(struct elf_builder_segment){
		.type = PT_GNU_EH_FRAME, .offset = 0x40, .vaddr = 0x40, .filesz = 8});
}

static struct image *built(struct elf_builder *b)
{
	struct image *image = NULL;
	size_t len;
	uint8_t *bytes = elf_builder_finish(b, &len);

	assert_int_equal(image_from_bytes(bytes, len, "built", &image, NULL), 0);
	free(bytes);
	return image;
}

/* Must be refused with a message that holds a text; bytes are freed. */
static void assert_refused(uint8_t *bytes, size_t len, int kind, const char *text)
{
	struct spulse_error *error = NULL;
	struct image *image = NULL;

	assert_int_equal(image_from_bytes(bytes, len, "bad.elf", &image, &error), -kind);
	assert_null(image);
	assert_non_null(strstr(spulse_error_message(error), text));
	assert_non_null(strstr(spulse_error_message(error), "bad.elf"));
	spulse_error_free(error);
	free(bytes);
}

static void check_sample(struct image *image)
{
	size_t count, len;
	const struct image_segment *segments = image_segments(image, &count);
	const struct image_section *text = image_section_by_name(image, ".text");
	struct image_segment hdr;

	assert_int_equal(count, 1);
	assert_int_equal(segments[0].vaddr, 0x1000);
	assert_int_equal(segments[0].offset, text->offset);
	assert_int_equal(segments[0].flags, PF_R | PF_X);
	assert_int_equal(image_first_vaddr(image), 0x1000);
	assert_true(image_eh_frame_hdr_segment(image, &hdr));
	assert_int_equal(hdr.vaddr, 0x40);
	assert_int_equal(image_machine(image), EM_X86_64);
	assert_int_equal(image_type(image), ET_DYN);
	assert_int_equal(image_entry(image), 0x1010);
	assert_memory_equal(image_build_id(image, &len), id, sizeof(id));
	assert_int_equal(len, sizeof(id));
	image_sections(image, &count);
	assert_int_equal(count, 5);
	assert_null(image_section_by_name(image, ".data"));
	assert_int_equal(image_fd(image), -1);
}

static void test_reads_a_file(void **state)
{
	struct elf_builder b;
	struct image *image;
	(void)state;

	sample_builder(&b);
	image = built(&b);
	check_sample(image);
	image_unref(image);
}

static void test_numbers_in_section_zero(void **state)
{
	struct elf_builder b;
	struct image *image;
	(void)state;

	sample_builder(&b);
	b.extended = true;
	image = built(&b);
	check_sample(image);
	image_unref(image);
}

static void test_without_section_headers(void **state)
{
	uint8_t note[16 + 20] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
	struct elf_builder b;
	struct image *image;
	unsigned int section;
	size_t count, len;
	(void)state;

	memcpy(note + 16, id, 20);
	elf_builder_init(&b, ET_EXEC, EM_AARCH64);
	section = elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".note", .data = note, .len = sizeof(note), .align = 4});
	elf_builder_segment(&b, &(struct elf_builder_segment){.type = PT_NOTE, .section = section});
	b.no_sections = true;
	image = built(&b);
	image_sections(image, &count);
	assert_int_equal(count, 0);
	assert_memory_equal(image_build_id(image, &len), id, sizeof(id));
	assert_null(image_section_by_name(image, ".text"));
	image_unref(image);
}

/* Programs run whatever their section table says. */
static void test_broken_section_table_costs_only_sections(void **state)
{
	struct elf_builder b;
	struct image *image = NULL;
	size_t len, count;
	uint8_t *bytes;
	Elf64_Ehdr header;
	(void)state;

	sample_builder(&b);
	bytes = elf_builder_finish(&b, &len);
	memcpy(&header, bytes, sizeof(header));
	for (int i = 0; i < 4; i++) {
		Elf64_Ehdr bad = header;

		if (i == 0)
			bad.e_shoff = len - 10;
		else if (i == 1)
			bad.e_shnum = 0xfeff;
		else if (i == 2)
			bad.e_shoff = UINT64_MAX - 3;
		else
			bad.e_shentsize = 40;
		memcpy(bytes, &bad, sizeof(bad));
		assert_int_equal(image_from_bytes(bytes, len, "x", &image, NULL), 0);
		image_sections(image, &count);
		assert_int_equal(count, 0);
		image_segments(image, &count);
		assert_int_equal(count, 1);
		image_unref(image);
	}
	free(bytes);
}

static void test_refuses_what_is_not_elf(void **state)
{
	struct elf_builder b;
	uint8_t *bytes;
	size_t len;
	(void)state;

	assert_refused(calloc(1, 10), 10, SPULSE_ERROR_UNSUPPORTED, "too short");
	assert_refused(calloc(1, 100), 100, SPULSE_ERROR_UNSUPPORTED, "not an ELF file");
	elf_builder_init(&b, ET_DYN, EM_386);
	b.header.e_ident[EI_CLASS] = ELFCLASS32;
	bytes = elf_builder_finish(&b, &len);
	assert_refused(bytes, len, SPULSE_ERROR_UNSUPPORTED, "64-bit");
	elf_builder_init(&b, ET_DYN, EM_PPC64);
	b.header.e_ident[EI_DATA] = ELFDATA2MSB;
	bytes = elf_builder_finish(&b, &len);
	assert_refused(bytes, len, SPULSE_ERROR_UNSUPPORTED, "little-endian");
}

static void test_refuses_broken_program_headers(void **state)
{
	struct elf_builder b;
	uint8_t *bytes;
	Elf64_Ehdr header;
	size_t len;
	(void)state;

	sample_builder(&b);
	bytes = elf_builder_finish(&b, &len);
	memcpy(&header, bytes, sizeof(header));
	header.e_phoff = len - 8;
	memcpy(bytes, &header, sizeof(header));
	assert_refused(bytes, len, SPULSE_ERROR_INVALID_INPUT, "outside the file");

	sample_builder(&b);
	bytes = elf_builder_finish(&b, &len);
	header.e_phoff = 64;
	header.e_phentsize = 32;
	memcpy(bytes, &header, sizeof(header));
	assert_refused(bytes, len, SPULSE_ERROR_INVALID_INPUT, "offset 0x36");
}

static size_t build_id_of_note(const void *note, size_t len)
{
	struct elf_builder b;
	struct image *image;
	size_t id_len;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".note", .type = SHT_NOTE, .data = note, .len = len, .align = 4});
	image = built(&b);
	image_build_id(image, &id_len);
	image_unref(image);
	return id_len;
}

static void test_damaged_notes(void **state)
{
	uint32_t huge[] = {4, 0xffffffff, 3, 0x00554e47};
	uint32_t huge_name[] = {0xfffffffe, 4, 3, 0x00554e47, 1};
	uint32_t other_owner[] = {4, 4, 3, 0x00554e48, 7};
	uint32_t behind_another[] = {4, 4, 1, 0x00554e47, 7, 4, 8, 3, 0x00554e47, 1, 2};
	uint32_t empty[] = {4, 0, 3, 0x00554e47};
	(void)state;

	assert_int_equal(build_id_of_note(huge, sizeof(huge)), 0);
	assert_int_equal(build_id_of_note(huge_name, sizeof(huge_name)), 0);
	assert_int_equal(build_id_of_note(other_owner, sizeof(other_owner)), 0);
	assert_int_equal(build_id_of_note(behind_another, sizeof(behind_another)), 8);
	assert_int_equal(build_id_of_note(empty, sizeof(empty)), 0);
	assert_int_equal(build_id_of_note(huge, 5), 0);
}

/* Every byte of the headers, changed in turn, must give an image or an error. */
static void test_survives_changed_bytes(void **state)
{
	struct elf_builder b;
	uint8_t *bytes;
	size_t len;
	(void)state;

	sample_builder(&b);
	bytes = elf_builder_finish(&b, &len);
	for (size_t i = 0; i < len; i++) {
		uint8_t old = bytes[i];

		if (i == 0x200)
			i = 0x1000;
		for (int bit = 0; bit < 8; bit += 7) {
			struct image *image = NULL;

			bytes[i] = old ^ (1 << bit);
			if (image_from_bytes(bytes, len, "x", &image, NULL) == 0)
				image_unref(image);
		}
		bytes[i] = old;
	}
	for (size_t cut = 0; cut < len; cut += cut < 300 ? 1 : 97) {
		struct image *image = NULL;

		if (image_from_bytes(bytes, cut, "x", &image, NULL) == 0)
			image_unref(image);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_a_file),
		cmocka_unit_test(test_numbers_in_section_zero),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_broken_section_table_costs_only_sections),
		cmocka_unit_test(test_refuses_what_is_not_elf),
		cmocka_unit_test(test_refuses_broken_program_headers),
		cmocka_unit_test(test_damaged_notes),
		cmocka_unit_test(test_survives_changed_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

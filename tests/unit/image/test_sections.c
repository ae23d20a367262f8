/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "elf_builder.h"
#include "image/image.h"
#if SPULSE_HAVE_ZSTD
#include <zstd.h>
#endif

static const char content[] = "the quick brown fox and the quick brown dog and the quick brown cow";

/* An image of one section. */
static struct image *image_with(const struct elf_builder_section *section)
{
	struct elf_builder b;
	struct image *image = NULL;
	uint8_t *bytes;
	size_t len;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, section);
	bytes = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(bytes, len, "file.so", &image, NULL), 0);
	free(bytes);
	return image;
}

static void assert_content(struct image *image, const char *name)
{
	const struct image_section *section = image_section_by_name(image, name);
	const uint8_t *bytes, *again;
	size_t len;

	assert_non_null(section);
	assert_int_equal(image_section_bytes(image, section, &bytes, &len, NULL), 0);
	assert_int_equal(len, sizeof(content));
	assert_memory_equal(bytes, content, len);
	assert_int_equal(image_section_bytes(image, section, &again, &len, NULL), 0);
	assert_ptr_equal(bytes, again);
	image_unref(image);
}

static void assert_bad(struct image *image, int kind, const char *text)
{
	size_t count, len;
	const struct image_section *sections = image_sections(image, &count);
	struct spulse_error *error = NULL;
	const uint8_t *bytes;

	assert_int_equal(image_section_bytes(image, &sections[1], &bytes, &len, &error), -kind);
	assert_non_null(strstr(spulse_error_message(error), text));
	assert_non_null(strstr(spulse_error_message(error), "file.so"));
	spulse_error_free(error);
	image_unref(image);
}

static void test_plain(void **state)
{
	(void)state;
	assert_content(image_with(&(struct elf_builder_section){
		.name = ".debug_str", .data = content, .len = sizeof(content)}), ".debug_str");
}

static void test_zlib(void **state)
{
	size_t len;
	uint8_t *packed = elf_builder_zlib(content, sizeof(content), &len);
	struct elf_builder_section s = {
		.name = ".debug_str", .flags = SHF_COMPRESSED, .data = packed, .len = len};
	(void)state;

	assert_content(image_with(&s), ".debug_str");
	/* Damaged, cut, and with a wrong length. */
	packed[len - 3] ^= 1;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "damaged");
	packed[len - 3] ^= 1;
	s.len = len - 8;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "damaged");
	s.len = len;
	packed[8]++;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "damaged");
	packed[8] -= 2;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "damaged");
	packed[14] = 1;
	assert_bad(image_with(&s), SPULSE_ERROR_UNSUPPORTED, "1 GiB");
	packed[0] = 77;
	assert_bad(image_with(&s), SPULSE_ERROR_UNSUPPORTED, "unknown way");
	s.len = 20;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "compression header");
	free(packed);
}

/* What is packed as well as zlib can, and is still too much for a file of its size. */
static void test_bomb(void **state)
{
	static uint8_t packed[80 << 10];
	const Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 70 << 20};
	struct elf_builder_section s = {.name = ".debug_info", .flags = SHF_COMPRESSED,
					.data = packed, .len = sizeof(packed)};
	(void)state;

	memcpy(packed, &head, sizeof(head));
	assert_bad(image_with(&s), SPULSE_ERROR_UNSUPPORTED, "16 times the file");
}

static void test_old_zdebug(void **state)
{
	size_t len;
	uint8_t *packed = elf_builder_zlib(content, sizeof(content), &len);
	uint8_t *old = packed + sizeof(Elf64_Chdr) - 12;
	(void)state;

	memcpy(old, "ZLIB\0\0\0\0\0\0\0", 11);
	old[11] = sizeof(content);
	assert_content(image_with(&(struct elf_builder_section){
		.name = ".zdebug_str", .data = old, .len = len - sizeof(Elf64_Chdr) + 12}),
		".debug_str");
	free(packed);
}

static void test_zstd(void **state)
{
#if SPULSE_HAVE_ZSTD
	Elf64_Chdr head = {.ch_type = 2, .ch_size = sizeof(content), .ch_addralign = 1};
	uint8_t packed[sizeof(head) + 512];
	size_t n = ZSTD_compress(packed + sizeof(head), 512, content, sizeof(content), 3);
	struct elf_builder_section s = {.name = ".debug_info", .flags = SHF_COMPRESSED,
					.data = packed, .len = sizeof(head) + n};

	memcpy(packed, &head, sizeof(head));
	assert_content(image_with(&s), ".debug_info");
	packed[sizeof(head) + n / 2] ^= 0x55;
	packed[sizeof(head)] ^= 0x55;
	assert_bad(image_with(&s), SPULSE_ERROR_INVALID_INPUT, "damaged");
	(void)state;
#else
	(void)state;
	skip();
#endif
}

static void test_out_of_file(void **state)
{
	(void)state;
	assert_bad(image_with(&(struct elf_builder_section){.name = ".text", .size = 1 << 20}),
		   SPULSE_ERROR_INVALID_INPUT, "outside the file");
	assert_bad(image_with(&(struct elf_builder_section){.name = ".text", .size = UINT64_MAX}),
		   SPULSE_ERROR_INVALID_INPUT, "outside the file");
}

static void test_nobits(void **state)
{
	struct image *image = image_with(&(struct elf_builder_section){
		.name = ".bss", .type = SHT_NOBITS, .size = 1 << 20});
	const uint8_t *bytes;
	size_t len;
	(void)state;

	assert_int_equal(image_section_bytes(image, image_section_by_name(image, ".bss"), &bytes,
					     &len, NULL), 0);
	assert_int_equal(len, 0);
	image_unref(image);
}

/* A file of 1 MiB of code that is cut or rewritten after it was opened. */
static void check_changed_file(bool cut)
{
	char path[] = "/tmp/spulse-test-XXXXXX";
	uint8_t *code = calloc(1, 1 << 20);
	struct spulse_error *error = NULL;
	struct elf_builder b;
	struct image *image;
	const uint8_t *bytes;
	size_t len;
	int fd = mkstemp(path);

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .data = code, .len = 1 << 20});
	assert_true(elf_builder_write(&b, path));
	assert_int_equal(image_open_path(path, &image, NULL), 0);
	if (cut)
		assert_int_equal(ftruncate(fd, 4096), 0);
	else
		assert_int_equal(futimens(fd, (struct timespec[]){{1, 0}, {1, 5}}), 0);
	assert_int_equal(image_section_bytes(image, image_section_by_name(image, ".text"), &bytes,
					     &len, &error), -SPULSE_ERROR_IO);
	assert_non_null(strstr(spulse_error_message(error), path));
	assert_non_null(strstr(spulse_error_message(error), cut ? "shorter" : "changed"));
	spulse_error_free(error);
	image_unref(image);
	close(fd);
	unlink(path);
	free(code);
}

static void test_file_cut_while_read(void **state)
{
	(void)state;
	check_changed_file(true);
}

static void test_file_rewritten_while_read(void **state)
{
	(void)state;
	check_changed_file(false);
}

/* A deleted file is still the same file. */
static void test_file_deleted_while_read(void **state)
{
	char path[] = "/tmp/spulse-test-XXXXXX";
	struct elf_builder b;
	struct image *image;
	int fd = mkstemp(path);
	(void)state;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .data = content, .len = sizeof(content)});
	assert_true(elf_builder_write(&b, path));
	assert_int_equal(image_open_path(path, &image, NULL), 0);
	unlink(path);
	close(fd);
	assert_content(image, ".text");
}

static void test_raw_reads(void **state)
{
	struct elf_builder b;
	struct image *image = NULL;
	uint8_t *bytes, buf[8];
	size_t len;
	(void)state;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_segment(&b, &(struct elf_builder_segment){
		.section = elf_builder_section(&b, &(struct elf_builder_section){
			.name = ".text", .addr = 0x4000, .data = content,
			.len = sizeof(content)})});
	elf_builder_segment(&b, &(struct elf_builder_segment){
		.offset = UINT64_MAX - 4, .vaddr = 0x9000, .filesz = 100});
	bytes = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(bytes, len, "file.so", &image, NULL), 0);
	free(bytes);
	assert_int_equal(image_read_address(image, 0x4004, buf, 8, NULL), 0);
	assert_memory_equal(buf, content + 4, 8);
	assert_int_equal(image_read_address(image, 0x4000 + sizeof(content) - 7, buf, 8, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(image_read_address(image, 0x3fff, buf, 8, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(image_read_address(image, 0x9000, buf, 8, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(image_read_address(image, 0x9008, buf, 8, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(image_read(image, len - 4, buf, 8, NULL), -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(image_read(image, UINT64_MAX - 2, buf, 8, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_zlib),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_old_zdebug),
		cmocka_unit_test(test_zstd),
		cmocka_unit_test(test_out_of_file),
		cmocka_unit_test(test_nobits),
		cmocka_unit_test(test_file_cut_while_read),
		cmocka_unit_test(test_file_rewritten_while_read),
		cmocka_unit_test(test_file_deleted_while_read),
		cmocka_unit_test(test_raw_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elf_builder.h"
#include "image/elfimage.h"

enum { K4 = 0x1000, K16 = 0x4000, K64 = 0x10000 };
#define NONE UINT64_MAX

struct part {
	uint64_t offset, vaddr, filesz;
};

static struct image *image_of(const struct part *parts, size_t count)
{
	struct elf_builder b;
	struct image *image = NULL;
	uint8_t *bytes;
	size_t len;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	for (size_t i = 0; i < count; i++)
		elf_builder_segment(&b, &(struct elf_builder_segment){
			.offset = parts[i].offset, .vaddr = parts[i].vaddr,
			.filesz = parts[i].filesz});
	bytes = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(bytes, len, "x", &image, NULL), 0);
	free(bytes);
	return image;
}

/* Bias of a mapping at 0x700000000000; NONE when there is none. */
static uint64_t bias_of(const struct image *image, uint64_t offset, uint64_t size, uint64_t page)
{
	uint64_t start = 0x700000000000, bias;

	if (!image_bias_pages(image, start, start + size, offset, page, &bias))
		return NONE;
	return bias - start;
}

#define IMAGE(...) image_of((struct part[]){__VA_ARGS__}, \
			    sizeof((struct part[]){__VA_ARGS__}) / sizeof(struct part))

static void test_plain(void **state)
{
	struct image *image = IMAGE({0, 0, 0x1234}, {0x2000, 0x2000, 0x5100}, {0x8000, 0x8000, 99});
	(void)state;

	assert_int_equal(bias_of(image, 0, 0x2000, K4), 0);
	assert_int_equal(bias_of(image, 0x2000, 0x6000, K4), (uint64_t)-0x2000);
	/* A part of a segment, split off by mprotect(). */
	assert_int_equal(bias_of(image, 0x3000, 0x1000, K4), (uint64_t)-0x3000);
	/* Nothing of the file is there. */
	assert_int_equal(bias_of(image, 0x20000, 0x1000, K4), NONE);
	assert_int_equal(bias_of(image, 0, 0, K4), NONE);
	assert_int_equal(bias_of(image, UINT64_MAX - 100, 0x1000, K4), NONE);
	image_unref(image);
}

/* Linkers that place segments side by side in the file at growing distances in memory. */
static void test_unequal_biases(void **state)
{
	struct image *image = IMAGE({0, 0, 0x6a0d8}, {0x6a0f0, 0x6b0f0, 0x55000},
				    {0xbf0f0, 0xc10f0, 0x3f10});
	(void)state;

	assert_int_equal(bias_of(image, 0, 0x6b000, K4), 0);
	assert_int_equal(bias_of(image, 0x6a000, 0x56000, K4), (uint64_t)-0x6b000);
	assert_int_equal(bias_of(image, 0xbf000, 0x5000, K4), (uint64_t)-0xc1000);
	image_unref(image);
}

static void test_one_mapping_of_several_segments(void **state)
{
	struct image *agree = IMAGE({0, 0x400000, 0x1000}, {0x1000, 0x401000, 0x3000},
				    {0x4000, 0x404000, 0x800});
	struct image *differ = IMAGE({0x1000, 0x401000, 0x3000}, {0x4000, 0x405000, 0x800});
	(void)state;

	assert_int_equal(bias_of(agree, 0, 0x5000, K4), (uint64_t)-0x400000);
	/* The one it begins with decides... */
	assert_int_equal(bias_of(differ, 0x1000, 0x4000, K4), (uint64_t)-0x401000);
	/* ... and without such a one all must agree. */
	assert_int_equal(bias_of(differ, 0x0, 0x5000, K4), NONE);
	image_unref(agree);
	image_unref(differ);
}

static void test_rounded_head_and_tail(void **state)
{
	struct image *image = IMAGE({0x1f10, 0x3f10, 0x10f0}, {0x5000, 0x9000, 0x1234});
	(void)state;

	/* The first page only, cut off before the segment's end. */
	assert_int_equal(bias_of(image, 0x1000, 0x1000, K4), (uint64_t)-0x3000);
	/* The last page, which reaches behind the end. */
	assert_int_equal(bias_of(image, 0x6000, 0x1000, K4), (uint64_t)-0xa000);
	/* Too far behind the end. */
	assert_int_equal(bias_of(image, 0x6000, 0x2000, K4), NONE);
	/* Rounding needs whole pages. */
	assert_int_equal(bias_of(image, 0x6001, 0x1000, K4), NONE);
	image_unref(image);
}

static void test_bigger_pages(void **state)
{
	struct image *image = IMAGE({0, 0, 0x3100}, {0x13f00, 0x23f00, 0x9000});
	(void)state;

	assert_int_equal(bias_of(image, 0x10000, K64, K64), (uint64_t)-0x20000);
	assert_int_equal(bias_of(image, 0x10000, K16, K16), (uint64_t)-0x20000);
	assert_int_equal(bias_of(image, 0x1c000, K16, K16), (uint64_t)-0x2c000);
	/* With small pages this mapping holds nothing of the second segment. */
	assert_int_equal(bias_of(image, 0x10000, K4, K4), NONE);
	image_unref(image);
}

/* Two segments in one page of the file, at two places in memory: not to be told apart. */
static void test_ambiguous_head(void **state)
{
	struct image *image = IMAGE({0, 0, 0x5d4}, {0x5e0, 0x15e0, 0x120});
	(void)state;

	assert_int_equal(bias_of(image, 0, 0x1000, K4), NONE);
	image_unref(image);
	image = IMAGE({0, 0, 0x5d4}, {0x5e0, 0x5e0, 0x120});
	assert_int_equal(bias_of(image, 0, 0x1000, K4), 0);
	image_unref(image);
}

static void test_segments_without_a_range(void **state)
{
	struct image *image = IMAGE({0x1000, 0x9000, 0}, {0x1000, 0x5000, UINT64_MAX},
				    {0x1000, 0x2000, 0x800});
	(void)state;

	assert_int_equal(bias_of(image, 0x1000, 0x1000, K4), (uint64_t)-0x2000);
	image_unref(image);
}

static void test_sections_without_segments(void **state)
{
	struct elf_builder b;
	struct image *image = NULL;
	uint8_t *bytes, code[0x100] = {0};
	size_t len;
	(void)state;

	elf_builder_init(&b, ET_REL, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .offset = 0x1000, .addr = 0x40, .data = code,
		.len = sizeof(code)});
	bytes = elf_builder_finish(&b, &len);
	assert_int_equal(image_from_bytes(bytes, len, "x", &image, NULL), 0);
	free(bytes);
	assert_int_equal(bias_of(image, 0x1000, 0x1000, K4), (uint64_t)-0x40);
	assert_int_equal(bias_of(image, 0x3000, 0x1000, K4), NONE);
	image_unref(image);
}

static void test_own_page_size(void **state)
{
	struct image *image = IMAGE({0x10000, 0x30000, 0x10000});
	uint64_t bias;
	(void)state;

	assert_true(image_bias(image, 0x10000, 0x20000, 0x10000, &bias));
	assert_int_equal(bias, (uint64_t)-0x20000);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_unequal_biases),
		cmocka_unit_test(test_one_mapping_of_several_segments),
		cmocka_unit_test(test_rounded_head_and_tail),
		cmocka_unit_test(test_bigger_pages),
		cmocka_unit_test(test_ambiguous_head),
		cmocka_unit_test(test_segments_without_a_range),
		cmocka_unit_test(test_sections_without_segments),
		cmocka_unit_test(test_own_page_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "elf_builder.h"
#include "image/image.h"

static bool count_symbol(void *data, const struct image_symbol *symbol)
{
	*(size_t *)data += strlen(symbol->name);
	return true;
}

/* Everything that the rooms ask of an image. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image;
	const struct image_section *sections;
	struct image_debug debug;
	struct image_debug_options options = {.path = "/nowhere/at/all"};
	size_t count, total = 0, len;
	uint64_t bias;
	uint8_t word[8];

	if (image_from_bytes(data, size, "fuzz", &image, NULL) < 0)
		return 0;
	sections = image_sections(image, &count);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes;

		if (image_section_bytes(image, &sections[i], &bytes, &len, NULL) == 0 && len)
			total += bytes[len - 1];
	}
	image_symbols(image, false, count_symbol, &total, NULL);
	image_symbols(image, true, count_symbol, &total, NULL);
	image_bias(image, 0x10000, 0x12000, 0x1000, &bias);
	image_read_address(image, image_first_vaddr(image), word, sizeof(word), NULL);
	if (image_debug_find(image, &options, &debug, NULL) == 0)
		image_debug_release(&debug);
	image_unref(image);
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const struct elf_builder_symbol symbols[] = {{.name = "f", .value = 0x1000},
							    {.name = "g", .value = 0x1010}};
	static const char link[] = "x.debug\0abc", alt[] = "y\0idididid";
	struct elf_builder b;
	unsigned int text;
	size_t packed_len;
	uint8_t *packed, *bytes;

	if (i > 1)
		return NULL;
	elf_builder_init(&b, ET_DYN, EM_X86_64);
	text = elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .addr = 0x1000, .data = "\xc3\x90\x90\x90", .len = 4});
	elf_builder_build_id(&b, "0123456789abcdef", 16);
	elf_builder_symbols(&b, false, symbols, 2);
	elf_builder_symbols(&b, true, symbols, 2);
	packed = elf_builder_zlib("hello hello hello", 17, &packed_len);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".debug_str", .flags = SHF_COMPRESSED, .data = packed, .len = packed_len});
	free(packed);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".gnu_debuglink", .data = link, .len = sizeof(link), .align = 4});
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".gnu_debugaltlink", .data = alt, .len = sizeof(alt)});
	elf_builder_segment(&b, &(struct elf_builder_segment){.section = text, .flags = PF_X});
	elf_builder_segment(&b, &(struct elf_builder_segment){.type = PT_DYNAMIC, .section = text});
	b.extended = i == 1;
	bytes = elf_builder_finish(&b, len);
	return bytes;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* An ELF file as the unwinder opens it: tables by sections, by segments, and code bytes. */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "cfi_builder.h"
#include "elf_builder.h"
#include "image/image.h"
#include "unwind/unwimage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unw_image *unw = NULL;
	struct image *image;
	struct cfi_row row;

	if (image_from_bytes(data, size, "fuzz", &image, NULL) < 0)
		return 0;
	if (unw_image_new(image, &unw, NULL) < 0)
		abort();
	for (uint64_t address = 0xff0; address < 0x1100; address += 13) {
		rule_t rule = unw_image_rule(unw, address);

		if (rule != unw_image_rule(unw, address))
			abort();
		unw_image_row(unw, address, &row);
		unw_image_call_before(unw, address);
		unw_image_is_entry(unw, address);
	}
	unw_image_rule(unw, 0);
	unw_image_rule(unw, UINT64_MAX);
	unw_image_unref(unw);
	image_unref(image);
	return 0;
}

static void add_tables(struct elf_builder *b, bool debug, bool segments)
{
	static const uint8_t start[] = {0x0c, 7, 8, 0x90, 1};
	struct cfi_builder_cie cie = {.ra = 16, .program = start, .program_len = sizeof(start)};
	struct cfi_builder *t = calloc(1, sizeof(*t));
	unsigned int eh, hdr;
	uint8_t bytes[64];
	uint64_t at;

	if (!t)
		abort();
	t->addr = 0x2000;
	t->debug = debug;
	at = cfi_build_cie(t, &cie);
	cfi_build_fde(t, at, 0x1000, 0x40, NULL, 0);
	cfi_build_fde(t, at, 0x1040, 0x20, NULL, 0);
	cfi_build_terminator(t);
	eh = elf_builder_section(
		b, &(struct elf_builder_section){.name = debug ? ".debug_frame" : ".eh_frame",
						 .flags = debug ? 0 : SHF_ALLOC,
						 .addr = debug ? 0 : 0x2000,
						 .data = t->bytes,
						 .len = t->len,
						 .align = 8});
	if (!debug) {
		hdr = elf_builder_section(
			b, &(struct elf_builder_section){.name = ".eh_frame_hdr",
							 .flags = SHF_ALLOC,
							 .addr = 0x3000,
							 .data = bytes,
							 .len = cfi_build_hdr(t, 0x3000, bytes),
							 .align = 4});
		if (segments) {
			elf_builder_segment(
				b, &(struct elf_builder_segment){.section = eh, .flags = PF_R});
			elf_builder_segment(
				b, &(struct elf_builder_segment){.section = hdr, .flags = PF_R});
		}
		elf_builder_segment(
			b, &(struct elf_builder_segment){.type = PT_GNU_EH_FRAME, .section = hdr});
	}
	free(t);
}

/* With sections; with segments only; with .debug_frame, of a Go program, too. */
uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	struct elf_builder b;
	unsigned int text;

	if (i > 2)
		return NULL;
	elf_builder_init(&b, ET_DYN, i == 1 ? EM_AARCH64 : EM_X86_64);
	text = elf_builder_section(
		&b, &(struct elf_builder_section){.name = ".text",
						  .flags = SHF_ALLOC | SHF_EXECINSTR,
						  .addr = 0x1000,
						  .data = "\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3",
						  .len = 11});
	elf_builder_segment(&b,
			    &(struct elf_builder_segment){.section = text, .flags = PF_R | PF_X});
	add_tables(&b, i == 2, i == 1);
	if (i == 2)
		elf_builder_section(&b, &(struct elf_builder_section){
						.name = ".gopclntab", .data = "x", .len = 1});
	b.no_sections = i == 1;
	b.header.e_entry = 0x1000;
	return elf_builder_finish(&b, len);
}

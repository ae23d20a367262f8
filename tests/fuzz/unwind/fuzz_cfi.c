/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A section of unwind tables: every entry, rows at several of its addresses, and their compiled
 * rules. The first byte chooses the kind of section and the architecture.
 */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "cfi_builder.h"
#include "unwind/rule.h"

enum { ADDR = 0x20000, MAX_ENTRIES = 64 };

/* Everything that a rule says must be in its range. */
static void check_rule(enum unw_arch arch, const struct cfi_row *row)
{
	rule_t rule = rule_compile(arch, row);

	if (rule_kind(rule) > RULE_REGISTER && rule_kind(rule) != RULE_END &&
	    rule_kind(rule) != RULE_TRUNCATED)
		abort();
	if (arch == UNW_X86_64 && rule_kind(rule) == RULE_SP &&
	    (rule_n(rule) < 1 || 8 * rule_n(rule) > RULE_MAX_CAPTURE))
		abort();
}

static void rows(const struct cfi_section *section, const struct cfi_cie *cie,
		 const struct cfi_fde *fde)
{
	uint64_t size = fde->end - fde->start;
	const uint64_t at[] = {0, 1, size / 3, size / 2, size - 1};

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		uint64_t address = fde->start + at[i];
		struct cfi_row row;

		if (!cfi_row(section, cie, fde, address, &row))
			continue;
		if (address < row.start || address >= row.end || row.end > fde->end)
			abort();
		check_rule(section->arch, &row);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_section section = {.addr = ADDR, .text_addr = 0x1000, .got_addr = 0x9000};
	struct cfi_cie cie = {0};
	uint64_t offset = 0, next;

	if (!size)
		return 0;
	section.debug = data[0] & 1;
	section.arch = data[0] & 2 ? UNW_AARCH64 : UNW_X86_64;
	section.bytes = data + 1;
	section.len = size - 1;
	for (unsigned int n = 0; n < MAX_ENTRIES; n++) {
		struct cfi_fde fde;
		enum cfi_found found = cfi_entry(&section, offset, &cie, &fde, &next);

		if (found == CFI_FDE)
			rows(&section, &cie, &fde);
		if (next && (next <= offset || next > section.len))
			abort();
		if (!next)
			break;
		offset = next;
	}
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const uint8_t start[] = {0x0c, 7, 8, 0x90, 1};
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x86, 2, 0x02, 3,	 0x0d,
					  6,	0x0a, 0x44, 0x0c, 7, 8,	   0xc6, 0x41,
					  0x0b, 0x2e, 16,   0x16, 3, 2,	   0x23, 16,
					  0x0f, 3,    0x77, 8,	  6, 0x09, 16,	 5};
	struct cfi_builder_cie cie = {.ra = 16, .program = start, .program_len = sizeof(start)};
	struct cfi_builder *b;
	uint8_t *bytes;
	uint64_t at;

	if (i > 3)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->addr = ADDR;
	b->debug = i & 1;
	b->wide = i == 3;
	if (i == 2)
		cie.augmentation = "zRS";
	if (i == 3)
		cie.version = 4;
	at = cfi_build_cie(b, &cie);
	cfi_build_fde(b, at, 0x1000, 0x40, program, sizeof(program));
	cfi_build_fde(b, at, 0x2000, 0x10, NULL, 0);
	cfi_build_terminator(b);
	*len = b->len + 1;
	bytes = malloc(*len);
	if (!bytes)
		abort();
	bytes[0] = i & 1;
	memcpy(bytes + 1, b->bytes, b->len);
	free(b);
	return bytes;
}

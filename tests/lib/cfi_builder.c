/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "cfi_builder.h"

#include <stdlib.h>
#include <string.h>

void cfi_put(struct cfi_builder *b, const void *bytes, size_t len)
{
	if (len > sizeof(b->bytes) - b->len)
		abort();
	if (len)
		memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

void cfi_put_number(struct cfi_builder *b, uint64_t value, size_t size)
{
	cfi_put(b, &value, size);
}

void cfi_put_uleb(struct cfi_builder *b, uint64_t value)
{
	do {
		cfi_put_number(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

void cfi_put_sleb(struct cfi_builder *b, int64_t value)
{
	for (;;) {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		if ((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40))) {
			cfi_put_number(b, byte, 1);
			return;
		}
		cfi_put_number(b, byte | 0x80, 1);
	}
}

/* Room for the length; where its number goes. */
static size_t begin(struct cfi_builder *b)
{
	if (b->wide)
		cfi_put_number(b, UINT32_MAX, 4);
	cfi_put_number(b, 0, b->wide ? 8 : 4);
	return b->len;
}

/* Fills up with nops and writes the length. */
static void finish(struct cfi_builder *b, size_t start)
{
	size_t size = b->wide ? 8 : 4;
	uint64_t len;

	while (b->len % 8 != 4)
		cfi_put_number(b, 0, 1);
	len = b->len - start;
	memcpy(b->bytes + start - size, &len, size);
}

static void put_cie_head(struct cfi_builder *b, const struct cfi_builder_cie *cie, uint8_t version)
{
	cfi_put_number(b, b->debug ? UINT64_MAX : 0, b->wide ? 8 : 4);
	cfi_put_number(b, version, 1);
	if (cie->augmentation)
		cfi_put(b, cie->augmentation, strlen(cie->augmentation) + 1);
	else
		cfi_put(b, b->debug ? "" : "zR", b->debug ? 1 : 3);
	if (version == 4) {
		cfi_put_number(b, cie->addr_size ? cie->addr_size : 8, 1);
		cfi_put_number(b, cie->segment_size, 1);
	}
}

uint64_t cfi_build_cie(struct cfi_builder *b, const struct cfi_builder_cie *cie)
{
	const char *letters = cie->augmentation ? cie->augmentation : b->debug ? "" : "zR";
	uint8_t version = cie->version ? cie->version : 1;
	uint64_t offset = b->len;
	size_t start = begin(b);

	put_cie_head(b, cie, version);
	cfi_put_uleb(b, cie->code_align ? cie->code_align : 1);
	cfi_put_sleb(b, cie->data_align ? cie->data_align : -8);
	if (version == 1)
		cfi_put_number(b, cie->ra, 1);
	else
		cfi_put_uleb(b, cie->ra);
	if (cie->data) {
		cfi_put_uleb(b, cie->data_len);
		cfi_put(b, cie->data, cie->data_len);
	} else if (letters[0] == 'z') {
		cfi_put_uleb(b, strchr(letters, 'R') ? 1 : 0);
		if (strchr(letters, 'R'))
			cfi_put_number(b, cie->encoding ? cie->encoding : 0x1b, 1);
	}
	cfi_put(b, cie->program, cie->program_len);
	finish(b, start);
	return offset;
}

static size_t begin_fde(struct cfi_builder *b, uint64_t cie)
{
	size_t start = begin(b);

	cfi_put_number(b, b->debug ? cie : start - cie, b->wide ? 8 : 4);
	return start;
}

uint64_t cfi_build_raw_fde(struct cfi_builder *b, uint64_t cie, const uint8_t *body, size_t len)
{
	uint64_t offset = b->len;
	size_t start = begin_fde(b, cie);

	cfi_put(b, body, len);
	finish(b, start);
	return offset;
}

uint64_t cfi_build_fde(struct cfi_builder *b, uint64_t cie, uint64_t code, uint64_t size,
		       const uint8_t *program, size_t len)
{
	uint64_t offset = b->len;
	size_t start = begin_fde(b, cie), pointer = b->debug ? 8 : 4;

	if (b->fde_count == CFI_BUILDER_FDES)
		abort();
	b->fdes[b->fde_count].start = code;
	b->fdes[b->fde_count++].offset = offset;
	cfi_put_number(b, b->debug ? code : code - (b->addr + b->len), pointer);
	cfi_put_number(b, size, pointer);
	if (!b->debug)
		cfi_put_uleb(b, 0);
	cfi_put(b, program, len);
	finish(b, start);
	return offset;
}

void cfi_build_terminator(struct cfi_builder *b)
{
	cfi_put_number(b, 0, 4);
}

static int by_start(const void *a, const void *b)
{
	int32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

size_t cfi_build_hdr(const struct cfi_builder *b, uint64_t addr, uint8_t *out)
{
	static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
	int32_t eh = (int32_t)(b->addr - (addr + 4));
	uint32_t count = (uint32_t)b->fde_count;

	memcpy(out, form, 4);
	memcpy(out + 4, &eh, 4);
	memcpy(out + 8, &count, 4);
	for (size_t i = 0; i < b->fde_count; i++) {
		int32_t row[2] = {(int32_t)(b->fdes[i].start - addr),
				  (int32_t)(b->addr + b->fdes[i].offset - addr)};

		memcpy(out + 12 + 8 * i, row, 8);
	}
	qsort(out + 12, count, 8, by_start);
	return 12 + 8 * (size_t)count;
}

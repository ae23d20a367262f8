/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame_hdr and .eh_frame, both of them hostile: the search by address. Two bytes say how long
 * the header is; it comes first. What the table finds must be what the section holds.
 */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>

#include "cfi_builder.h"
#include "unwind/index.h"

enum { EH = 0x20000, HDR = 0x40000 };

static void find(struct cfi_index *index, uint64_t address)
{
	struct cfi_fde fde;
	enum index_result result = index_find(index, address, &fde);

	if (result == INDEX_FOUND && (address < fde.start || address >= fde.end))
		abort();
	if (index->own_len > index->section.len / 4)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_section section = {.addr = EH};
	struct cfi_index index;
	uint16_t hdr_len;

	if (size < 2)
		return 0;
	memcpy(&hdr_len, data, 2);
	if (hdr_len > size - 2)
		hdr_len = (uint16_t)(size - 2);
	/* Of just that size, so that a read behind it is seen. */
	uint8_t *hdr = malloc(hdr_len ? hdr_len : 1);
	if (!hdr)
		abort();
	memcpy(hdr, data + 2, hdr_len);
	section.bytes = data + 2 + hdr_len;
	section.len = size - 2 - hdr_len;
	index_init(&index, &section, hdr_len ? hdr : NULL, hdr_len, HDR);
	for (uint64_t address = 0x1000; address < 0x3000; address += 0x1c0)
		find(&index, address);
	find(&index, 0);
	find(&index, UINT64_MAX);
	find(&index, INT64_MAX);
	index_release(&index);
	free(hdr);
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	struct cfi_builder_cie cie = {.ra = 16};
	struct cfi_builder *b;
	uint16_t hdr_len = 0;
	uint8_t *bytes;
	uint64_t at;

	if (i > 1)
		return NULL;
	b = calloc(1, sizeof(*b));
	bytes = malloc(4096);
	if (!b || !bytes)
		abort();
	b->addr = EH;
	at = cfi_build_cie(b, &cie);
	for (uint64_t n = 0; n < 8; n++)
		cfi_build_fde(b, at, 0x1000 + n * 0x400, 0x300, NULL, 0);
	if (i == 0)
		hdr_len = (uint16_t)cfi_build_hdr(b, HDR, bytes + 2);
	memcpy(bytes, &hdr_len, 2);
	memcpy(bytes + 2 + hdr_len, b->bytes, b->len);
	*len = 2u + hdr_len + b->len;
	free(b);
	return bytes;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "fdestarts.h"

#include <dwarf.h>
#include <stdlib.h>

#include "bytecursor.h"

enum {
	HEADER_VERSION = 1,
	PCREL_SDATA4 = 0x1b,
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b,
	HEADER_LEN = 12, /* four bytes of codes, where .eh_frame is, how many entries */
	ENTRY_LEN = 8,
	ENTRY_START = 24, /* of an entry: all that is looked at */
	COMMON_START = 32, /* of what entries share */
};

static int compare_starts(const void *a, const void *b)
{
	const struct fde_start *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool is_sorted(const struct fde_starts *starts)
{
	for (size_t i = 1; i < starts->len; i++)
		if (starts->data[i - 1].start > starts->data[i].start)
			return false;
	return true;
}

void fde_starts_read(struct fde_starts *starts, struct image *image)
{
	const struct image_section *section = image_section_by_name(image, ".eh_frame_hdr");
	struct spulse_error *error = NULL;
	const uint8_t *bytes;
	size_t len, count;

	*starts = (struct fde_starts){ 0 };
	if (!section || image_section_bytes(image, section, &bytes, &len, &error) < 0) {
		spulse_error_free(error);
		return;
	}
	if (len < HEADER_LEN || bytes[0] != HEADER_VERSION || bytes[1] != PCREL_SDATA4 ||
	    bytes[2] != UDATA4 || bytes[3] != DATAREL_SDATA4)
		return;
	count = MIN((size_t)load_u32(bytes + 8), (len - HEADER_LEN) / ENTRY_LEN);
	starts->base = section->addr;
	starts->data = malloc((count + 1) * sizeof(*starts->data));
	if (!starts->data)
		return;
	starts->len = count;
	memcpy(starts->data, bytes + HEADER_LEN, count * sizeof(*starts->data));
	if (!is_sorted(starts))
		qsort(starts->data, starts->len, sizeof(*starts->data), compare_starts);
}

static uint64_t start_of(const struct fde_starts *starts, size_t index)
{
	return starts->base + (int64_t)starts->data[index].start;
}

/* Index of the first start above an address. */
static size_t above(const struct fde_starts *starts, uint64_t address)
{
	size_t low = 0, high = starts->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (start_of(starts, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t fde_starts_after(const struct fde_starts *starts, uint64_t address)
{
	size_t index = above(starts, address);

	return index < starts->len ? start_of(starts, index) : UINT64_MAX;
}

/* ---- entries of .eh_frame ---- */

/* Bytes of an encoded pointer; 0: of no fixed size. */
static size_t pointer_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

/* How the entries that share this one write addresses; false when that cannot be told. */
static bool read_encoding(struct image *image, uint64_t at, uint8_t *encoding)
{
	uint8_t bytes[COMMON_START];
	struct cursor c = { bytes, bytes + sizeof(bytes), false };
	unsigned int version;
	const char *letter;

	if (image_read_address(image, at, bytes, sizeof(bytes), NULL) < 0)
		return false;
	take_fixed(&c, 8);
	version = take_fixed(&c, 1);
	letter = take_string(&c);
	take_uleb(&c);
	take_sleb(&c);
	if (version == 1)
		take_fixed(&c, 1);
	else
		take_uleb(&c);
	*encoding = DW_EH_PE_absptr;
	if (*letter++ != 'z')
		return !c.broken && !letter[-1];
	take_uleb(&c);
	for (; *letter && *letter != 'R' && !c.broken; letter++) {
		if (*letter == 'L')
			take_fixed(&c, 1);
		else if (*letter == 'P')
			skip_bytes(&c, pointer_size(take_fixed(&c, 1)));
		else if (*letter != 'S' && *letter != 'B' && *letter != 'G')
			return false;
	}
	if (*letter == 'R')
		*encoding = take_fixed(&c, 1);
	return !c.broken;
}

/* Length of the code of an entry; 0 when it cannot be told. */
static uint64_t code_length(struct image *image, uint64_t at)
{
	uint8_t bytes[ENTRY_START], encoding;
	struct cursor c = { bytes, bytes + sizeof(bytes), false };
	uint64_t length, shared;
	size_t size;

	if (image_read_address(image, at, bytes, sizeof(bytes), NULL) < 0)
		return 0;
	length = take_fixed(&c, 4);
	shared = take_fixed(&c, 4);
	if (!shared || length == UINT32_MAX || length < 12 || shared > at + 4 ||
	    !read_encoding(image, at + 4 - shared, &encoding))
		return 0;
	size = pointer_size(encoding);
	if (!size)
		return 0;
	take_fixed(&c, size);
	return take_fixed(&c, size);
}

bool fde_starts_find(const struct fde_starts *starts, struct image *image, uint64_t address,
		     uint64_t *start, uint64_t *end)
{
	size_t index = above(starts, address);
	uint64_t length;

	if (!index--)
		return false;
	length = code_length(image, starts->base + (int64_t)starts->data[index].entry);
	*start = start_of(starts, index);
	return !add_overflows(*start, length, end) && address < *end;
}

void fde_starts_release(struct fde_starts *starts)
{
	free(starts->data);
	*starts = (struct fde_starts){ 0 };
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "fdestarts.h"

#include <stdlib.h>

enum {
	HEADER_VERSION = 1,
	PCREL_SDATA4 = 0x1b,
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b,
	HEADER_LEN = 12, /* four bytes of codes, where .eh_frame is, how many entries */
	ENTRY_LEN = 8,
};

static int compare_starts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
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
	starts->data = malloc((count + 1) * sizeof(*starts->data));
	for (size_t i = 0; i < count && starts->data; i++)
		starts->data[starts->len++] = section->addr +
			(int64_t)(int32_t)load_u32(bytes + HEADER_LEN + i * ENTRY_LEN);
	if (starts->len)
		qsort(starts->data, starts->len, sizeof(*starts->data), compare_starts);
}

uint64_t fde_starts_after(const struct fde_starts *starts, uint64_t address)
{
	size_t low = 0, high = starts->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->data[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < starts->len ? starts->data[low] : UINT64_MAX;
}

void fde_starts_release(struct fde_starts *starts)
{
	free(starts->data);
	*starts = (struct fde_starts){ 0 };
}

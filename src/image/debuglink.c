/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "debuglink.h"

#include <stdlib.h>
#include <zlib.h>

enum { CHUNK = 1 << 18 };

/* A section that begins with a NUL-terminated name. */
static const uint8_t *read_link(struct image *image, const char *section_name, const char **name,
				size_t *rest)
{
	const struct image_section *section = image_section_by_name(image, section_name);
	const uint8_t *bytes, *nul;
	size_t len;

	if (!section || image_section_bytes(image, section, &bytes, &len, NULL) < 0)
		return NULL;
	nul = memchr(bytes, 0, len);
	if (!nul || nul == bytes)
		return NULL;
	*name = (const char *)bytes;
	*rest = len - (nul + 1 - bytes);
	return nul + 1;
}

bool debuglink_read(struct image *image, struct debuglink *link)
{
	size_t rest, pad;
	const uint8_t *p = read_link(image, ".gnu_debuglink", &link->name, &rest);

	if (!p)
		return false;
	/* The checksum is aligned to 4 within the section. */
	pad = -(p - (const uint8_t *)link->name) & 3;
	if (rest < pad + sizeof(link->crc))
		return false;
	link->crc = load_u32(p + pad);
	return true;
}

bool debuglink_read_alt(struct image *image, struct debuglink *link)
{
	link->build_id = read_link(image, ".gnu_debugaltlink", &link->name, &link->build_id_len);
	return link->build_id && link->build_id_len > 0;
}

bool debuglink_checksum(struct image *image, uint32_t *crc)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);
	uint64_t at = 0, size = image_size(image);
	uLong sum = crc32(0, NULL, 0);

	while (chunk && at < size) {
		size_t n = MIN(size - at, CHUNK);

		if (image_read(image, at, chunk, n, NULL) < 0)
			return false;
		sum = crc32(sum, chunk, n);
		at += n;
	}
	*crc = sum;
	return chunk != NULL;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_IMAGE_DEBUGLINK_H
#define SPULSE_IMAGE_DEBUGLINK_H

#include "image.h"

/* What .gnu_debuglink or .gnu_debugaltlink says; strings live as long as the image. */
struct debuglink {
	const char *name;
	uint32_t crc;		  /* debuglink */
	const uint8_t *build_id; /* altlink */
	size_t build_id_len;
};

/* False when there is none, or a damaged one. */
bool debuglink_read(struct image *image, struct debuglink *link);
bool debuglink_read_alt(struct image *image, struct debuglink *link);
/* CRC-32 of a whole file; false when it cannot be read to its end. */
bool debuglink_checksum(struct image *image, uint32_t *crc);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "minidebug.h"

#include <stdlib.h>

#include "config.h"
#include "elfimage.h"
#if SPULSE_HAVE_LZMA
#include <lzma.h>
#endif

#if SPULSE_HAVE_LZMA
enum { LZMA_MEMORY = 256 << 20, UNPACKED_MAX = 256 << 20, FIRST_ROOM = 1 << 20 };

/* Names pack into a tenth at best, but xz makes one byte of seven thousand equal ones. */
static size_t unpacked_max(size_t packed_len)
{
	return MIN(UNPACKED_MAX, 64 * packed_len + (16 << 20));
}

/* Doubles the room that is written to, up to the limit. */
static bool grow(uint8_t **bytes, size_t *room, size_t limit)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	uint8_t *grown = wanted <= limit ? realloc(*bytes, wanted) : NULL;

	if (!grown)
		return false;
	*bytes = grown;
	*room = wanted;
	return true;
}

static uint8_t *unpack(const uint8_t *packed, size_t len, size_t *out_len)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *bytes = NULL;
	size_t room = 0;
	lzma_ret r = lzma_stream_decoder(&stream, LZMA_MEMORY, 0);

	stream.next_in = packed;
	stream.avail_in = len;
	while (r == LZMA_OK &&
	       (stream.total_out < room || grow(&bytes, &room, unpacked_max(len)))) {
		stream.next_out = bytes + stream.total_out;
		stream.avail_out = room - stream.total_out;
		r = lzma_code(&stream, LZMA_FINISH);
	}
	*out_len = stream.total_out;
	lzma_end(&stream);
	if (r == LZMA_STREAM_END)
		return bytes;
	free(bytes);
	return NULL;
}

static int unpack_image(const char *path, const uint8_t *packed, size_t len,
			struct image **image_out, struct spulse_error **err)
{
	_cleanup_free_ char *name = NULL;
	size_t plain_len;
	uint8_t *plain = unpack(packed, len, &plain_len);

	if (!plain)
		return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, path,
				"damaged, or larger than its size or 256 MiB allow once "
				"decompressed");
	name = malloc(strlen(path) + sizeof("(.gnu_debugdata)"));
	if (!name) {
		free(plain);
		return err_no_memory(err);
	}
	strcpy(stpcpy(name, path), "(.gnu_debugdata)");
	return image_new_bytes(plain, plain_len, name, image_out, err);
}
#else
static int unpack_image(const char *path, const uint8_t *packed, size_t len,
			struct image **image_out, struct spulse_error **err)
{
	(void)packed, (void)len, (void)image_out;
	return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, path,
			"compressed with xz, which this build lacks");
}
#endif

int minidebug_open(struct image *image, struct image **mini_out, struct spulse_error **err)
{
	const struct image_section *section = image_section_by_name(image, ".gnu_debugdata");
	const uint8_t *packed;
	size_t len;
	int r;

	if (!section)
		return 0;
	if ((r = image_section_bytes(image, section, &packed, &len, err)) < 0 ||
	    (r = unpack_image(image->path, packed, len, mini_out, err)) < 0)
		return r;
	return 1;
}

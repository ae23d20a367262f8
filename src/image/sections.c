/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Section contents, read at first use. Compressed ones come in three forms: SHF_COMPRESSED with
 * zlib or zstd, and the older ".zdebug" sections, zlib behind "ZLIB" and a big-endian size.
 */
#include "elfimage.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "config.h"
#if SPULSE_HAVE_ZSTD
#include <zstd.h>
#endif

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum { ZDEBUG_HEADER = 12 };

static const char zdebug_prefix[] = ".zdebug";
static const char debug_prefix[] = ".debug";

static int bad_section(const struct image *image, const struct image_section *section,
		       struct spulse_error **err, enum spulse_error_kind kind, const char *what)
{
	return err_file(err, kind, 0, image->path, "%s: section %s at offset %#llx: %s",
			image->path, section->name, (unsigned long long)section->offset, what);
}

const struct image_section *image_section_by_name(const struct image *image, const char *name)
{
	const struct image_section *old_form = NULL;
	size_t prefix = strlen(debug_prefix);
	bool debug = has_prefix(name, debug_prefix);

	for (size_t i = 0; i < image->section_count; i++) {
		const struct image_section *s = &image->sections[i];

		if (s->type == SHT_NULL)
			continue;
		if (strcmp(s->name, name) == 0)
			return s;
		if (debug && has_prefix(s->name, zdebug_prefix) &&
		    strcmp(s->name + strlen(zdebug_prefix), name + prefix) == 0)
			old_form = s;
	}
	return old_form;
}

static bool inflate_zlib(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
	z_stream z = {0};
	size_t in_left = in_len, out_left = out_len;
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return false;
	z.next_in = (Bytef *)in;
	z.next_out = out;
	while (r == Z_OK) {
		/* zlib counts in unsigned int: feed it in pieces. */
		uInt in_piece = MIN(in_left, 1u << 30), out_piece = MIN(out_left, 1u << 30);

		z.avail_in = in_piece;
		z.avail_out = out_piece;
		r = inflate(&z, Z_NO_FLUSH);
		in_left -= in_piece - z.avail_in;
		out_left -= out_piece - z.avail_out;
	}
	inflateEnd(&z);
	return r == Z_STREAM_END && out_left == 0;
}

static bool inflate_zstd(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
#if SPULSE_HAVE_ZSTD
	return ZSTD_decompress(out, out_len, in, in_len) == out_len;
#else
	(void)in, (void)in_len, (void)out, (void)out_len;
	return false;
#endif
}

struct packing {
	uint32_t type; /* ELFCOMPRESS_* */
	uint64_t size;
	size_t header;
};

/* 1: packed, 0: plain, or an error. */
static int find_packing(const struct image *image, const struct image_section *section,
			const struct image_content *raw, struct packing *packing,
			struct spulse_error **err)
{
	if (section->flags & SHF_COMPRESSED) {
		Elf64_Chdr header;

		if (raw->len < sizeof(header))
			return bad_section(image, section, err, SPULSE_ERROR_INVALID_INPUT,
					   "too short for its compression header");
		memcpy(&header, raw->bytes, sizeof(header));
		*packing = (struct packing){header.ch_type, header.ch_size, sizeof(header)};
		return 1;
	}
	if (has_prefix(section->name, zdebug_prefix) && raw->len >= ZDEBUG_HEADER &&
	    memcmp(raw->bytes, "ZLIB", 4) == 0) {
		*packing = (struct packing){ELFCOMPRESS_ZLIB,
					    __builtin_bswap64(load_u64(raw->bytes + 4)),
					    ZDEBUG_HEADER};
		return 1;
	}
	return 0;
}

/*
 * What one section may unpack to is bounded by how well zlib packs, but a file of many such
 * sections, or of one section listed many times, would take a thousand times its size. Real debug
 * information takes 3 to 6 times; small files get by on the constant.
 */
static bool out_of_proportion(const struct image *image, uint64_t size)
{
	return image->owned_bytes + size > 16 * image->size + (64U << 20);
}

static int check_packing(const struct image *image, const struct image_section *section,
			 const struct packing *packing, size_t packed_len,
			 struct spulse_error **err)
{
	if (packing->type != ELFCOMPRESS_ZLIB && packing->type != ELFCOMPRESS_ZSTD)
		return bad_section(image, section, err, SPULSE_ERROR_UNSUPPORTED,
				   "compressed in an unknown way");
	if (packing->type == ELFCOMPRESS_ZSTD && !SPULSE_HAVE_ZSTD)
		return bad_section(image, section, err, SPULSE_ERROR_UNSUPPORTED,
				   "compressed with zstd, which this build lacks");
	if (packing->size > ELF_MAX_SECTION_BYTES)
		return bad_section(image, section, err, SPULSE_ERROR_UNSUPPORTED,
				   "larger than 1 GiB once decompressed");
	/* zlib packs 1,032 bytes into one at best; zstd a block of 128 KiB into four. */
	if (packing->size / (packing->type == ELFCOMPRESS_ZLIB ? 1032 : 32768) > packed_len)
		return bad_section(image, section, err, SPULSE_ERROR_INVALID_INPUT,
				   "claims more than its compressed data can hold");
	if (out_of_proportion(image, packing->size))
		return bad_section(image, section, err, SPULSE_ERROR_UNSUPPORTED,
				   "would take more than 16 times the file, decompressed");
	return 0;
}

/* Replaces compressed content. */
static int unpack(const struct image *image, const struct image_section *section,
		  struct image_content *content, struct spulse_error **err)
{
	struct packing packing = {0};
	uint8_t *plain;
	bool done;
	int r = find_packing(image, section, content, &packing, err);

	if (r <= 0 || (r = check_packing(image, section, &packing, content->len, err)) < 0)
		return r;
	plain = malloc(packing.size + 1);
	if (!plain)
		return err_no_memory(err);
	done = (packing.type == ELFCOMPRESS_ZLIB ? inflate_zlib : inflate_zstd)(
		content->bytes + packing.header, content->len - packing.header, plain,
		packing.size);
	if (!done) {
		free(plain);
		return bad_section(image, section, err, SPULSE_ERROR_INVALID_INPUT,
				   "its compressed data is damaged");
	}
	plain[packing.size] = 0;
	free(content->bytes);
	content->bytes = plain;
	content->len = packing.size;
	return 0;
}

static int load(struct image *image, const struct image_section *section,
		struct image_content *content, struct spulse_error **err)
{
	struct image_content fresh = {.len = section->type == SHT_NOBITS ? 0 : section->size};
	uint64_t end;
	int r;

	if (add_overflows(section->offset, fresh.len, &end) || (fresh.len && end > image->size))
		return bad_section(image, section, err, SPULSE_ERROR_INVALID_INPUT,
				   "lies outside the file");
	if (fresh.len > ELF_MAX_SECTION_BYTES)
		return bad_section(image, section, err, SPULSE_ERROR_UNSUPPORTED,
				   "larger than 1 GiB");
	fresh.bytes = malloc(fresh.len + 1);
	if (!fresh.bytes)
		return err_no_memory(err);
	fresh.bytes[fresh.len] = 0;
	if ((fresh.len &&
	     (r = image_read(image, section->offset, fresh.bytes, fresh.len, err)) < 0) ||
	    (r = unpack(image, section, &fresh, err)) < 0) {
		free(fresh.bytes);
		return r;
	}
	fresh.loaded = true;
	*content = fresh;
	image->owned_bytes += fresh.len + 1;
	return 0;
}

int image_section_bytes(struct image *image, const struct image_section *section,
			const uint8_t **bytes, size_t *len, struct spulse_error **err)
{
	struct image_content *content = &image->contents[section - image->sections];
	int r = 0;

	pthread_mutex_lock(&image->lock);
	if (!content->loaded)
		r = load(image, section, content, err);
	pthread_mutex_unlock(&image->lock);
	if (r < 0)
		return r;
	*bytes = content->bytes;
	*len = content->len;
	return 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_IMAGE_ELFIMAGE_H
#define SPULSE_IMAGE_ELFIMAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "image.h"

/*
 * Limits on what a file may make us allocate. Every number below is also bounded by the size of
 * the file, but a sparse file can claim any size.
 */
enum {
	ELF_MAX_SEGMENTS = 65536,
	ELF_MAX_SECTIONS = 1 << 18,
	ELF_MAX_NAMES = 32 << 20,	/* bytes of section names */
	ELF_MAX_NOTES = 1 << 20,	/* bytes of one note section */
	ELF_MAX_BUILD_ID = 64,
};
#define ELF_MAX_SECTION_BYTES ((uint64_t)1 << 30)

/* A section's content once it was read. */
struct image_content {
	uint8_t *bytes; /* one NUL more than len, so that string tables end */
	size_t len;
	bool loaded;
};

struct image {
	atomic_uint refs;
	uint64_t token;
	struct image_identity identity;
	char *path;
	int fd; /* -1: bytes */
	uint8_t *bytes;
	uint64_t size;
	bool vdso;

	uint16_t machine, type;
	uint64_t entry;
	VEC(struct image_segment) segments; /* PT_LOAD, as in the table */
	struct image_segment eh_frame_hdr, dynamic;
	bool has_eh_frame_hdr, has_dynamic;
	struct image_section *sections;
	size_t section_count;
	char *section_names;
	size_t section_names_len;
	uint8_t build_id[ELF_MAX_BUILD_ID];
	size_t build_id_len;

	pthread_mutex_t lock; /* guards the members below */
	struct image_content *contents; /* one per section */
	struct image_content dynamic_strings, dynamic_symbols; /* found without sections */
	bool dynamic_looked;
	_Atomic size_t owned_bytes;
};

/* An image over an open file; fd is taken over in any case. UNSUPPORTED: not ELF. */
int image_new_file(int fd, const char *path, const struct image_identity *identity,
		   struct image **image_out, struct spulse_error **err);
/* An image over bytes from malloc(); taken over in any case. */
int image_new_bytes(uint8_t *bytes, size_t len, const char *name, struct image **image_out,
		    struct spulse_error **err);
/* Parses headers, tables and notes of a fresh image. */
int elf_parse(struct image *image, struct spulse_error **err);
/* Identity of what stat says; generation 0. */
struct stat;
void image_identity_of(const struct stat *st, struct image_identity *identity);
/* Bytes of memory the image holds now. */
size_t image_owned_bytes(const struct image *image);
/* image_bias() for pages of a given size, a power of two. */
bool image_bias_pages(const struct image *image, uint64_t start, uint64_t end,
		      uint64_t file_offset, uint64_t page, uint64_t *bias);
/* This process's own vDSO. */
int image_vdso_new(struct image **image_out, struct spulse_error **err);

/* Cache of open images by identity. */
struct image *image_cache_find(struct image_cache *cache, const struct image_identity *identity);
/* Adds and gives what others shall use: `image`, or one that was added meanwhile (a new
 * reference; the one passed is then dropped). */
struct image *image_cache_add(struct image_cache *cache, struct image *image);
struct image *image_cache_vdso(struct image_cache *cache, struct spulse_error **err);

#endif

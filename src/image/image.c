/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "elfimage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static _Atomic uint64_t last_token;

static int64_t nanoseconds(const struct timespec *ts)
{
	return (int64_t)((uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec);
}

void image_identity_of(const struct stat *st, struct image_identity *identity)
{
	*identity = (struct image_identity){
		.dev_major = major(st->st_dev), .dev_minor = minor(st->st_dev),
		.inode = st->st_ino, .size = st->st_size,
		.mtime_ns = nanoseconds(&st->st_mtim), .ctime_ns = nanoseconds(&st->st_ctim),
	};
}

static struct image *image_alloc(const char *path)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->fd = -1;
	image->refs = 1;
	image->token = ++last_token;
	pthread_mutex_init(&image->lock, NULL);
	image->path = strdup(path);
	if (!image->path) {
		image_unref(image);
		return NULL;
	}
	return image;
}

static size_t metadata_bytes(const struct image *image)
{
	return sizeof(*image) + image->segments.cap * sizeof(*image->segments.data) +
	       image->section_count * (sizeof(*image->sections) + sizeof(*image->contents)) +
	       image->section_names_len + strlen(image->path) + (image->bytes ? image->size : 0);
}

/* Parses; gives the image away or drops it. */
static int image_finish(struct image *image, struct image **image_out, struct spulse_error **err)
{
	int r = elf_parse(image, err);

	if (r < 0) {
		image_unref(image);
		return r;
	}
	image->owned_bytes += metadata_bytes(image);
	*image_out = image;
	return 0;
}

int image_new_file(int fd, const char *path, const struct image_identity *identity,
		   struct image **image_out, struct spulse_error **err)
{
	struct image *image = image_alloc(path);

	if (!image) {
		close(fd);
		return err_no_memory(err);
	}
	image->fd = fd;
	image->identity = *identity;
	image->size = identity->size;
	return image_finish(image, image_out, err);
}

int image_new_bytes(uint8_t *bytes, size_t len, const char *name, struct image **image_out,
		    struct spulse_error **err)
{
	struct image *image = image_alloc(name);

	if (!image) {
		free(bytes);
		return err_no_memory(err);
	}
	image->bytes = bytes;
	image->size = len;
	image->identity.size = len;
	return image_finish(image, image_out, err);
}

int image_from_bytes(const void *bytes, size_t len, const char *name, struct image **image_out,
		     struct spulse_error **err)
{
	uint8_t *copy = malloc(MAX(len, 1));

	if (!copy)
		return err_no_memory(err);
	if (len)
		memcpy(copy, bytes, len);
	return image_new_bytes(copy, len, name, image_out, err);
}

struct image *image_ref(struct image *image)
{
	if (image)
		atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
	return image;
}

void image_unref(struct image *image)
{
	if (!image || atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < image->section_count; i++)
		free(image->contents[i].bytes);
	free(image->contents);
	free(image->dynamic_strings.bytes);
	free(image->dynamic_symbols.bytes);
	free(image->sections);
	free(image->section_names);
	vec_free(&image->segments);
	free(image->bytes);
	free(image->path);
	cleanup_close(&image->fd);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

size_t image_owned_bytes(const struct image *image)
{
	return image->owned_bytes;
}

/* A lazily read file must still be the one that was opened; ctime changes by unlinking too. */
static int check_unchanged(const struct image *image, struct spulse_error **err)
{
	struct image_identity now;
	struct stat st;

	if (fstat(image->fd, &st) < 0)
		return err_io(err, errno, image->path, "cannot examine %s", image->path);
	image_identity_of(&st, &now);
	if (now.size == image->identity.size && now.mtime_ns == image->identity.mtime_ns)
		return 0;
	return err_file(err, SPULSE_ERROR_IO, 0, image->path,
			"%s changed after it was opened (size %llu, then %llu)", image->path,
			(unsigned long long)image->identity.size, (unsigned long long)now.size);
}

static int read_file_bytes(struct image *image, uint64_t offset, void *buf, size_t len,
			   struct spulse_error **err)
{
	ssize_t n = pread_full(image->fd, buf, len, offset);

	if (n < 0)
		return err_io(err, -n, image->path, "cannot read %s at offset %#llx", image->path,
			      (unsigned long long)offset);
	if ((size_t)n < len)
		return err_file(err, SPULSE_ERROR_IO, 0, image->path,
				"%s became shorter: it ends at %#llx, %zu bytes at %#llx wanted",
				image->path, (unsigned long long)(offset + n), len,
				(unsigned long long)offset);
	return check_unchanged(image, err);
}

int image_read(struct image *image, uint64_t offset, void *buf, size_t len,
	       struct spulse_error **err)
{
	uint64_t end;

	if (add_overflows(offset, len, &end) || end > image->size)
		return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, image->path,
				"%s: %zu bytes at offset %#llx lie outside the file", image->path,
				len, (unsigned long long)offset);
	if (image->fd >= 0)
		return read_file_bytes(image, offset, buf, len, err);
	if (len)
		memcpy(buf, image->bytes + offset, len);
	return 0;
}

int image_read_address(struct image *image, uint64_t vaddr, void *buf, size_t len,
		       struct spulse_error **err)
{
	for (size_t i = 0; i < image->segments.len; i++) {
		const struct image_segment *s = &image->segments.data[i];
		uint64_t at = vaddr - s->vaddr, offset;

		if (vaddr < s->vaddr || at >= s->filesz || len > s->filesz - at ||
		    add_overflows(s->offset, at, &offset))
			continue;
		return image_read(image, offset, buf, len, err);
	}
	return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, image->path,
			"%s: no segment holds %zu bytes at address %#llx", image->path, len,
			(unsigned long long)vaddr);
}

const struct image_identity *image_identity(const struct image *image)
{
	return &image->identity;
}

uint64_t image_token(const struct image *image)
{
	return image->token;
}

const char *image_path(const struct image *image)
{
	return image->path;
}

int image_fd(const struct image *image)
{
	return image->fd;
}

bool image_is_vdso(const struct image *image)
{
	return image->vdso;
}

uint16_t image_machine(const struct image *image)
{
	return image->machine;
}

uint16_t image_type(const struct image *image)
{
	return image->type;
}

uint64_t image_entry(const struct image *image)
{
	return image->entry;
}

uint64_t image_size(const struct image *image)
{
	return image->size;
}

const uint8_t *image_build_id(const struct image *image, size_t *len)
{
	*len = image->build_id_len;
	return image->build_id_len ? image->build_id : NULL;
}

const struct image_segment *image_segments(const struct image *image, size_t *count)
{
	*count = image->segments.len;
	return image->segments.data;
}

bool image_eh_frame_hdr_segment(const struct image *image, struct image_segment *segment)
{
	if (image->has_eh_frame_hdr)
		*segment = image->eh_frame_hdr;
	return image->has_eh_frame_hdr;
}

const struct image_section *image_sections(const struct image *image, size_t *count)
{
	*count = image->section_count;
	return image->sections;
}

uint64_t image_first_vaddr(const struct image *image)
{
	return image->segments.len ? image->segments.data[0].vaddr : 0;
}

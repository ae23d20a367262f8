/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "dynamic.h"

#include <elf.h>
#include <stdlib.h>

#include "elfimage.h"

enum {
	MAX_DYNAMIC = 4096,		/* entries looked at */
	MAX_BUCKETS = 1 << 22,
	MAX_SYMBOLS = 1 << 24,
	MAX_STRINGS = 512 << 20,
};

struct tables {
	uint64_t symbols, strings, strings_len, hash, gnu_hash;
};

static bool read_entries(struct image *image, struct tables *tables)
{
	for (uint64_t i = 0; i < MIN(image->dynamic.filesz / sizeof(Elf64_Dyn), MAX_DYNAMIC); i++) {
		Elf64_Dyn dyn;

		if (image_read(image, image->dynamic.offset + i * sizeof(dyn), &dyn, sizeof(dyn),
			       NULL) < 0)
			return false;
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_SYMTAB)
			tables->symbols = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRTAB)
			tables->strings = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRSZ)
			tables->strings_len = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_HASH)
			tables->hash = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_GNU_HASH)
			tables->gnu_hash = dyn.d_un.d_ptr;
	}
	return tables->symbols && tables->strings && tables->strings_len;
}

static bool read_word(struct image *image, uint64_t address, uint32_t *word)
{
	return image_read_address(image, address, word, sizeof(*word), NULL) == 0;
}

/* The highest symbol that a bucket starts with, followed to the end of its chain. */
static uint64_t count_gnu(struct image *image, uint64_t hash)
{
	uint32_t head[4], last = 0, word = 0;
	_cleanup_free_ uint32_t *buckets = NULL;
	uint64_t chains;

	if (image_read_address(image, hash, head, sizeof(head), NULL) < 0 || head[0] == 0 ||
	    head[0] > MAX_BUCKETS)
		return 0;
	buckets = malloc(head[0] * sizeof(*buckets));
	hash += sizeof(head) + (uint64_t)head[2] * sizeof(uint64_t);
	if (!buckets ||
	    image_read_address(image, hash, buckets, head[0] * sizeof(*buckets), NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < head[0]; i++)
		last = MAX(last, buckets[i]);
	if (last < head[1])
		return head[1];
	chains = hash + head[0] * sizeof(*buckets);
	while (last < MAX_SYMBOLS &&
	       read_word(image, chains + (uint64_t)(last - head[1]) * sizeof(word), &word) &&
	       !(word & 1))
		last++;
	return (uint64_t)last + 1;
}

static uint64_t count_symbols(struct image *image, const struct tables *tables)
{
	uint32_t chains;

	if (tables->hash && read_word(image, tables->hash + sizeof(chains), &chains))
		return chains;
	return tables->gnu_hash ? count_gnu(image, tables->gnu_hash) : 0;
}

static int load(struct image *image, uint64_t address, uint64_t len, struct image_content *content,
		struct spulse_error **err)
{
	uint8_t *bytes;
	int r;

	bytes = malloc(len + 1);
	if (!bytes)
		return err_no_memory(err);
	if ((r = image_read_address(image, address, bytes, len, err)) < 0) {
		free(bytes);
		return r;
	}
	bytes[len] = 0;
	*content = (struct image_content){bytes, len, true};
	image->owned_bytes += len + 1;
	return 0;
}

static int find(struct image *image, struct spulse_error **err)
{
	struct tables tables = {0};
	uint64_t count;
	int r;

	if (!image->has_dynamic || !read_entries(image, &tables))
		return 0;
	count = count_symbols(image, &tables);
	if (count == 0)
		return 0;
	if (count > MAX_SYMBOLS || tables.strings_len > MAX_STRINGS ||
	    count * sizeof(Elf64_Sym) > image->size || tables.strings_len > image->size)
		return err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, image->path,
				"%s: the dynamic segment claims tables larger than the file",
				image->path);
	if ((r = load(image, tables.strings, tables.strings_len, &image->dynamic_strings, err)) < 0)
		return r;
	return load(image, tables.symbols, count * sizeof(Elf64_Sym), &image->dynamic_symbols,
		    err);
}

int dynamic_load(struct image *image, struct spulse_error **err)
{
	int r = 0;

	pthread_mutex_lock(&image->lock);
	if (!image->dynamic_looked) {
		r = find(image, err);
		image->dynamic_looked = r == 0;
		if (r < 0) {
			free(take_ptr(image->dynamic_strings.bytes));
			image->dynamic_strings.len = 0;
		}
	}
	pthread_mutex_unlock(&image->lock);
	return r;
}

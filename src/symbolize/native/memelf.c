/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "memelf.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PART_ALIGN = 16, PARTS_MAX = 64 };
static const uint64_t memelf_max = 64ull << 30;

/* A section that is read where it is looked at. Blocks that are there have a bit. */
struct memelf_lazy {
	const char *name;
	struct image *image;
	uint64_t file_offset, offset, size;
	pthread_mutex_t lock;
	uint8_t *present;
	uint64_t missing; /* blocks */
};

enum { BLOCK = 4096, PREFAULT_MIN = 32768 };

/* Layout: header, parts, names, section headers. */
struct layout {
	uint64_t offsets[PARTS_MAX], sizes[PARTS_MAX];
	uint32_t names[PARTS_MAX];
	uint64_t names_offset, headers_offset, total;
	struct strbuf names_text;
	uint32_t names_name;
};

static bool is_plain(const struct memelf_part *part)
{
	return part->image && !(part->section->flags & SHF_COMPRESSED) &&
	       !has_prefix(part->section->name, ".zdebug");
}

/* The size in memory: of a compressed section it is known once it was unpacked. */
static int part_size(const struct memelf_part *part, uint64_t *size, struct spulse_error **err)
{
	const uint8_t *bytes;
	size_t len;
	int r;

	if (!part->image) {
		*size = part->len;
		return 0;
	}
	if (is_plain(part)) {
		*size = part->section->size;
		if (part->section->offset > image_size(part->image) ||
		    *size > image_size(part->image) - part->section->offset)
			return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, image_path(part->image),
					"section %s of '%s' lies outside of the file", part->name,
					image_path(part->image));
		return 0;
	}
	r = image_section_bytes(part->image, part->section, &bytes, &len, err);
	*size = len;
	return r;
}

static int lay_out(struct layout *layout, const struct memelf_part *parts, size_t count,
		   struct spulse_error **err)
{
	uint64_t at = sizeof(Elf64_Ehdr);
	int r;

	strbuf_putc(&layout->names_text, 0);
	for (size_t i = 0; i < count; i++) {
		r = part_size(&parts[i], &layout->sizes[i], err);
		if (r < 0)
			return r;
		at = (at + PART_ALIGN - 1) & -(uint64_t)PART_ALIGN;
		layout->offsets[i] = at;
		if (layout->sizes[i] > memelf_max - MIN(at, memelf_max))
			return err_set(err, SPULSE_ERROR_UNSUPPORTED,
				       "debug sections are too large");
		at += layout->sizes[i];
		layout->names[i] = layout->names_text.len;
		strbuf_add(&layout->names_text, parts[i].name, strlen(parts[i].name) + 1);
	}
	layout->names_name = layout->names_text.len;
	strbuf_add(&layout->names_text, ".shstrtab", sizeof(".shstrtab"));
	if (layout->names_text.failed)
		return err_no_memory(err);
	layout->names_offset = at;
	at = (at + layout->names_text.len + 7) & -(uint64_t)8;
	layout->headers_offset = at;
	layout->total = at + (count + 2) * sizeof(Elf64_Shdr);
	return 0;
}

static int fill_part(uint8_t *to, const struct memelf_part *part, uint64_t size,
		     struct spulse_error **err)
{
	const uint8_t *bytes = part->bytes;
	size_t len = part->len;
	int r;

	if (is_plain(part))
		return image_read(part->image, part->section->offset, to, size, err);
	if (part->image) {
		r = image_section_bytes(part->image, part->section, &bytes, &len, err);
		if (r < 0)
			return r;
	}
	if (len)
		memcpy(to, bytes, MIN(len, size));
	return 0;
}

static void write_headers(struct memelf *elf, const struct layout *layout, uint16_t machine,
			  size_t count)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)elf->base;
	Elf64_Shdr *sections = (Elf64_Shdr *)(elf->base + layout->headers_offset);

	*header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_shoff = layout->headers_offset,
		.e_ehsize = sizeof(*header),
		.e_shentsize = sizeof(*sections),
		.e_shnum = count + 2,
		.e_shstrndx = count + 1,
	};
	for (size_t i = 0; i < count; i++)
		sections[i + 1] = (Elf64_Shdr){
			.sh_name = layout->names[i],
			.sh_type = SHT_PROGBITS,
			.sh_offset = layout->offsets[i],
			.sh_size = layout->sizes[i],
			.sh_addralign = 1,
		};
	memcpy(elf->base + layout->names_offset, layout->names_text.data, layout->names_text.len);
	sections[count + 1] = (Elf64_Shdr){
		.sh_name = layout->names_name,
		.sh_type = SHT_STRTAB,
		.sh_offset = layout->names_offset,
		.sh_size = layout->names_text.len,
		.sh_addralign = 1,
	};
}

/* ---- lazy sections ---- */

static int add_lazy(struct memelf *elf, const struct memelf_part *part, uint64_t offset,
		    uint64_t size, struct spulse_error **err)
{
	struct memelf_lazy *lazy = &elf->lazy[elf->lazy_count];

	*lazy = (struct memelf_lazy){
		.name = part->name,
		.image = part->image,
		.file_offset = part->section->offset,
		.offset = offset,
		.size = size,
		.missing = (size + BLOCK - 1) / BLOCK,
		.present = calloc(size / BLOCK / 8 + 1, 1),
	};
	if (!lazy->present)
		return err_no_memory(err);
	pthread_mutex_init(&lazy->lock, NULL);
	elf->lazy_count++;
	return 0;
}

static bool is_present(const struct memelf_lazy *lazy, uint64_t block)
{
	return __atomic_load_n(&lazy->present[block / 8], __ATOMIC_ACQUIRE) & 1 << block % 8;
}

/* One call for many pages costs less than a fault for each. That it fails does not matter. */
static void prefault(uint8_t *bytes, uint64_t len)
{
#ifdef MADV_POPULATE_WRITE
	uintptr_t page = sysconf(_SC_PAGESIZE), from = (uintptr_t)bytes & -page;

	if (len >= PREFAULT_MIN)
		madvise((void *)from, (uintptr_t)bytes + len - from, MADV_POPULATE_WRITE);
#else
	(void)bytes;
	(void)len;
#endif
}

/* Reads blocks [from, to), all of them missing. */
static bool read_blocks(const struct memelf *elf, struct memelf_lazy *lazy, uint64_t from,
			uint64_t to)
{
	uint64_t start = from * BLOCK, end = MIN(to * BLOCK, lazy->size);
	struct spulse_error *error = NULL;

	prefault(elf->base + lazy->offset + start, end - start);

	if (image_read(lazy->image, lazy->file_offset + start, elf->base + lazy->offset + start,
		       end - start, &error) < 0) {
		log_debug("%s of %s: %s", lazy->name, image_path(lazy->image),
			  spulse_error_message(error));
		spulse_error_free(error);
		return false;
	}
	for (uint64_t block = from; block < to; block++)
		__atomic_or_fetch(&lazy->present[block / 8], 1 << block % 8, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&lazy->missing, to - from, __ATOMIC_RELEASE);
	return true;
}

static bool touch_lazy(const struct memelf *elf, struct memelf_lazy *lazy, uint64_t offset,
		       uint64_t len)
{
	uint64_t block = offset / BLOCK, end, run;
	bool read = true;

	if (offset >= lazy->size || !len)
		return true;
	end = (offset + MIN(len, lazy->size - offset) - 1) / BLOCK + 1;
	while (block < end && is_present(lazy, block))
		block++;
	if (block == end)
		return true;
	pthread_mutex_lock(&lazy->lock);
	for (; block < end && read; block = run) {
		for (run = block; run < end && is_present(lazy, run) == is_present(lazy, block);)
			run++;
		if (!is_present(lazy, block))
			read = read_blocks(elf, lazy, block, run);
	}
	pthread_mutex_unlock(&lazy->lock);
	return read;
}

struct memelf_lazy *memelf_lazy_section(const struct memelf *elf, const char *name)
{
	for (size_t i = 0; i < elf->lazy_count; i++)
		if (!strcmp(elf->lazy[i].name, name))
			return &elf->lazy[i];
	return NULL;
}

bool memelf_section_complete(const struct memelf_lazy *section)
{
	return !section || !__atomic_load_n(&section->missing, __ATOMIC_ACQUIRE);
}

bool memelf_touch_section(const struct memelf *elf, struct memelf_lazy *section, uint64_t offset,
			  uint64_t len)
{
	return !section || touch_lazy(elf, section, offset, len);
}

bool memelf_touch(const struct memelf *elf, const char *name, uint64_t offset, uint64_t len)
{
	return memelf_touch_section(elf, memelf_lazy_section(elf, name), offset, len);
}

static bool peek_lazy(const struct memelf_lazy *lazy, uint64_t offset, void *to, size_t len)
{
	struct spulse_error *error = NULL;

	if (offset > lazy->size || len > lazy->size - offset)
		return false;
	if (image_read(lazy->image, lazy->file_offset + offset, to, len, &error) < 0) {
		spulse_error_free(error);
		return false;
	}
	return true;
}

bool memelf_peek(const struct memelf *elf, const char *name, uint64_t offset, void *to, size_t len)
{
	const struct memelf_lazy *lazy = memelf_lazy_section(elf, name);
	const uint8_t *bytes;
	size_t size;

	if (lazy)
		return peek_lazy(lazy, offset, to, len);
	bytes = memelf_find(elf, name, &size);
	if (!bytes || offset > size || len > size - offset)
		return false;
	memcpy(to, bytes + offset, len);
	return true;
}

void memelf_expect_all(const struct memelf *elf, const char *name)
{
	const struct memelf_lazy *lazy = memelf_lazy_section(elf, name);
	uintptr_t page = sysconf(_SC_PAGESIZE), from, to;

	if (!lazy)
		return;
	from = ((uintptr_t)elf->base + lazy->offset) & -page;
	to = ((uintptr_t)elf->base + lazy->offset + lazy->size) & -page;
#ifdef MADV_HUGEPAGE
	if (from < to)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
#endif
}

void memelf_forget(const struct memelf *elf, const char *name)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < elf->lazy_count; i++) {
		struct memelf_lazy *lazy = &elf->lazy[i];
		uintptr_t start = (uintptr_t)elf->base + lazy->offset;
		uintptr_t from = (start + page - 1) & -page, to = (start + lazy->size) & -page;

		if (strcmp(lazy->name, name) || from >= to)
			continue;
		memset(lazy->present, 0, lazy->size / BLOCK / 8 + 1);
		lazy->missing = (lazy->size + BLOCK - 1) / BLOCK;
		madvise((void *)from, to - from, MADV_DONTNEED);
	}
}

int memelf_build(struct memelf *elf, uint16_t machine, const struct memelf_part *parts,
		 size_t count, struct spulse_error **err)
{
	struct layout layout = { 0 };
	int r = 0;

	*elf = (struct memelf){ 0 };
	count = MIN(count, (size_t)PARTS_MAX);
	r = lay_out(&layout, parts, count, err);
	if (!r) {
		elf->base = mmap(NULL, layout.total, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		elf->size = layout.total;
		if (elf->base == MAP_FAILED) {
			elf->base = NULL;
			r = err_no_memory(err);
		}
	}
	if (!r && !(elf->lazy = calloc(count + 1, sizeof(*elf->lazy))))
		r = err_no_memory(err);
	for (size_t i = 0; i < count && !r; i++)
		r = parts[i].lazy && is_plain(&parts[i]) ?
			add_lazy(elf, &parts[i], layout.offsets[i], layout.sizes[i], err) :
			fill_part(elf->base + layout.offsets[i], &parts[i], layout.sizes[i], err);
	if (!r)
		write_headers(elf, &layout, machine, count);
	else
		memelf_release(elf);
	strbuf_release(&layout.names_text);
	return r;
}

const uint8_t *memelf_find(const struct memelf *elf, const char *name, size_t *len)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->base;
	const Elf64_Shdr *sections;
	const char *names;

	if (!elf->base)
		return NULL;
	sections = (const Elf64_Shdr *)(elf->base + header->e_shoff);
	names = (const char *)elf->base + sections[header->e_shstrndx].sh_offset;
	for (size_t i = 1; i + 1 < header->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, name))
			continue;
		*len = sections[i].sh_size;
		return elf->base + sections[i].sh_offset;
	}
	return NULL;
}

void memelf_release(struct memelf *elf)
{
	for (size_t i = 0; i < elf->lazy_count; i++) {
		pthread_mutex_destroy(&elf->lazy[i].lock);
		free(elf->lazy[i].present);
	}
	free(elf->lazy);
	if (elf->base)
		munmap(elf->base, elf->size);
	*elf = (struct memelf){ 0 };
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * image: one ELF image: opened and validated against its mapping, its segments, sections, notes
 * and symbols, read with our own parser and never mapped; the bounded cache of open images.
 * Owns descriptors and section bytes. Never demangles, never reads DWARF, never unwinds.
 */
#ifndef SPULSE_IMAGE_H
#define SPULSE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/base.h"
#include "debugfile.h"

/* What a file is, whatever path leads to it. */
struct image_identity {
	uint32_t dev_major, dev_minor;
	uint64_t inode, generation, size;
	int64_t mtime_ns, ctime_ns;
};

/* A mapping whose image is wanted; strings borrowed. */
struct image_request {
	pid_t pid;	/* 0: no live process, open by path only */
	uint64_t start, end, file_offset;
	uint64_t inode, generation;
	uint32_t dev_major, dev_minor;
	const char *path;
	const char *sysroot; /* or NULL; see image_open() */
};

struct image_segment {
	uint64_t offset, vaddr, filesz, memsz;
	uint32_t flags; /* PF_* */
};

struct image_section {
	const char *name;
	uint32_t type;
	uint64_t flags, addr, offset, size, entsize, align;
	uint32_t link, info;
};

struct image_symbol {
	uint64_t value, size;
	const char *name; /* lives as long as the image */
	uint32_t index;	  /* in the table, as relocations count */
	uint8_t type, bind, visibility;
	uint16_t shndx;
};

struct image;
struct image_cache;

enum image_failure {
	IMAGE_OK = 0,
	IMAGE_RETRY,		/* could not be opened now */
	IMAGE_UNSUPPORTED,	/* never will: not a file, not ELF, another file */
};

/* A cache is shared by all images of one owner and locks itself. */
int image_cache_new(size_t max_images, size_t max_bytes, struct image_cache **cache_out,
		    struct spulse_error **err);
struct image_cache *image_cache_ref(struct image_cache *cache);
void image_cache_unref(struct image_cache *cache);

/*
 * Opens the file behind a mapping: map_files, the target's root, the path, exe; device and inode
 * must match where they are known. "[vdso]" gives the copy of this process's own vDSO. The error
 * names every candidate and why it was refused. cache may be NULL: nothing is shared then.
 *
 * With a sysroot (files of another host) only the path below it is tried, links staying inside;
 * numbers of devices and inodes mean nothing there, so that the caller must compare build IDs.
 */
enum image_failure image_open(struct image_cache *cache, const struct image_request *request,
			      struct image **image_out, struct spulse_error **err);
/* Opens a file by path without a mapping (debug files, tools); links are followed. */
int image_open_path(const char *path, struct image **image_out, struct spulse_error **err);
/*
 * Opens a path as a process sees it whose root folder is `root`: links stay inside. A descriptor,
 * or -1 with errno. flags as for open(2), O_CLOEXEC among them.
 */
int image_open_in_root(const char *root, const char *path, int flags);
/* Wraps bytes (copied) as an image: vDSO copies, JIT objects, tests. */
int image_from_bytes(const void *bytes, size_t len, const char *name, struct image **image_out,
		     struct spulse_error **err);
struct image *image_ref(struct image *image);
void image_unref(struct image *image);

const struct image_identity *image_identity(const struct image *image);
uint64_t image_token(const struct image *image); /* distinct per image object */
const char *image_path(const struct image *image); /* path that opened it */
int image_fd(const struct image *image); /* -1 for bytes; borrowed */
bool image_is_vdso(const struct image *image);
/* Whether a process's memory [start, end) holds just the bytes of an image without a file. */
bool image_equals_memory(const struct image *image, pid_t pid, uint64_t start, uint64_t end);
uint16_t image_machine(const struct image *image); /* EM_* */
uint16_t image_type(const struct image *image);	   /* ET_* */
uint64_t image_entry(const struct image *image);
uint64_t image_size(const struct image *image);
const uint8_t *image_build_id(const struct image *image, size_t *len); /* NULL without one */
const struct image_segment *image_segments(const struct image *image, size_t *count); /* PT_LOAD */
/* PT_GNU_EH_FRAME, or false. Segments are as the file says: they may lie outside of it. */
bool image_eh_frame_hdr_segment(const struct image *image, struct image_segment *segment);
const struct image_section *image_sections(const struct image *image, size_t *count);
const struct image_section *image_section_by_name(const struct image *image, const char *name);

/*
 * A section's content, read at first use and decompressed; lives as long as the image. A file
 * that became shorter gives an error. SHT_NOBITS gives no bytes.
 */
int image_section_bytes(struct image *image, const struct image_section *section,
			const uint8_t **bytes, size_t *len, struct spulse_error **err);
/* Reads raw file bytes; an error when they are not all there or the file was changed. */
int image_read(struct image *image, uint64_t offset, void *buf, size_t len,
	       struct spulse_error **err);
/* Reads bytes of a PT_LOAD by file address (vaddr). */
int image_read_address(struct image *image, uint64_t vaddr, void *buf, size_t len,
		       struct spulse_error **err);
/*
 * Calls fn for each symbol of .symtab (dynamic false) or .dynsym; stops when it returns false. An
 * image without section headers still shows its dynamic symbols.
 */
int image_symbols(struct image *image, bool dynamic,
		  bool (*fn)(void *data, const struct image_symbol *symbol), void *data,
		  struct spulse_error **err);

/* Build ID of the kernel that runs here, appended in hexadecimal; false when it does not tell. */
bool image_running_kernel_id(struct strbuf *hex);

/*
 * Images that one part of the program opened for another, by module id: exact even when the file
 * was deleted or replaced since. Bounded; the oldest go first. It locks itself.
 */
struct image_handover;
struct image_handover *image_handover_new(void); /* NULL: memory ran out */
struct image_handover *image_handover_ref(struct image_handover *handover);
void image_handover_unref(struct image_handover *handover);
void image_handover_add(struct image_handover *handover, uint32_t module, struct image *image);
/* With a reference; NULL when there is none (any more). */
struct image *image_handover_get(struct image_handover *handover, uint32_t module);
void image_handover_remove(struct image_handover *handover, uint32_t module);

/*
 * Address of the image in a process: *bias = run address - file address (wrapping) for a mapping
 * of `file_offset` over [start, end). False when no segment, or more than one, explains it.
 */
bool image_bias(const struct image *image, uint64_t start, uint64_t end, uint64_t file_offset,
		uint64_t *bias);
/* vaddr of the first PT_LOAD, 0 without one. */
uint64_t image_first_vaddr(const struct image *image);

#endif

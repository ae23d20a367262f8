/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One image as the unwinder sees it: its tables, found at the first lookup, and its compiled
 * rules, which serve every process that maps it. .eh_frame comes first; .debug_frame answers where
 * that is silent.
 */
#include "unwimage.h"

#include <elf.h>
#include <stdlib.h>

#include "../image/image.h"

#include "guess.h"
#include "index.h"
#include "rulemap.h"

enum {
	ENTRY_CODE = 64, /* bytes of a start routine in which its frame may be the outermost */
	MAX_TABLE_BYTES = 512 << 20,
	SHORT_ENTRY = 16,  /* AArch64: bytes of a signal restorer, padding included */
	GO_FRAME_CELL = 0, /* cell number of rbp in Go's frames: CFA - 16 */
};

#define KEY_CALL (UINT64_C(1) << 63) /* rule map keys that hold a verdict on a call */

struct unw_image {
	uint32_t refs;
	enum unw_arch arch;
	struct image *image;	      /* NULL: bare sections */
	struct unw_sections sections; /* of bare sections */
	bool looked;		      /* for .eh_frame */
	bool looked_debug;
	bool has_eh, has_debug, go;
	struct cfi_index eh, debug;
	struct rulemap rules;
	uint8_t *copies[2];	  /* tables read without section headers */
	struct image *debug_file; /* holds .debug_frame, or NULL */
};

static struct unw_image *new_image(enum unw_arch arch, struct spulse_error **err)
{
	struct unw_image *image = calloc(1, sizeof(*image));

	if (!image) {
		err_no_memory(err);
		return NULL;
	}
	image->refs = 1;
	image->arch = arch;
	return image;
}

int unw_image_new(struct image *file, struct unw_image **out, struct spulse_error **err)
{
	struct unw_image *image;

	image = new_image(image_machine(file) == EM_AARCH64 ? UNW_AARCH64 : UNW_X86_64, err);
	if (!image)
		return -SPULSE_ERROR_NO_MEMORY;
	image->image = image_ref(file);
	/* Tables of another machine say nothing here. */
	if (image_machine(file) != EM_AARCH64 && image_machine(file) != EM_X86_64)
		image->looked = image->looked_debug = true;
	*out = image;
	return 0;
}

int unw_image_from_sections(const struct unw_sections *sections, struct unw_image **out,
			    struct spulse_error **err)
{
	struct unw_image *image = new_image(sections->arch, err);

	if (!image)
		return -SPULSE_ERROR_NO_MEMORY;
	image->sections = *sections;
	*out = image;
	return 0;
}

struct unw_image *unw_image_ref(struct unw_image *image)
{
	image->refs++;
	return image;
}

void unw_image_unref(struct unw_image *image)
{
	if (!image || --image->refs)
		return;
	index_release(&image->eh);
	index_release(&image->debug);
	rulemap_release(&image->rules);
	free(image->copies[0]);
	free(image->copies[1]);
	image_unref(image->debug_file);
	image_unref(image->image);
	free(image);
}

/* ---- finding the tables ---- */

struct table {
	const uint8_t *bytes;
	size_t len;
	uint64_t addr;
};

static bool section_table(struct image *image, const char *name, struct table *table)
{
	const struct image_section *section = image_section_by_name(image, name);

	if (!section || section->size > MAX_TABLE_BYTES ||
	    image_section_bytes(image, section, &table->bytes, &table->len, NULL) < 0)
		return false;
	table->addr = section->addr;
	return table->len > 0;
}

/* Reads memory of the image by address into a copy of ours. */
static bool memory_table(struct unw_image *image, unsigned int slot, uint64_t addr, uint64_t len,
			 struct table *table)
{
	uint8_t *copy, last;

	if (!len || len > MAX_TABLE_BYTES || image->copies[slot])
		return false;
	/* A segment may claim more than its file has: no memory for that. */
	if (image_read_address(image->image, addr + len - 1, &last, 1, NULL) < 0)
		return false;
	copy = malloc(len);
	if (!copy)
		return false;
	if (image_read_address(image->image, addr, copy, len, NULL) < 0) {
		free(copy);
		return false;
	}
	image->copies[slot] = copy;
	*table = (struct table){copy, len, addr};
	return true;
}

/* File bytes from an address to the end of its segment. */
static uint64_t rest_of_segment(struct image *image, uint64_t addr)
{
	size_t count;
	const struct image_segment *segments = image_segments(image, &count);

	for (size_t i = 0; i < count; i++)
		if (addr >= segments[i].vaddr && addr - segments[i].vaddr < segments[i].filesz)
			return segments[i].filesz - (addr - segments[i].vaddr);
	return 0;
}

static bool hdr_table(struct unw_image *image, struct table *hdr)
{
	struct image_segment segment;

	if (section_table(image->image, ".eh_frame_hdr", hdr))
		return true;
	if (!image_eh_frame_hdr_segment(image->image, &segment))
		return false;
	return memory_table(image, 0, segment.vaddr,
			    MIN(segment.filesz, rest_of_segment(image->image, segment.vaddr)), hdr);
}

/* .eh_frame by the pointer in its header: for files without section headers. */
static bool eh_frame_by_hdr(struct unw_image *image, const struct table *hdr, struct table *eh)
{
	const struct cfi_section place = {.bytes = hdr->bytes, .len = hdr->len, .addr = hdr->addr};
	struct cursor c = {hdr->bytes, hdr->bytes + hdr->len, false};
	uint64_t addr;

	if (cursor_u8(&c) != 1)
		return false;
	cursor_skip(&c, 3);
	if (c.bad || !cfi_pointer(&c, &place, hdr->bytes[1], hdr->addr, &addr))
		return false;
	return memory_table(image, 1, addr, rest_of_segment(image->image, addr), eh);
}

static uint64_t section_addr(struct image *image, const char *name)
{
	const struct image_section *section = image_section_by_name(image, name);

	return section ? section->addr : 0;
}

/* Entries for code that the image does not have are leftovers of the linker. */
static void code_range(struct image *image, struct cfi_index *index)
{
	size_t count;
	const struct image_segment *segments = image_segments(image, &count);

	index->code_start = UINT64_MAX;
	index->code_end = 0;
	for (size_t i = 0; i < count; i++) {
		if (!(segments[i].flags & PF_X))
			continue;
		index->code_start = MIN(index->code_start, segments[i].vaddr);
		index->code_end = MAX(index->code_end, segments[i].vaddr + segments[i].memsz);
	}
}

static void look_for_eh_frame(struct unw_image *image)
{
	struct cfi_section section = {.arch = image->arch};
	struct table hdr = {0}, eh = {0};

	image->looked = true;
	if (!image->image) {
		const struct unw_sections *s = &image->sections;

		hdr = (struct table){s->eh_frame_hdr, s->eh_frame_hdr_len, s->eh_frame_hdr_addr};
		eh = (struct table){s->eh_frame, s->eh_frame_len, s->eh_frame_addr};
		section.text_addr = s->text_addr;
		section.got_addr = s->got_addr;
	} else {
		bool has_hdr = hdr_table(image, &hdr);

		if (!section_table(image->image, ".eh_frame", &eh) &&
		    (!has_hdr || !eh_frame_by_hdr(image, &hdr, &eh)))
			return;
		section.text_addr = section_addr(image->image, ".text");
		section.got_addr = section_addr(image->image, ".got");
	}
	section.bytes = eh.bytes;
	section.len = eh.len;
	section.addr = eh.addr;
	image->has_eh = eh.len > 0;
	index_init(&image->eh, &section, hdr.bytes, hdr.len, hdr.addr);
	if (image->image)
		code_range(image->image, &image->eh);
}

/*
 * .debug_frame of the image, else of its debug file: programs built without exceptions or unwind
 * tables are stripped of it. Debug servers are not asked while a recording runs.
 */
static bool debug_frame_table(struct unw_image *image, struct table *table)
{
	struct image_roots roots = {0};
	const struct image_debug_options options = {.roots = &roots, .file_only = true};
	struct image_debug found = {0};

	if (section_table(image->image, ".debug_frame", table))
		return true;
	if (image_is_vdso(image->image) || image_roots_default(&roots, NULL) < 0)
		return false;
	if (image_debug_find(image->image, &options, &found, NULL) == 0)
		image->debug_file = take_ptr(found.file);
	image_debug_release(&found);
	image_roots_release(&roots);
	return image->debug_file && section_table(image->debug_file, ".debug_frame", table);
}

static void look_for_debug_frame(struct unw_image *image)
{
	struct cfi_section section = {.arch = image->arch, .debug = true};
	struct table debug = {image->sections.debug_frame, image->sections.debug_frame_len,
			      image->sections.debug_frame_addr};

	image->looked_debug = true;
	if (image->image) {
		image->go = image_section_by_name(image->image, ".gopclntab");
		if (!debug_frame_table(image, &debug))
			return;
	}
	section.bytes = debug.bytes;
	section.len = debug.len;
	image->has_debug = debug.len > 0;
	index_init(&image->debug, &section, NULL, 0, 0);
	if (image->image)
		code_range(image->image, &image->debug);
}

/* ---- code bytes ---- */

bool unw_image_code(struct unw_image *image, uint64_t address, void *buf, size_t len)
{
	uint64_t at = address - image->sections.text_addr;

	if (image->image)
		return image_read_address(image->image, address, buf, len, NULL) == 0;
	if (at >= image->sections.text_len || len > image->sections.text_len - at)
		return false;
	memcpy(buf, image->sections.text + at, len);
	return true;
}

static void read_window(struct unw_image *image, uint64_t address, struct code_window *w)
{
	static const uint16_t before[] = {CODE_BEFORE, 64, 16, 0};

	w->before = w->len = 0;
	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		for (size_t behind = CODE_BEHIND; behind >= 1; behind /= 16) {
			if (!unw_image_code(image, address - before[i], w->bytes,
					    before[i] + behind))
				continue;
			w->before = before[i];
			w->len = before[i] + behind;
			return;
		}
}

bool unw_image_call_before(struct unw_image *image, uint64_t address)
{
	uint8_t bytes[CALL_BYTES] = {0};
	uint64_t verdict = 1;

	if (rulemap_get(&image->rules, address | KEY_CALL, &verdict))
		return verdict;
	if (unw_image_code(image, address - CALL_BYTES, bytes, CALL_BYTES))
		verdict = guess_ends_with_call(image->arch, bytes);
	else if (unw_image_code(image, address - 4, bytes + CALL_BYTES - 4, 4) ||
		 unw_image_code(image, address - 2, bytes + CALL_BYTES - 2, 2))
		verdict = guess_ends_with_call(image->arch, bytes);
	rulemap_add(&image->rules, address | KEY_CALL, verdict);
	return verdict;
}

bool unw_image_is_entry(struct unw_image *image, uint64_t address)
{
	uint64_t entry = image->image ? image_entry(image->image) : 0;

	return entry && address - entry < ENTRY_CODE;
}

/* ---- rules ---- */

struct row_place {
	struct cfi_index *index;
	struct cfi_fde fde;
};

static enum spulse_unwind_fallback reason_of(enum index_result result)
{
	switch (result) {
	case INDEX_BELOW_TABLE:
		return SPULSE_UNWIND_FALLBACK_EH_FRAME_HDR_LOOKUP;
	case INDEX_ABSENT:
		return SPULSE_UNWIND_FALLBACK_CFI_INDEX_LOOKUP;
	case INDEX_BAD_ENTRY:
	case INDEX_NO_MEMORY:
		return SPULSE_UNWIND_FALLBACK_FDE_READ;
	default:
		return SPULSE_UNWIND_FALLBACK_UNWIND_INFO;
	}
}

/* The table entry of an address, or why there is none. */
static bool find_place(struct unw_image *image, uint64_t address, struct row_place *place,
		       enum spulse_unwind_fallback *reason)
{
	enum index_result result;

	*reason = SPULSE_UNWIND_FALLBACK_NO_UNWIND_DATA;
	if (!image->looked)
		look_for_eh_frame(image);
	if (image->has_eh) {
		place->index = &image->eh;
		result = index_find(&image->eh, address, &place->fde);
		if (result == INDEX_FOUND)
			return true;
		*reason = reason_of(result);
	}
	if (!image->looked_debug)
		look_for_debug_frame(image);
	if (!image->has_debug)
		return false;
	place->index = &image->debug;
	return index_find(&image->debug, address, &place->fde) == INDEX_FOUND;
}

/*
 * Go's tables never tell of rbp, though its functions save it below the return address as soon as
 * they have a frame.
 */
static rule_t add_go_cell(rule_t rule)
{
	if (rule_kind(rule) != RULE_SP || rule_n(rule) < 2)
		return rule;
	return (rule & ~((rule_t)15 << 24)) | (rule_t)GO_FRAME_CELL << 24;
}

static bool row_at(const struct row_place *place, uint64_t address, struct cfi_row *row)
{
	return cfi_row(&place->index->section, &place->index->cie, &place->fde, address, row);
}

/*
 * Whether bytes must be looked at although there is a row. A return address may be the first byte
 * of a restorer without tables, and the lookup one byte before it in somebody else's entry. On
 * AArch64 a restorer's row tells of the frame record only, which skips the interrupted function.
 */
static bool may_be_restorer(const struct unw_image *image, const struct row_place *place,
			    const struct cfi_row *row, uint64_t address)
{
	if (place->fde.end == address + 1)
		return true;
	return image->arch == UNW_AARCH64 &&
	       (row->signal || place->fde.end - place->fde.start <= SHORT_ENTRY);
}

static rule_t compile_row(struct unw_image *image, const struct row_place *place,
			  const struct cfi_row *row, uint64_t address)
{
	struct code_window window;
	rule_t rule;

	if (may_be_restorer(image, place, row, address)) {
		read_window(image, address, &window);
		if (guess_is_restorer(image->arch, &window))
			return RULE_SIGNAL;
	}
	rule = rule_compile(image->arch, row);
	if (place->index == &image->debug && image->go && image->arch == UNW_X86_64)
		return add_go_cell(rule);
	return rule;
}

/*
 * Some return addresses are made by hand, such as that of a coroutine's first function. They are
 * the first byte of a function, and no call stands in front of them.
 */
static bool is_uncalled(struct unw_image *image, uint64_t address)
{
	enum spulse_unwind_fallback reason;
	struct row_place place;

	return find_place(image, address + 1, &place, &reason) &&
	       place.fde.start == address + 1 && !unw_image_call_before(image, address + 1);
}

static rule_t compile(struct unw_image *image, uint64_t address)
{
	enum spulse_unwind_fallback reason;
	struct code_window window;
	struct row_place place;
	struct cfi_row row;
	rule_t rule;

	if (find_place(image, address, &place, &reason)) {
		if (row_at(&place, address, &row))
			return compile_row(image, &place, &row, address);
		reason = SPULSE_UNWIND_FALLBACK_UNWIND_INFO;
	}
	read_window(image, address, &window);
	rule = guess_rule(image->arch, &window, reason);
	if (rule_kind(rule) != RULE_SIGNAL && is_uncalled(image, address))
		return rule_none(reason, HINT_UNKNOWN) - RULE_NONE + RULE_UNCALLED;
	return rule;
}

rule_t unw_image_rule(struct unw_image *image, uint64_t address)
{
	uint64_t rule;

	if (rulemap_get(&image->rules, address, &rule))
		return rule;
	rule = compile(image, address);
	rulemap_add(&image->rules, address, rule);
	return rule;
}

bool unw_image_row(struct unw_image *image, uint64_t address, struct cfi_row *row)
{
	enum spulse_unwind_fallback reason;
	struct row_place place;

	return find_place(image, address, &place, &reason) && row_at(&place, address, row);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_INDEX_H
#define SPULSE_UNWIND_INDEX_H

#include "cfi.h"

/*
 * Finds the table entry of an address: through .eh_frame_hdr while that proves right, else through
 * an index of our own made in one pass over the section.
 */
struct index_entry {
	uint64_t start;
	uint64_t offset;
};

struct cfi_index {
	struct cfi_section section;
	const uint8_t *table; /* rows of .eh_frame_hdr, or NULL */
	size_t table_len;
	uint64_t hdr_addr;
	struct index_entry *own;
	size_t own_len;
	bool has_own, checked_order;
	uint64_t code_start, code_end; /* what the image has of code; entries outside are dead */
	struct cfi_cie cie;	       /* cache of one */
};

/* hdr may be NULL. Nothing is read before the first lookup but the header's first bytes. */
void index_init(struct cfi_index *index, const struct cfi_section *section, const uint8_t *hdr,
		size_t hdr_len, uint64_t hdr_addr);
void index_release(struct cfi_index *index);

enum index_result {
	INDEX_FOUND = 0,
	INDEX_BELOW_TABLE, /* the header's table does not reach down to the address */
	INDEX_ABSENT,	   /* our own index does not */
	INDEX_BAD_ENTRY,
	INDEX_GAP, /* the nearest entry ends below the address */
	INDEX_NO_MEMORY,
};

enum index_result index_find(struct cfi_index *index, uint64_t address, struct cfi_fde *fde);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_CFI_BUILDER_H
#define TESTS_LIB_CFI_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes .eh_frame, .debug_frame and .eh_frame_hdr for tests, well-formed or not. Too much for the
 * fixed room aborts.
 */
enum { CFI_BUILDER_BYTES = 32768, CFI_BUILDER_FDES = 1024 };

struct cfi_builder {
	uint64_t addr; /* of byte 0 when loaded */
	bool debug;    /* .debug_frame */
	bool wide;     /* entries made from now on have 64-bit lengths */
	uint8_t bytes[CFI_BUILDER_BYTES];
	size_t len;
	struct {
		uint64_t start, offset;
	} fdes[CFI_BUILDER_FDES];
	size_t fde_count;
};

struct cfi_builder_cie {
	uint8_t version;	  /* 0: 1 */
	const char *augmentation; /* NULL: "zR", in .debug_frame none */
	uint8_t encoding;	  /* of FDE pointers; for "R" */
	const uint8_t *data;	  /* instead of what "R" alone needs */
	size_t data_len;
	uint64_t code_align; /* 0: 1 */
	int64_t data_align;  /* 0: -8 */
	uint64_t ra;
	const uint8_t *program;
	size_t program_len;
	uint8_t addr_size, segment_size; /* of version 4; 0: 8 and none */
};

void cfi_put(struct cfi_builder *b, const void *bytes, size_t len);
void cfi_put_number(struct cfi_builder *b, uint64_t value, size_t size);
void cfi_put_uleb(struct cfi_builder *b, uint64_t value);
void cfi_put_sleb(struct cfi_builder *b, int64_t value);

/* Offset of the new entry. */
uint64_t cfi_build_cie(struct cfi_builder *b, const struct cfi_builder_cie *cie);
/* An FDE whose pointers are pcrel sdata4 (.eh_frame) or absolute (.debug_frame). */
uint64_t cfi_build_fde(struct cfi_builder *b, uint64_t cie, uint64_t start, uint64_t size,
		       const uint8_t *program, size_t len);
/* An FDE with everything behind its CIE pointer given. */
uint64_t cfi_build_raw_fde(struct cfi_builder *b, uint64_t cie, const uint8_t *body, size_t len);
/* Ends the section. */
void cfi_build_terminator(struct cfi_builder *b);
/* .eh_frame_hdr for an address, sorted; returns its length. `out` holds 12 + 8 per FDE. */
size_t cfi_build_hdr(const struct cfi_builder *b, uint64_t addr, uint8_t *out);

#endif

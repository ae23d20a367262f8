/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_CFI_H
#define SPULSE_UNWIND_CFI_H

#include "cursor.h"
#include "unwind.h"

/*
 * Reader of DWARF call frame information: section bytes and an address in, the rules of that
 * address out. Nothing is allocated; a damaged entry fails alone.
 */
enum {
	CFI_REGS = 35, /* up to AArch64's RA_SIGN_STATE, 34 */
	CFI_X86_RA = 16,
	CFI_X86_RSP = 7,
	CFI_X86_RBP = 6,
	CFI_ARM_FP = 29,
	CFI_ARM_LR = 30,
	CFI_ARM_SP = 31,
	CFI_ARM_SIGN_STATE = 34,
};

struct cfi_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t addr;
	uint64_t text_addr, got_addr; /* bases of textrel and datarel pointers */
	bool debug;		      /* .debug_frame */
	enum unw_arch arch;
};

struct cfi_cie {
	bool valid;
	uint64_t offset;
	uint8_t version, fde_encoding, addr_size, segment_size;
	bool has_length; /* augmentation 'z' */
	bool signal;	 /* augmentation 'S' */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	const uint8_t *program, *program_end;
};

struct cfi_fde {
	uint64_t start, end;
	const uint8_t *program, *program_end;
};

enum cfi_found {
	CFI_FDE = 0,
	CFI_CIE,	/* an entry, but not of code */
	CFI_TERMINATOR, /* length 0 */
	CFI_BAD,	/* *next is valid unless it is 0 */
};

/*
 * Parses the entry at `offset`. `cie` is a cache of one: it holds the entry's CIE afterwards.
 * *next gets the offset behind the entry, 0 when even its length is broken.
 */
enum cfi_found cfi_entry(const struct cfi_section *section, uint64_t offset, struct cfi_cie *cie,
			 struct cfi_fde *fde, uint64_t *next);

enum cfi_kind {
	CFI_UNSET = 0,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_OFFSET,	/* saved at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER,	/* is in register `value`; for the CFA: register + offset */
	CFI_EXPRESSION, /* saved where the text says */
	CFI_VAL_EXPRESSION,
};

struct cfi_rule {
	uint8_t kind;
	uint8_t reg;  /* of the CFA's CFI_REGISTER */
	uint32_t len; /* of an expression's text */
	union {
		int64_t value;
		const uint8_t *text;
	};
};

struct cfi_row {
	struct cfi_rule cfa;
	struct cfi_rule regs[CFI_REGS];
	uint64_t start, end; /* code addresses */
	uint64_t ra_column;
	bool signal;
};

/* The row of `address`, which the FDE covers. False when the program is broken. */
bool cfi_row(const struct cfi_section *section, const struct cfi_cie *cie,
	     const struct cfi_fde *fde, uint64_t address, struct cfi_row *row);

/*
 * Reads a pointer in one of the DW_EH_PE encodings; false when it is broken or needs target
 * memory. `data_base` is what datarel counts from.
 */
bool cfi_pointer(struct cursor *c, const struct cfi_section *section, uint8_t encoding,
		 uint64_t data_base, uint64_t *value);

#endif

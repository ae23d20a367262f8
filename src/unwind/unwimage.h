/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_UNWIMAGE_H
#define SPULSE_UNWIND_UNWIMAGE_H

#include "cfi.h"
#include "rule.h"

/* Rule of a file address: from what is known, else compiled now. */
rule_t unw_image_rule(struct unw_image *image, uint64_t address);
/* The table row of an address, for rules that do not fit into 8 bytes. */
bool unw_image_row(struct unw_image *image, uint64_t address, struct cfi_row *row);
/* Code bytes by file address. */
bool unw_image_code(struct unw_image *image, uint64_t address, void *buf, size_t len);
/* Whether the instruction that ends at a file address is a call; true when that is unknown. */
bool unw_image_call_before(struct unw_image *image, uint64_t address);
/* Whether the address lies in the first bytes behind the image's entry point. */
bool unw_image_is_entry(struct unw_image *image, uint64_t address);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_ABBREVS_H
#define SPULSE_SYMBOLIZE_ABBREVS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/base.h"
#include "bytecursor.h"

/*
 * Shapes of debug entries: for each code the tag and the attributes with their forms. Where all
 * forms have a fixed size an entry is passed over by one addition.
 */
struct abbrev_attribute {
	uint16_t name; /* 0: one that is never looked at */
	uint16_t form;
	int32_t constant; /* of DW_FORM_implicit_const */
	uint8_t size;	  /* or FORM_VARIABLE */
};

enum { FORM_VARIABLE = UINT8_MAX, ABBREV_VARIABLE = UINT16_MAX };

struct abbrev {
	uint32_t code;
	uint32_t first; /* of the table's attributes */
	uint16_t count;
	uint16_t tag;
	uint16_t size; /* of an entry's attributes, or ABBREV_VARIABLE */
	bool children, sibling;
};

struct abbrevs {
	VEC(struct abbrev) list; /* by code */
	VEC(struct abbrev_attribute) attributes;
	size_t bytes; /* that were read */
	bool dense;   /* code N is at N - 1 */
};

/* Sizes of forms depend on the unit. */
struct form_sizes {
	uint8_t offset, address, reference; /* of DW_FORM_ref_addr */
};

/* Size of a form, or -1 when it varies. */
int form_size(uint16_t form, const struct form_sizes *sizes);
/* Passes over a value; an unknown form breaks the cursor. */
void form_skip(struct cursor *c, uint16_t form, const struct form_sizes *sizes);

/*
 * Reads a table up to its end mark or the code `last`; false when memory ran out. A broken one
 * gives what it has.
 */
bool abbrevs_read(struct abbrevs *abbrevs, const uint8_t *bytes, size_t len,
		  const struct form_sizes *sizes, uint64_t last);
void abbrevs_release(struct abbrevs *abbrevs);

const struct abbrev *abbrevs_search(const struct abbrevs *abbrevs, uint64_t code);

/* NULL without that code. */
static inline const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code)
{
	if (likely(abbrevs->dense))
		return code - 1 < abbrevs->list.len ? &abbrevs->list.data[code - 1] : NULL;
	return abbrevs_search(abbrevs, code);
}

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "abbrevs.h"

#include <dwarf.h>
#include <stdlib.h>

int form_size(uint16_t form, const struct form_sizes *sizes)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return sizes->address;
	case DW_FORM_ref_addr:
		return sizes->reference;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return sizes->offset;
	default:
		return -1;
	}
}

void form_skip(struct cursor *c, uint16_t form, const struct form_sizes *sizes)
{
	int size;

	while (form == DW_FORM_indirect && !c->broken)
		form = take_uleb(c);
	size = form_size(form, sizes);
	if (size >= 0) {
		skip_bytes(c, size);
		return;
	}
	switch (form) {
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		take_uleb(c);
		break;
	case DW_FORM_string:
		take_string(c);
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		skip_bytes(c, take_uleb(c));
		break;
	case DW_FORM_block1:
		skip_bytes(c, take_fixed(c, 1));
		break;
	case DW_FORM_block2:
		skip_bytes(c, take_fixed(c, 2));
		break;
	case DW_FORM_block4:
		skip_bytes(c, take_fixed(c, 4));
		break;
	default:
		cursor_break(c);
	}
}

/*
 * Attributes without bytes make an entry of one byte as much work as they are many. Compilers use
 * a few dozen at most.
 */
enum { ATTRIBUTES_MAX = 256 };

static bool read_attributes(struct abbrevs *abbrevs, struct abbrev *abbrev, struct cursor *c,
			    const struct form_sizes *sizes)
{
	uint32_t total = 0;

	while (!c->broken) {
		uint64_t name = take_uleb(c), form = take_uleb(c);
		struct abbrev_attribute attribute = { .name = name > UINT16_MAX ? 0 : name,
						      .form = MIN(form, UINT16_MAX) };
		int size = form_size(attribute.form, sizes);

		if (!name && !form)
			break;
		attribute.size = size < 0 ? FORM_VARIABLE : size;
		if (attribute.form == DW_FORM_implicit_const)
			attribute.constant = take_sleb(c);
		if (name == DW_AT_sibling)
			abbrev->sibling = true;
		total = size < 0 ? UINT32_MAX / 2 : total + size;
		if (abbrev->count == ATTRIBUTES_MAX)
			cursor_break(c);
		else if (!vec_push(&abbrevs->attributes, attribute))
			return false;
		else
			abbrev->count++;
	}
	abbrev->size = MIN(total, (uint32_t)ABBREV_VARIABLE);
	return true;
}

static int compare_codes(const void *a, const void *b)
{
	const struct abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

bool abbrevs_read(struct abbrevs *abbrevs, const uint8_t *bytes, size_t len,
		  const struct form_sizes *sizes, uint64_t last)
{
	struct cursor c = { .at = bytes, .end = bytes + len };
	uint64_t code = 0;

	*abbrevs = (struct abbrevs){ .dense = true };
	while (code != last && !c.broken && (code = take_uleb(&c))) {
		struct abbrev abbrev = { .code = MIN(code, UINT32_MAX),
					 .first = abbrevs->attributes.len };
		uint64_t tag = take_uleb(&c);

		abbrev.tag = MIN(tag, UINT16_MAX);
		abbrev.children = take_fixed(&c, 1);
		if (!read_attributes(abbrevs, &abbrev, &c, sizes) ||
		    (!c.broken && !vec_push(&abbrevs->list, abbrev))) {
			abbrevs_release(abbrevs);
			return false;
		}
		if (c.broken)
			break;
		abbrevs->dense &= code == abbrevs->list.len;
	}
	if (!abbrevs->dense)
		qsort(abbrevs->list.data, abbrevs->list.len, sizeof(*abbrevs->list.data),
		      compare_codes);
	abbrevs->bytes = c.at - bytes;
	return true;
}

const struct abbrev *abbrevs_search(const struct abbrevs *abbrevs, uint64_t code)
{
	size_t low = 0, high = abbrevs->list.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (abbrevs->list.data[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return low < abbrevs->list.len && abbrevs->list.data[low].code == code ?
		       &abbrevs->list.data[low] : NULL;
}

void abbrevs_release(struct abbrevs *abbrevs)
{
	vec_free(&abbrevs->list);
	vec_free(&abbrevs->attributes);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The header's table is trusted but checked where it is used: an entry must lie in .eh_frame and
 * begin where the table says. The first lie makes us index the section ourselves.
 */
#include "index.h"

#include "dwarfcodes.h"

enum {
	HDR_ROW = 8,
	MAX_ENTRIES = 4 << 20, /* the largest images have 0.2 million */
	MAX_BAD_IN_A_ROW = 3,  /* then the rest is taken for damaged */
};

/* The one form that linkers write: pcrel sdata4, udata4, datarel sdata4. */
static bool table_usable(const uint8_t *hdr, size_t len, size_t *rows)
{
	static const uint8_t form[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
				       DW_EH_PE_datarel | DW_EH_PE_sdata4};

	if (!hdr || len < 12 || memcmp(hdr, form, sizeof(form)) != 0)
		return false;
	*rows = load_u32(hdr + 8);
	return *rows && *rows <= (len - 12) / HDR_ROW;
}

void index_init(struct cfi_index *index, const struct cfi_section *section, const uint8_t *hdr,
		size_t hdr_len, uint64_t hdr_addr)
{
	*index = (struct cfi_index){.section = *section, .hdr_addr = hdr_addr};
	index->code_end = UINT64_MAX;
	if (table_usable(hdr, hdr_len, &index->table_len))
		index->table = hdr + 12;
}

void index_release(struct cfi_index *index)
{
	free(index->own);
	index->own = NULL;
}

static uint64_t table_value(const struct cfi_index *index, size_t row, size_t column)
{
	int32_t v = (int32_t)load_u32(index->table + row * HDR_ROW + column);

	return index->hdr_addr + (uint64_t)(int64_t)v;
}

/* Row with the last start at or below the address, or SIZE_MAX. */
static size_t search_table(const struct cfi_index *index, uint64_t address)
{
	int64_t wanted = (int64_t)(address - index->hdr_addr);
	size_t first = 0, len = index->table_len;

	while (len) {
		size_t half = len / 2;

		if ((int32_t)load_u32(index->table + (first + half) * HDR_ROW) <= wanted) {
			first += half + 1;
			len -= half + 1;
		} else {
			len = half;
		}
	}
	return first ? first - 1 : SIZE_MAX;
}

static int by_start(const void *a, const void *b)
{
	const struct index_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Garbage-collected functions leave entries at address 0 or of no length. */
static bool is_live(const struct cfi_index *index, const struct cfi_fde *fde)
{
	return fde->start < fde->end && fde->start >= index->code_start &&
	       fde->start < index->code_end;
}

static bool make_own(struct cfi_index *index)
{
	VEC(struct index_entry) entries = {0};
	struct cfi_cie cie = {0};
	uint64_t offset = 0, next;
	unsigned int bad = 0;
	struct cfi_fde fde;

	while (offset < index->section.len && entries.len < MAX_ENTRIES && bad < MAX_BAD_IN_A_ROW) {
		enum cfi_found found = cfi_entry(&index->section, offset, &cie, &fde, &next);

		if (found == CFI_FDE && is_live(index, &fde) &&
		    !vec_push(&entries, (struct index_entry){fde.start, offset})) {
			vec_free(&entries);
			return false;
		}
		bad = found == CFI_BAD ? bad + 1 : 0;
		/* A terminator may stand between the parts of several inputs. */
		if (!next || next <= offset)
			break;
		offset = next;
	}
	if (entries.len)
		qsort(entries.data, entries.len, sizeof(*entries.data), by_start);
	index->own = entries.data;
	index->own_len = entries.len;
	index->has_own = true;
	return true;
}

static enum index_result entry_at(struct cfi_index *index, uint64_t offset, uint64_t start,
				  uint64_t address, struct cfi_fde *fde)
{
	uint64_t next;

	if (cfi_entry(&index->section, offset, &index->cie, fde, &next) != CFI_FDE ||
	    fde->start != start)
		return INDEX_BAD_ENTRY;
	return address < fde->end ? INDEX_FOUND : INDEX_GAP;
}

static enum index_result find_own(struct cfi_index *index, uint64_t address, struct cfi_fde *fde)
{
	size_t first = 0, len;

	if (!index->has_own && !make_own(index))
		return INDEX_NO_MEMORY;
	len = index->own_len;
	while (len) {
		size_t half = len / 2;

		if (index->own[first + half].start <= address) {
			first += half + 1;
			len -= half + 1;
		} else {
			len = half;
		}
	}
	if (!first)
		return INDEX_ABSENT;
	return entry_at(index, index->own[first - 1].offset, index->own[first - 1].start, address,
			fde);
}

/* A table out of order sends the search astray: looked at once, when the first search fails. */
static bool table_sorted(struct cfi_index *index)
{
	if (index->checked_order)
		return true;
	index->checked_order = true;
	for (size_t i = 1; i < index->table_len; i++)
		if ((int32_t)load_u32(index->table + i * HDR_ROW) <
		    (int32_t)load_u32(index->table + (i - 1) * HDR_ROW))
			return false;
	return true;
}

enum index_result index_find(struct cfi_index *index, uint64_t address, struct cfi_fde *fde)
{
	enum index_result result = INDEX_BELOW_TABLE;
	size_t row;

	if (!index->table)
		return find_own(index, address, fde);
	row = search_table(index, address);
	if (row != SIZE_MAX)
		result = entry_at(index, table_value(index, row, 4) - index->section.addr,
				  table_value(index, row, 0), address, fde);
	if (result == INDEX_FOUND || (result != INDEX_BAD_ENTRY && table_sorted(index)))
		return result;
	index->table = NULL;
	return find_own(index, address, fde);
}

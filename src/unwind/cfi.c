/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Entries of .eh_frame and .debug_frame: CIE, FDE and encoded pointers. Every length is checked
 * where it is read, against the bytes that are left. The row program is in cfirow.c.
 */
#include "cfi.h"

#include "dwarfcodes.h"

enum { MAX_AUGMENTATION = 8 };

/* Reads the number of an encoded pointer, without its base. */
static bool pointer_number(struct cursor *c, uint8_t format, uint64_t *value)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*value = cursor_u64(c);
		break;
	case DW_EH_PE_uleb128:
		*value = cursor_uleb(c);
		break;
	case DW_EH_PE_sleb128:
		*value = (uint64_t)cursor_sleb(c);
		break;
	case DW_EH_PE_udata2:
		*value = cursor_u16(c);
		break;
	case DW_EH_PE_sdata2:
		*value = (uint64_t)(int64_t)(int16_t)cursor_u16(c);
		break;
	case DW_EH_PE_udata4:
		*value = cursor_u32(c);
		break;
	case DW_EH_PE_sdata4:
		*value = (uint64_t)(int64_t)(int32_t)cursor_u32(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

bool cfi_pointer(struct cursor *c, const struct cfi_section *section, uint8_t encoding,
		 uint64_t data_base, uint64_t *value)
{
	uint64_t place, base;

	if (encoding == DW_EH_PE_omit || (encoding & DW_EH_PE_indirect))
		return false;
	if ((encoding & 0x70) == DW_EH_PE_aligned)
		cursor_skip(c, -(uint64_t)(c->p - section->bytes) & 7);
	place = section->addr + (uint64_t)(c->p - section->bytes);
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		base = 0;
		break;
	case DW_EH_PE_pcrel:
		base = place;
		break;
	case DW_EH_PE_textrel:
		base = section->text_addr;
		break;
	case DW_EH_PE_datarel:
		base = data_base;
		break;
	default:
		return false;
	}
	if (!pointer_number(c, encoding & 0x0f, value))
		return false;
	*value += base;
	return true;
}

/* Length and CIE pointer of an entry: the cursor stands behind them and ends at its end. */
struct entry_head {
	struct cursor c;
	uint64_t id, id_at;
	bool wide;
};

static bool entry_head(const struct cfi_section *section, uint64_t offset, struct entry_head *head,
		       uint64_t *next)
{
	struct cursor c = {section->bytes, section->bytes + section->len, false};
	uint64_t len;

	*next = 0;
	head->id = 0;
	head->wide = false;
	cursor_skip(&c, offset);
	len = cursor_u32(&c);
	if (len == UINT32_MAX) {
		head->wide = true;
		len = cursor_u64(&c);
	}
	if (c.bad || len > (uint64_t)(c.end - c.p))
		return false;
	head->c = (struct cursor){c.p, c.p + len, false};
	*next = (uint64_t)(c.p - section->bytes) + len;
	head->id_at = (uint64_t)(c.p - section->bytes);
	if (!len)
		return true;
	head->id = head->wide ? cursor_u64(&head->c) : cursor_u32(&head->c);
	return !head->c.bad;
}

static bool is_cie(const struct cfi_section *section, const struct entry_head *head)
{
	if (!section->debug)
		return head->id == 0;
	return head->id == (head->wide ? UINT64_MAX : UINT32_MAX);
}

/* The letters behind 'z'. Unknown ones end the reading: their data has a length. */
static bool augmentation(const struct cfi_section *section, struct cursor *c, const char *letters,
			 struct cfi_cie *cie)
{
	uint64_t ignored;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->fde_encoding = cursor_u8(c);
			break;
		case 'L':
			cursor_u8(c);
			break;
		case 'P': {
			uint8_t encoding = cursor_u8(c) & (uint8_t)~DW_EH_PE_indirect;

			if (!cfi_pointer(c, section, encoding, section->got_addr, &ignored))
				return false;
			break;
		}
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: signed with the B key; the signature is stripped anyway */
		case 'G':
			break;
		default:
			return !c->bad;
		}
	}
	return !c->bad;
}

static bool cie_augmentation(const struct cfi_section *section, struct cursor *c,
			     const char *letters, struct cfi_cie *cie)
{
	struct cursor data;
	uint64_t len;

	if (letters[0] != 'z')
		return letters[0] == '\0' || strcmp(letters, "eh") == 0;
	cie->has_length = true;
	len = cursor_uleb(c);
	if (c->bad || len > (uint64_t)(c->end - c->p))
		return false;
	data = (struct cursor){c->p, c->p + len, false};
	c->p += len;
	return augmentation(section, &data, letters + 1, cie);
}

static bool augmentation_string(struct cursor *c, char letters[MAX_AUGMENTATION + 1])
{
	for (size_t i = 0; i <= MAX_AUGMENTATION; i++) {
		letters[i] = (char)cursor_u8(c);
		if (!letters[i])
			return !c->bad;
	}
	return false;
}

static bool parse_cie(const struct cfi_section *section, uint64_t offset, struct cfi_cie *cie)
{
	char letters[MAX_AUGMENTATION + 1];
	struct entry_head head;
	struct cursor *c = &head.c;
	uint64_t next;

	if (cie->valid && cie->offset == offset)
		return true;
	*cie = (struct cfi_cie){.offset = offset, .addr_size = 8};
	if (!entry_head(section, offset, &head, &next) || !is_cie(section, &head))
		return false;
	cie->version = cursor_u8(c);
	if ((cie->version != 1 && cie->version != 3 && cie->version != 4) ||
	    !augmentation_string(c, letters))
		return false;
	if (strcmp(letters, "eh") == 0)
		cursor_u64(c);
	if (cie->version == 4) {
		cie->addr_size = cursor_u8(c);
		cie->segment_size = cursor_u8(c);
	}
	cie->code_align = cursor_uleb(c);
	cie->data_align = cursor_sleb(c);
	cie->ra_column = cie->version == 1 ? cursor_u8(c) : cursor_uleb(c);
	if (c->bad || cie->addr_size != 8 || cie->segment_size > 8 ||
	    !cie_augmentation(section, c, letters, cie))
		return false;
	cie->program = c->p;
	cie->program_end = c->end;
	cie->valid = true;
	return true;
}

/* Code range and program of an FDE whose CIE is known. */
static bool fde_body(const struct cfi_section *section, const struct cfi_cie *cie, struct cursor *c,
		     struct cfi_fde *fde)
{
	uint64_t size, len;

	cursor_skip(c, cie->segment_size);
	if (!cfi_pointer(c, section, cie->fde_encoding, section->got_addr, &fde->start) ||
	    !pointer_number(c, cie->fde_encoding & 0x0f, &size) ||
	    add_overflows(fde->start, size, &fde->end))
		return false;
	if (cie->has_length) {
		len = cursor_uleb(c);
		cursor_skip(c, len);
	}
	if (c->bad)
		return false;
	fde->program = c->p;
	fde->program_end = c->end;
	return true;
}

enum cfi_found cfi_entry(const struct cfi_section *section, uint64_t offset, struct cfi_cie *cie,
			 struct cfi_fde *fde, uint64_t *next)
{
	struct entry_head head;
	uint64_t cie_at;

	if (offset >= section->len || !entry_head(section, offset, &head, next)) {
		if (offset >= section->len)
			*next = 0;
		return CFI_BAD;
	}
	if (head.c.p == head.c.end && *next == head.id_at)
		return CFI_TERMINATOR;
	if (is_cie(section, &head))
		return CFI_CIE;
	if (section->debug)
		cie_at = head.id;
	else if (head.id <= head.id_at)
		cie_at = head.id_at - head.id;
	else
		return CFI_BAD;
	/* A CIE may only stand before its FDEs in .eh_frame; in .debug_frame anywhere. */
	if (!parse_cie(section, cie_at, cie) || !fde_body(section, cie, &head.c, fde))
		return CFI_BAD;
	return CFI_FDE;
}

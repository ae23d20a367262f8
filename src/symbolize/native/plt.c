/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Names of PLT stubs. A stub jumps through a slot of the GOT, and the relocation of that slot
 * names the function. On x86-64 the slot is found by decoding the stub's one indirect jump, which
 * serves .plt, .plt.sec and .plt.got, lazy or not, with or without an end-branch; on AArch64 by
 * its adrp and ldr.
 */
#include "plt.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { PLT_RANK = 40, PLT_SECTION_MAX = 16 << 20, STUB_MAX = 32 };

/* A slot of the GOT and the symbol whose address it holds. */
struct slot {
	uint64_t address;
	uint32_t symbol;
};

struct plt {
	struct image *image;
	VEC(struct slot) slots;
	VEC(const char *) names; /* of .dynsym, by index */
	bool failed;
};

static bool add_dynamic_name(void *data, const struct image_symbol *symbol)
{
	struct plt *plt = data;

	/* Symbol 0 is never told, and neither is one without a readable name. */
	while (plt->names.len < symbol->index && !plt->failed)
		plt->failed = !vec_push(&plt->names, NULL);
	if (!plt->failed && !vec_push(&plt->names, symbol->name))
		plt->failed = true;
	return !plt->failed;
}

static const uint8_t *section_bytes(struct image *image, const struct image_section *section,
				    size_t *len)
{
	struct spulse_error *error = NULL;
	const uint8_t *bytes;

	if (section->size > PLT_SECTION_MAX ||
	    image_section_bytes(image, section, &bytes, len, &error) < 0) {
		spulse_error_free(error);
		return NULL;
	}
	return bytes;
}

static void add_slot(struct plt *plt, const Elf64_Rela *rela)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info);

	if (!ELF64_R_SYM(rela->r_info) ||
	    (image_machine(plt->image) == EM_X86_64 ?
		     type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT :
		     type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_GLOB_DAT))
		return;
	if (!vec_push(&plt->slots, (struct slot){ rela->r_offset, ELF64_R_SYM(rela->r_info) }))
		plt->failed = true;
}

/*
 * Relocations that fill GOT slots with functions; wherever they are, the slot decides. A program
 * may have many others: they are passed over in pieces that are not kept.
 */
static void collect_slots(struct plt *plt, const struct image_section *section)
{
	Elf64_Rela piece[256];
	uint64_t left = section->size / sizeof(piece[0]), at = section->offset;

	if (section->size > PLT_SECTION_MAX || (section->flags & SHF_COMPRESSED))
		return;
	while (left && !plt->failed) {
		size_t n = MIN(left, (uint64_t)ARRAY_LEN(piece));
		struct spulse_error *error = NULL;

		if (image_read(plt->image, at, piece, n * sizeof(piece[0]), &error) < 0) {
			spulse_error_free(error);
			return;
		}
		for (size_t i = 0; i < n; i++)
			add_slot(plt, &piece[i]);
		left -= n;
		at += n * sizeof(piece[0]);
	}
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *slot_name(const struct plt *plt, uint64_t address)
{
	struct slot key = { .address = address };
	const struct slot *slot = plt->slots.len ?
		bsearch(&key, plt->slots.data, plt->slots.len, sizeof(key), compare_slots) : NULL;

	return slot && slot->symbol < plt->names.len ? plt->names.data[slot->symbol] : NULL;
}

/* jmp *disp(%rip), anywhere in the stub. */
static const char *x86_stub_name(const struct plt *plt, const uint8_t *code, size_t len,
				 uint64_t address)
{
	for (size_t i = 0; i + 6 <= len; i++) {
		const char *name;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		name = slot_name(plt, address + i + 6 + (int64_t)(int32_t)load_u32(code + i + 2));
		if (name)
			return name;
	}
	return NULL;
}

/* adrp x16, page; ldr x17, [x16, #offset]. */
static const char *arm_stub_name(const struct plt *plt, const uint8_t *code, size_t len,
				 uint64_t address)
{
	for (size_t i = 0; i + 8 <= len; i += 4) {
		uint32_t adrp = load_u32(code + i), ldr = load_u32(code + i + 4);
		uint64_t page;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = ((uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3)) << 12;
		page = (uint64_t)((int64_t)(page << 31) >> 31); /* 33 bits, signed */
		return slot_name(plt, ((address + i) & ~0xfffull) + page +
					      (ldr >> 10 & 0xfff) * 8);
	}
	return NULL;
}

static bool add_stub(const char *target, struct arena *names, struct raw_symbols *raw,
		     uint64_t start, uint64_t size)
{
	size_t len = strcspn(target, "@");
	char *name = arena_alloc(names, len + sizeof("@plt"));

	if (!name)
		return false;
	memcpy(name, target, len);
	memcpy(name + len, "@plt", sizeof("@plt"));
	return vec_push(raw, (struct raw_symbol){
			.start = start, .size = size, .name = name, .rank = PLT_RANK });
}

static void name_stubs(struct plt *plt, const struct image_section *section,
		       struct arena *names, struct raw_symbols *raw)
{
	bool x86 = image_machine(plt->image) == EM_X86_64;
	size_t stub = x86 ? (!strcmp(section->name, ".plt.got") && section->entsize == 8 ? 8 : 16)
			  : 16;
	size_t len;
	const uint8_t *bytes = section_bytes(plt->image, section, &len);

	for (size_t at = 0; bytes && at + stub <= len && !plt->failed; at += stub) {
		uint64_t address = section->addr + at;
		const char *name = x86 ? x86_stub_name(plt, bytes + at, stub, address) :
					 arm_stub_name(plt, bytes + at, stub, address);

		if (name && name[0] && !add_stub(name, names, raw, address, stub))
			plt->failed = true;
	}
}

bool plt_collect(struct image *image, struct arena *names, struct raw_symbols *raw)
{
	struct plt plt = { .image = image };
	struct spulse_error *error = NULL;
	size_t n;
	const struct image_section *sections = image_sections(image, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= has_prefix(sections[i].name, ".plt");
	if (!any || (image_machine(image) != EM_X86_64 && image_machine(image) != EM_AARCH64))
		return true;
	for (size_t i = 0; i < n && !plt.failed; i++)
		if (sections[i].type == SHT_RELA && has_prefix(sections[i].name, ".rela."))
			collect_slots(&plt, &sections[i]);
	if (plt.slots.len)
		qsort(plt.slots.data, plt.slots.len, sizeof(*plt.slots.data), compare_slots);
	if (image_symbols(image, true, add_dynamic_name, &plt, &error) < 0)
		spulse_error_free(error);
	for (size_t i = 0; i < n && !plt.failed; i++)
		if (has_prefix(sections[i].name, ".plt") && (sections[i].flags & SHF_EXECINSTR))
			name_stubs(&plt, &sections[i], names, raw);
	vec_free(&plt.slots);
	vec_free(&plt.names);
	return !plt.failed;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "symtab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fdestarts.h"
#include "../keysort.h"
#include "plt.h"

/* An executable section's addresses; symbols outside of all are not code. */
struct code_range {
	uint64_t start, end;
};

struct builder {
	struct symtab *symtab;
	struct raw_symbols raw;
	VEC(struct code_range) code;
	struct sort_key *keys;	/* what order is in */
	struct sort_key *order; /* of raw: by address */
	size_t count;
	bool failed;
	struct fde_starts fdes;
};

static int compare_code(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Code ranges are the sections', or the segments' when sections are stripped. */
static void collect_code(struct builder *b, const struct image *image)
{
	size_t n;
	const struct image_section *sections = image_sections(image, &n);
	const struct image_segment *segments;

	for (size_t i = 0; i < n; i++)
		if ((sections[i].flags & SHF_EXECINSTR) && (sections[i].flags & SHF_ALLOC) &&
		    sections[i].size <= UINT64_MAX - sections[i].addr)
			b->failed |= !vec_push(&b->code, (struct code_range){
				sections[i].addr, sections[i].addr + sections[i].size });
	if (!b->code.len) {
		segments = image_segments(image, &n);
		for (size_t i = 0; i < n; i++)
			if ((segments[i].flags & PF_X) &&
			    segments[i].memsz <= UINT64_MAX - segments[i].vaddr)
				b->failed |= !vec_push(&b->code, (struct code_range){
					segments[i].vaddr,
					segments[i].vaddr + segments[i].memsz });
	}
	if (b->code.len)
		qsort(b->code.data, b->code.len, sizeof(*b->code.data), compare_code);
}

static const struct code_range *find_code(const struct builder *b, uint64_t address)
{
	size_t low = 0, high = b->code.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->code.data[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < b->code.data[low - 1].end ? &b->code.data[low - 1] : NULL;
}

/* Lower is better: a size says most, then what other files may call. */
static uint8_t rank_of(const struct image_symbol *symbol, bool dynamic)
{
	uint8_t rank = symbol->size ? 0 : 16;

	if (symbol->type == STT_NOTYPE)
		rank += 8;
	if (symbol->bind == STB_WEAK)
		rank += 2;
	else if (symbol->bind == STB_LOCAL)
		rank += 4;
	return rank + dynamic;
}

static bool is_wanted(const struct image_symbol *symbol)
{
	if (!symbol->value || symbol->shndx == SHN_UNDEF || !symbol->name || !symbol->name[0])
		return false;
	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC &&
	    symbol->type != STT_NOTYPE)
		return false;
	/* Labels that assemblers make, and mapping symbols of AArch64 ($x, $d). */
	return !has_prefix(symbol->name, ".L") && symbol->name[0] != '$';
}

struct collector {
	struct builder *builder;
	const char *file; /* the local symbols that follow are of this source file */
	bool dynamic;
};

static bool collect_symbol(void *data, const struct image_symbol *symbol)
{
	struct collector *c = data;

	if (symbol->type == STT_FILE)
		c->file = symbol->name && symbol->name[0] ? symbol->name : NULL;
	if (!is_wanted(symbol) || !find_code(c->builder, symbol->value))
		return true;
	if (!vec_push(&c->builder->raw, (struct raw_symbol){
			.start = symbol->value,
			.size = symbol->size,
			.name = symbol->name,
			.file = symbol->bind == STB_LOCAL ? c->file : NULL,
			.rank = rank_of(symbol, c->dynamic),
		}))
		c->builder->failed = true;
	return !c->builder->failed;
}

static void collect_table(struct builder *b, struct image *image, bool dynamic)
{
	struct collector c = { .builder = b, .dynamic = dynamic };
	struct spulse_error *error = NULL;

	if (image_symbols(image, dynamic, collect_symbol, &c, &error) < 0) {
		log_debug("symbols of %s: %s", image_path(image), spulse_error_message(error));
		spulse_error_free(error);
	}
}

static bool is_better(const struct raw_symbol *x, const struct raw_symbol *y)
{
	if (x->rank != y->rank)
		return x->rank < y->rank;
	if (x->size != y->size)
		return x->size > y->size;
	return strcmp(x->name, y->name) < 0;
}

/* In the order of addresses, one name for each: `order` has the places in `raw`. */
static bool drop_aliases(struct builder *b)
{
	size_t n = b->raw.len, kept = 0;
	struct sort_key *sorted;

	b->keys = malloc((n + 1) * 2 * sizeof(*b->keys));
	for (size_t i = 0; i < n && b->keys; i++)
		b->keys[i] = (struct sort_key){ b->raw.data[i].start, i };
	sorted = b->keys ? sort_keys(b->keys, b->keys + n, n) : NULL;
	for (size_t i = 0; i < n && sorted; i++) {
		if (!kept || sorted[kept - 1].key != sorted[i].key)
			sorted[kept++] = sorted[i];
		else if (is_better(&b->raw.data[sorted[i].index],
				   &b->raw.data[sorted[kept - 1].index]))
			sorted[kept - 1] = sorted[i];
	}
	b->order = sorted;
	b->count = kept;
	return sorted;
}

/* Where a symbol ends; an unsized one reaches up to the next function or its section's end. */
static uint64_t end_of(const struct builder *b, size_t index)
{
	const struct raw_symbol *raw = &b->raw.data[b->order[index].index];
	uint64_t limit = find_code(b, raw->start)->end;

	if (raw->size)
		return raw->size < limit - raw->start ? raw->start + raw->size : limit;
	if (index + 1 < b->count)
		limit = MIN(limit, b->order[index + 1].key);
	return MIN(limit, fde_starts_after(&b->fdes, raw->start));
}

/* "name@VERSION" without the version. */
static const char *plain_name(struct symtab *symtab, const char *name)
{
	const char *at = strchr(name, '@');

	if (!at || at == name || !strcmp(at, "@plt"))
		return name;
	return arena_strndup(&symtab->names, name, at - name);
}

static bool build_entries(struct builder *b)
{
	struct symtab *symtab = b->symtab;
	struct span_range *ranges = malloc((b->count + 1) * sizeof(*ranges));
	uint64_t sized_end = 0;
	size_t n = 0;
	bool built;

	symtab->entries = malloc((b->count + 1) * sizeof(*symtab->entries));
	for (size_t i = 0; i < b->count && ranges && symtab->entries; i++) {
		const struct raw_symbol *raw = &b->raw.data[b->order[i].index];
		const char *name;
		uint64_t end;

		/* A label inside of a function that knows its size is not a function. */
		if (!raw->size && raw->start < sized_end)
			continue;
		name = plain_name(symtab, raw->name);
		if (!name)
			break;
		end = end_of(b, i);
		if (raw->size)
			sized_end = MAX(sized_end, end);
		symtab->entries[n] = (struct symtab_entry){raw->start, name, raw->file, raw->size};
		ranges[n] = (struct span_range){ raw->start, end, raw->size ? 1 : 0, n };
		n++;
	}
	symtab->count = n;
	built = ranges && symtab->entries && spans_build(&symtab->spans, ranges, n);
	free(ranges);
	return built;
}

bool symtab_build(struct symtab *symtab, struct image *const *images, size_t count)
{
	struct builder b = { .symtab = symtab };
	bool built;

	*symtab = (struct symtab){ 0 };
	collect_code(&b, images[0]);
	fde_starts_read(&b.fdes, images[0]);
	for (size_t i = 0; i < count; i++) {
		collect_table(&b, images[i], false);
		collect_table(&b, images[i], true);
	}
	b.failed |= !plt_collect(images[0], &symtab->names, &b.raw);
	built = !b.failed && drop_aliases(&b) && build_entries(&b);
	vec_free(&b.raw);
	free(b.keys);
	vec_free(&b.code);
	fde_starts_release(&b.fdes);
	if (!built)
		symtab_release(symtab);
	return built;
}

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t address)
{
	uint32_t id = spans_find(&symtab->spans, address);

	return id == SPAN_NONE ? NULL : &symtab->entries[id];
}

void symtab_release(struct symtab *symtab)
{
	spans_release(&symtab->spans);
	free(symtab->entries);
	arena_release(&symtab->names);
	*symtab = (struct symtab){ 0 };
}

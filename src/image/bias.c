/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which segment a mapping shows, from file ranges alone. The kernel maps whole pages, so a mapping
 * can begin before its segment (head) or end behind it (tail); one mapping can hold several
 * segments, or a part of one after mprotect(). Neighbours can share a page: then the page is in
 * two mappings at two biases, and only an answer that all candidates agree on is given.
 */
#include "elfimage.h"

#include <stdlib.h>

struct span {
	uint64_t start, end;
};

struct page_view {
	struct span map; /* file range */
	uint64_t page;
	bool aligned;
};

static uint64_t round_down(uint64_t n, uint64_t page)
{
	return n & ~(page - 1);
}

static uint64_t round_up(uint64_t n, uint64_t page)
{
	uint64_t end;

	return add_overflows(n, page - 1, &end) ? round_down(UINT64_MAX, page) : end & ~(page - 1);
}

static bool contains(const struct span *outer, const struct span *inner)
{
	return outer->start <= inner->start && inner->end <= outer->end;
}

static bool correlates(const struct span *part, const struct page_view *view)
{
	const struct span *map = &view->map;

	if (contains(part, map) || contains(map, part))
		return true;
	if (!view->aligned)
		return false;
	if (round_down(part->start, view->page) <= map->start && map->start < part->start)
		return part->start < map->end && map->end <= part->end;
	return part->start <= map->start && map->start < part->end && part->end < map->end &&
	       map->end <= round_up(part->end, view->page);
}

/* Whether the mapping may begin with this part: 2 exactly, 1 up to page rounding. */
static int starts(const struct span *part, const struct page_view *view)
{
	uint64_t at = view->map.start;

	if (part->start == at)
		return 2;
	return at % view->page == 0 && round_down(part->start, view->page) <= at &&
	       at < round_up(part->end, view->page);
}

struct choice {
	bool exact, head, any;
	uint64_t exact_bias, head_bias, any_bias;
	bool heads_differ, any_differ;
};

static void consider(struct choice *c, const struct image_segment *s, const struct page_view *view)
{
	struct span part = {.start = s->offset};
	uint64_t bias = s->vaddr - s->offset;
	int start;

	if (s->filesz == 0 || add_overflows(s->offset, s->filesz, &part.end))
		return;
	start = starts(&part, view);
	if (start) {
		c->heads_differ |= c->head && c->head_bias != bias;
		c->head = true;
		c->head_bias = bias;
	}
	if (start == 2) {
		c->exact = true;
		c->exact_bias = bias;
	}
	if (correlates(&part, view)) {
		c->any_differ |= c->any && c->any_bias != bias;
		c->any = true;
		c->any_bias = bias;
	}
}

static bool decide(const struct choice *c, uint64_t *bias)
{
	if (c->exact) {
		*bias = c->exact_bias;
		return !c->heads_differ;
	}
	*bias = c->any_bias;
	return c->any && !c->any_differ;
}

bool image_bias_pages(const struct image *image, uint64_t start, uint64_t end,
		      uint64_t file_offset, uint64_t page, uint64_t *bias)
{
	struct page_view view = {.map.start = file_offset, .page = page};
	struct choice choice = {0};
	uint64_t file_bias;

	if (end <= start || add_overflows(file_offset, end - start, &view.map.end))
		return false;
	view.aligned = file_offset % page == 0 && (end - start) % page == 0;
	for (size_t i = 0; i < image->segments.len; i++)
		consider(&choice, &image->segments.data[i], &view);
	if (image->segments.len == 0) {
		const struct image_section *text = image_section_by_name(image, ".text");

		if (text)
			consider(&choice, &(struct image_segment){.offset = text->offset,
				 .vaddr = text->addr, .filesz = text->size}, &view);
	}
	if (!decide(&choice, &file_bias))
		return false;
	*bias = start - file_offset - file_bias;
	return true;
}

bool image_bias(const struct image *image, uint64_t start, uint64_t end, uint64_t file_offset,
		uint64_t *bias)
{
	return image_bias_pages(image, start, end, file_offset, sysconf(_SC_PAGESIZE), bias);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spans.h"

#include <stdlib.h>

bool span_list_add(void *data, uint64_t start, uint64_t end)
{
	struct span_list *list = data;
	struct span_range range = { start, end, list->depth, list->id };

	if (start < list->low || end > list->high || start >= end)
		return true;
	if (list->ranges.len >= list->max)
		return false;
	if (!vec_push(&list->ranges, range))
		list->failed = true;
	return !list->failed;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct span_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_sorted(const struct span_range *ranges, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (compare_ranges(&ranges[i - 1], &ranges[i]) > 0)
			return false;
	return true;
}

struct sweep {
	struct spans *spans;
	VEC(struct span_range) open; /* innermost last */
};

static void emit(struct spans *spans, uint64_t start, uint32_t id)
{
	if (spans->count && spans->starts[spans->count - 1] == start)
		spans->count--;
	if (spans->count && spans->ids[spans->count - 1] == id)
		return;
	spans->starts[spans->count] = start;
	spans->ids[spans->count++] = id;
}

/* Closes what ends at or before the address; what shows below it goes on. */
static void close_until(struct sweep *sweep, uint64_t address)
{
	while (sweep->open.len && vec_last(&sweep->open).high <= address) {
		uint64_t end = vec_pop(&sweep->open).high;

		while (sweep->open.len && vec_last(&sweep->open).high <= end)
			sweep->open.len--;
		emit(sweep->spans, end, sweep->open.len ? vec_last(&sweep->open).id : SPAN_NONE);
	}
}

bool spans_build(struct spans *spans, struct span_range *ranges, size_t count)
{
	struct sweep sweep = { .spans = spans };

	*spans = (struct spans){ 0 };
	if (count > SIZE_MAX / 32 || !count)
		return !count;
	if (!is_sorted(ranges, count))
		qsort(ranges, count, sizeof(*ranges), compare_ranges);
	spans->starts = malloc(2 * count * sizeof(*spans->starts));
	spans->ids = malloc(2 * count * sizeof(*spans->ids));
	if (!spans->starts || !spans->ids || !vec_reserve(&sweep.open, count)) {
		vec_free(&sweep.open);
		spans_release(spans);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].low >= ranges[i].high)
			continue;
		close_until(&sweep, ranges[i].low);
		emit(spans, ranges[i].low, ranges[i].id);
		sweep.open.data[sweep.open.len++] = ranges[i];
	}
	close_until(&sweep, UINT64_MAX);
	vec_free(&sweep.open);
	return true;
}

uint32_t spans_find(const struct spans *spans, uint64_t address)
{
	const uint64_t *base = spans->starts;
	size_t n = spans->count;

	if (!n || address < base[0])
		return SPAN_NONE;
	while (n > 1) {
		size_t half = n / 2;

		base += base[half] <= address ? half : 0;
		n -= half;
	}
	return spans->ids[base - spans->starts];
}

void spans_release(struct spans *spans)
{
	free(spans->starts);
	free(spans->ids);
	*spans = (struct spans){ 0 };
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "stream.h"

static bool pack_run(struct range_index *index)
{
	uint8_t *p;

	if (index->begin == index->end)
		return true;
	if (!vec_reserve(&index->packed, 2 * VARINT_MAX))
		return false;
	p = index->packed.data + index->packed.len;
	p = varint_put(p, index->begin - index->packed_end);
	p = varint_put(p, index->end - index->begin);
	index->packed.len = p - index->packed.data;
	index->packed_end = index->end;
	index->count++;
	index->begin = index->end;
	return true;
}

bool range_index_add(struct range_index *index, uint64_t begin, uint64_t end, size_t max_ranges)
{
	if (index->begin != index->end && index->end == begin) {
		index->end = end;
		return true;
	}
	if (index->rest)
		return true;
	if (!pack_run(index))
		return false;
	if (index->count >= max_ranges) {
		index->rest = begin;
		return true;
	}
	index->begin = begin;
	index->end = end;
	return true;
}

bool range_index_close(struct range_index *index, uint64_t size)
{
	if (!index->rest)
		index->rest = size;
	return pack_run(index);
}

void range_index_release(struct range_index *index)
{
	vec_free(&index->packed);
}

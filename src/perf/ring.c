/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "live.h"

bool perf_ring_init(struct perf_ring *ring, void *area, size_t map_bytes, size_t page_size)
{
	struct perf_event_mmap_page *page = area;
	uint64_t offset = page->data_offset ? page->data_offset : page_size;
	uint64_t size = page->data_size ? page->data_size : map_bytes - page_size;

	*ring = (struct perf_ring){ .page = page, .map_bytes = map_bytes };
	if (size == 0 || (size & (size - 1)) || offset > map_bytes || size > map_bytes - offset)
		return false;
	ring->data = (uint8_t *)area + offset;
	ring->size = size;
	ring->position = ring->published = __atomic_load_n(&page->data_tail, __ATOMIC_RELAXED);
	ring->head = ring->old_head = ring->position;
	return true;
}

void perf_ring_release(struct perf_ring *ring)
{
	if (ring->page)
		perf_sys->unmap(ring->page, ring->map_bytes);
	free(ring->bounce);
	*ring = (struct perf_ring){ 0 };
}

static int malformed(struct perf_ring *ring, const char *what, struct spulse_error **err)
{
	return err_file(err, SPULSE_ERROR_IO, EBADMSG, NULL,
			"malformed ring data at position %llu: %s",
			(unsigned long long)ring->position, what);
}

int perf_ring_snapshot(struct perf_ring *ring, struct spulse_error **err)
{
	/* Pairs with the kernel's store after it wrote the records. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	/* Space that was consumed since the last look is of no use to us any more. */
	perf_ring_publish(ring);
	if (head < ring->position)
		return malformed(ring, "the head went back", err);
	if (head - ring->position > ring->size)
		return malformed(ring, "more data than the ring holds", err);
	ring->old_head = ring->head;
	ring->head = head;
	return 0;
}

/* Assembles what wraps around the end of the ring. */
static int copy_wrapped(struct perf_ring *ring, size_t at, size_t size, struct spulse_error **err)
{
	size_t first = ring->size - at;

	if (!ring->bounce)
		ring->bounce = malloc(PERF_RECORD_MAX + 1);
	if (!ring->bounce)
		return err_no_memory(err);
	memcpy(ring->bounce, ring->data + at, first);
	memcpy(ring->bounce + first, ring->data, size - first);
	return 0;
}

int perf_ring_front(struct perf_ring *ring, const void **record, size_t *size,
		    struct spulse_error **err)
{
	uint64_t left = ring->head - ring->position;
	size_t at = ring->position & (ring->size - 1);
	const struct perf_event_header *header = (const void *)(ring->data + at);
	int r;

	if (left == 0)
		return 0;
	/* A header never wraps: positions and sizes are multiples of 8. */
	if (left < sizeof(*header) || (ring->position & 7))
		return malformed(ring, "an incomplete header", err);
	*size = header->size;
	if (*size < sizeof(*header) || (*size & 7))
		return malformed(ring, "an impossible record length", err);
	if (*size > left)
		return malformed(ring, "a record beyond the head", err);
	*record = header;
	if (at + *size > ring->size) {
		r = copy_wrapped(ring, at, *size, err);
		if (r < 0)
			return r;
		*record = ring->bounce;
	}
	return 1;
}

void perf_ring_publish(struct perf_ring *ring)
{
	if (ring->published == ring->position)
		return;
	/* All reads of the records come before the kernel may overwrite them. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->page->data_tail, ring->position, __ATOMIC_RELEASE);
	ring->published = ring->position;
}

void perf_ring_advance(struct perf_ring *ring, size_t size)
{
	ring->position += size;
	/* A fence per record is dear; a sixteenth of the ring is not missed meanwhile. */
	if (ring->position - ring->published >= ring->size / 16 || ring->position == ring->head)
		perf_ring_publish(ring);
}

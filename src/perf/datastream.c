/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The records of a perf.data file, put in the order of time. The rings were written to the file
 * one after the other in rounds: what is not newer than the newest record of the round before
 * the last can go out when a round ends, as no older one follows.
 */
#include <errno.h>

#include "datafile.h"
#include "live.h"

size_t perf_file_queue_limit = 256 << 20;

/* ---- order ---- */

static int compare_queued(const void *a, const void *b)
{
	const struct file_queued *x = *(struct file_queued *const *)a;
	const struct file_queued *y = *(struct file_queued *const *)b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Makes ready what is not newer than up_to; nothing is ready before. */
void perf_file_sort(struct perf_file *file, uint64_t up_to)
{
	if (file->next) {
		file->queue.len -= file->next;
		memmove(file->queue.data, file->queue.data + file->next,
			file->queue.len * sizeof(file->queue.data[0]));
		file->next = file->ready = 0;
	}
	if (!file->queue.len)
		return;
	qsort(file->queue.data, file->queue.len, sizeof(file->queue.data[0]), compare_queued);
	while (file->ready < file->queue.len && file->queue.data[file->ready]->time <= up_to)
		file->ready++;
}

/* A file without rounds would fill the memory. */
static void limit_queue(struct perf_file *file)
{
	if (file->queue_bytes <= perf_file_queue_limit)
		return;
	perf_file_sort(file, 0);
	file->ready = MAX(file->ready, (file->queue.len + 1) / 2);
	if (!file->dropped_order)
		log_debug("%s: its records are too far out of order to sort all of them",
			  file->path);
	file->dropped_order = true;
}

static bool is_wanted(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return true;
	default:
		return false;
	}
}

/* ---- whose record it is ---- */

static size_t words(uint64_t type, uint64_t fields)
{
	return __builtin_popcountll(type & fields);
}

/* The id of the event that wrote a record; false when it has none. Its place is the same for all
 * events of a file. */
static bool record_id(const struct perf_layout *layout, const uint8_t *record, size_t size,
		      uint64_t *id)
{
	uint64_t type = layout->sample_type;
	size_t before, at;

	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return false;
	if (load_u32(record) == PERF_RECORD_SAMPLE) {
		before = type & PERF_SAMPLE_IDENTIFIER ? 0 :
			words(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_ADDR);
		at = 8 + 8 * before;
		if (at + 8 > size)
			return false;
	} else {
		if (!layout->sample_id_all)
			return false;
		before = type & PERF_SAMPLE_IDENTIFIER ? 0 :
			words(type, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
		if (8 + 8 * (before + 1) > size)
			return false;
		at = size - 8 * (before + 1);
	}
	*id = load_u64(record + at);
	return true;
}

/* NULL: a sample of an event that the file does not describe. */
static const struct file_attr *attr_of(const struct perf_file *file, const uint8_t *record,
				       size_t size)
{
	const struct file_attr *first = &file->attrs.data[0];
	const uint64_t *index;
	uint64_t id;

	if (file->attrs.len == 1 || !record_id(&first->layout, record, size, &id))
		return &file->attrs.data[file->primary];
	index = u64map_get(&file->ids, id);
	if (index)
		return &file->attrs.data[*index];
	/* Records that perf made itself have the id 0. */
	return load_u32(record) == PERF_RECORD_SAMPLE ? NULL : first;
}

/* ---- one record ---- */

static int queue_event(struct perf_file *file, const struct perf_event *event,
		       const uint8_t *record, size_t size, struct spulse_error **err)
{
	size_t used = perf_event_used_bytes(event, record, size);
	struct file_queued *queued = malloc(sizeof(*queued) + used);

	if (!queued || !vec_push(&file->queue, queued)) {
		free(queued);
		return err_no_memory(err);
	}
	queued->time = event->has_time ? event->time : 0;
	queued->sequence = file->sequence++;
	queued->bytes = sizeof(*queued) + used;
	queued->event = *event;
	memcpy(queued->record, record, used);
	perf_event_move(&queued->event, record, queued->record);
	file->newest = MAX(file->newest, queued->time);
	file->queue_bytes += queued->bytes;
	limit_queue(file);
	return 0;
}

static int add_kernel_record(struct perf_file *file, const uint8_t *record, size_t size,
			     uint64_t offset, struct spulse_error **err)
{
	const struct file_attr *attr;
	struct perf_event event;

	if (!is_wanted(load_u32(record)))
		return 0;
	if (!file->attrs.len)
		return perf_file_bad(file, offset, err, "a record before any event is described");
	attr = attr_of(file, record, size);
	if (!attr) {
		file->info.skipped++;
		return 0;
	}
	if ((uintptr_t)record & 7)
		record = memcpy(file->record, record, size);
	if (perf_record_decode(&attr->layout, record, size, &event) < 0)
		return perf_file_bad(file, offset, err,
				     "a record of type %u and %zu bytes breaks its layout",
				     load_u32(record), size);
	/* No clock of the kernel shows it, and no difference of two such times would fit. */
	if (event.has_time && event.time > INT64_MAX)
		return perf_file_bad(file, offset, err, "a time of %llu ns",
				     (unsigned long long)event.time);
	return queue_event(file, &event, record, size, err);
}

static int add_attr_record(struct perf_file *file, const uint8_t *record, size_t size,
			   uint64_t offset, struct spulse_error **err)
{
	size_t attr_size = size >= 16 ? load_u32(record + 8 + 4) : 0;

	if (!file->pipe)
		return 0;
	if (attr_size == 0)
		attr_size = PERF_ATTR_SIZE_VER0;
	if (attr_size < PERF_ATTR_SIZE_VER0 || attr_size > size - 8)
		return perf_file_bad(file, offset, err, "an event description of %zu bytes",
				     attr_size);
	return perf_file_add_attr(file, record + 8, attr_size, record + 8 + attr_size,
				  size - 8 - attr_size, offset, err);
}

static int start_unzip(struct perf_file *file, const uint8_t *payload, uint64_t len,
		       uint64_t offset, struct spulse_error **err)
{
	int r;

	if (!file->unzip) {
		r = file_unzip_new(&file->unzip, err);
		if (r < 0)
			return r;
	}
	file_unzip_put(file->unzip, payload, len);
	file->unzipping = true;
	file->unzip_offset = offset;
	return 0;
}

static int add_compressed(struct perf_file *file, const uint8_t *record, size_t size,
			  uint64_t offset, struct spulse_error **err)
{
	size_t head = 8;
	uint64_t len = size - head;

	if (file->unzipping)
		return perf_file_bad(file, offset, err, "a compressed record in another one");
	if (load_u32(record) == FILE_RECORD_COMPRESSED2) {
		head = 16;
		len = size >= head ? load_u64(record + 8) : UINT64_MAX;
		if (len > size - MIN(size, head))
			return perf_file_bad(file, offset, err,
					     "a compressed record that is longer than itself");
	}
	return start_unzip(file, record + head, len, offset, err);
}

/* What follows a record without being one. */
static uint64_t appendix(const struct perf_file *file, const uint8_t *record, size_t size)
{
	switch (load_u32(record)) {
	case FILE_RECORD_TRACING_DATA:
		return file->pipe && size >= 12 ? (load_u32(record + 8) + 7ull) & ~7ull : 0;
	case FILE_RECORD_AUXTRACE:
		return size >= 16 ? load_u64(record + 8) : 0;
	default:
		return 0;
	}
}

static int add_record(struct perf_file *file, const uint8_t *record, size_t size,
		      uint64_t offset, struct spulse_error **err)
{
	switch (load_u32(record)) {
	case FILE_RECORD_ATTR:
		return add_attr_record(file, record, size, offset, err);
	case FILE_RECORD_FEATURE:
		return file->pipe && size >= 16 && load_u64(record + 8) < FILE_FEATURES ?
			perf_file_add_feature(file, load_u64(record + 8), record + 16, size - 16,
					      err) : 0;
	case FILE_RECORD_BUILD_ID:
		return perf_file_add_build_id(file, record, size, err);
	case FILE_RECORD_FINISHED_ROUND:
		perf_file_sort(file, file->flush_to);
		file->flush_to = file->newest;
		return 0;
	case FILE_RECORD_COMPRESSED:
	case FILE_RECORD_COMPRESSED2:
		return add_compressed(file, record, size, offset, err);
	default:
		return add_kernel_record(file, record, size, offset, err);
	}
}

/* ---- all records ---- */

static int cut_off(struct perf_file *file)
{
	if (file->bytes.len)
		file->info.truncated = true;
	file->at_end = true;
	return 0;
}

/* Looks at the next record of the file: 1, 0 at the end, or an error. */
static int peek(struct perf_file *file, const uint8_t **record, size_t *size,
		struct spulse_error **err)
{
	int r = file_bytes_need(&file->bytes, sizeof(struct perf_event_header), record);

	*size = 0;
	if (r > 0) {
		*size = load_u16(*record + 6);
		if (*size < sizeof(struct perf_event_header))
			return perf_file_bad(file, file->bytes.offset, err,
					     "a record of %zu bytes", *size);
		r = file_bytes_need(&file->bytes, *size, record);
	}
	if (r < 0)
		return err_io(err, -r, file->path, "cannot read");
	return r > 0 ? 1 : cut_off(file);
}

static int take(struct perf_file *file, const uint8_t *record, size_t size,
		struct spulse_error **err)
{
	uint64_t more = appendix(file, record, size);
	int r = add_record(file, record, size, file->bytes.offset, err);

	/* Skipping leaves the bytes where they are, so that they can be unpacked. */
	file_bytes_skip(&file->bytes, size);
	if (r < 0 || more == 0)
		return r;
	r = file_bytes_skip_far(&file->bytes, more);
	if (r < 0)
		return err_io(err, -r, file->path, "cannot read");
	if (r == 0) {
		file->info.truncated = true;
		file->at_end = true;
	}
	return 0;
}

static int unpack_one(struct perf_file *file, struct spulse_error **err)
{
	const uint8_t *record;
	size_t size;
	int r = file_unzip_record(file->unzip, &record, &size);

	if (r < 0)
		return perf_file_bad(file, file->unzip_offset, err,
				     "a compressed record cannot be unpacked");
	if (r == 0) {
		file->unzipping = false;
		return 0;
	}
	return add_record(file, record, size, file->unzip_offset, err);
}

int perf_file_read_until_ready(struct perf_file *file, struct spulse_error **err)
{
	const uint8_t *record;
	size_t size;
	int r = 0;

	while (r >= 0 && file->next == file->ready && !file->at_end) {
		if (file->unzipping) {
			r = unpack_one(file, err);
			continue;
		}
		r = peek(file, &record, &size, err);
		if (r > 0)
			r = take(file, record, size, err);
	}
	if (r >= 0 && file->next == file->ready && file->at_end)
		perf_file_sort(file, UINT64_MAX);
	return MIN(r, 0);
}

/* The records of a pipe that describe it. */
int perf_file_read_preamble(struct perf_file *file, struct spulse_error **err)
{
	const uint8_t *record;
	size_t size;
	int r;

	while ((r = peek(file, &record, &size, err)) > 0) {
		uint32_t type = load_u32(record);

		if (type < FILE_RECORD_ATTR || type == FILE_RECORD_FINISHED_ROUND ||
		    type == FILE_RECORD_FINISHED_INIT || type == FILE_RECORD_COMPRESSED ||
		    type == FILE_RECORD_COMPRESSED2)
			return 0;
		r = take(file, record, size, err);
		if (r < 0)
			return r;
	}
	return r;
}

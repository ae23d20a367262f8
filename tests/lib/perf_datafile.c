/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "perf_datafile.h"

#include <stdlib.h>

enum { HEADER_BYTES = 104, RECORD_ATTR = 64, RECORD_ROUND = 68, RECORD_FEATURE = 80 };

void perf_datafile_init(struct perf_datafile *f, bool pipe)
{
	memset(f, 0, sizeof(*f));
	f->pipe = pipe;
}

void perf_datafile_release(struct perf_datafile *f)
{
	perf_records_release(&f->attrs);
	perf_records_release(&f->ids);
	perf_records_release(&f->data);
	perf_records_release(&f->features);
	perf_records_release(&f->feature_table);
}

void perf_datafile_attr(struct perf_datafile *f, const struct perf_event_attr *attr,
			const uint64_t *ids, size_t count)
{
	if (f->pipe) {
		perf_records_begin(&f->data, RECORD_ATTR, 0);
		perf_records_bytes(&f->data, attr, sizeof(*attr));
		perf_records_bytes(&f->data, ids, count * 8);
		perf_records_end(&f->data);
		return;
	}
	perf_records_bytes(&f->attrs, attr, sizeof(*attr));
	perf_records_u64(&f->attrs, HEADER_BYTES + f->ids.bytes.len);
	perf_records_u64(&f->attrs, count * 8);
	perf_records_bytes(&f->ids, ids, count * 8);
}

void perf_datafile_plain_attr(struct perf_datafile *f, const struct perf_layout *layout)
{
	perf_datafile_attr(f, &(struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(struct perf_event_attr),
		.freq = 1,
		.sample_freq = 997,
		.sample_type = layout->sample_type,
		.read_format = layout->read_format,
		.sample_regs_user = layout->regs_user_mask,
		.sample_stack_user = layout->sample_type & PERF_SAMPLE_STACK_USER ? 8192 : 0,
		.sample_id_all = layout->sample_id_all,
	}, NULL, 0);
}

void perf_datafile_records(struct perf_datafile *f, const void *bytes, size_t len)
{
	perf_records_bytes(&f->data, bytes, len);
}

void perf_datafile_round(struct perf_datafile *f)
{
	perf_records_begin(&f->data, RECORD_ROUND, 0);
	perf_records_end(&f->data);
}

void perf_datafile_feature(struct perf_datafile *f, unsigned int feature, const void *bytes,
			   size_t len)
{
	if (f->pipe) {
		perf_records_begin(&f->data, RECORD_FEATURE, 0);
		perf_records_u64(&f->data, feature);
		perf_records_bytes(&f->data, bytes, len);
		perf_records_end(&f->data);
		return;
	}
	f->feature_bits[feature / 64] |= 1ull << (feature % 64);
	/* Offsets are from the start of the features until the file is put together. */
	perf_records_u64(&f->feature_table, f->features.bytes.len);
	perf_records_u64(&f->feature_table, len);
	perf_records_bytes(&f->features, bytes, len);
}

void perf_datafile_string_feature(struct perf_datafile *f, unsigned int feature, const char *s)
{
	struct perf_records w = { 0 };

	perf_records_u32(&w, (strlen(s) + 8) & ~7u);
	perf_records_string(&w, s);
	perf_datafile_feature(f, feature, w.bytes.data, w.bytes.len);
	perf_records_release(&w);
}

static void put_header(const struct perf_datafile *f, struct perf_records *w)
{
	uint64_t attrs = HEADER_BYTES + f->ids.bytes.len;

	perf_records_u64(w, HEADER_BYTES);
	perf_records_u64(w, sizeof(struct perf_event_attr) + 16);
	perf_records_u64(w, attrs);
	perf_records_u64(w, f->attrs.bytes.len);
	perf_records_u64(w, attrs + f->attrs.bytes.len);
	perf_records_u64(w, f->data.bytes.len);
	perf_records_u64(w, 0);
	perf_records_u64(w, 0);
	perf_records_bytes(w, f->feature_bits, sizeof(f->feature_bits));
	perf_records_bytes(w, f->ids.bytes.data, f->ids.bytes.len);
	perf_records_bytes(w, f->attrs.bytes.data, f->attrs.bytes.len);
}

uint8_t *perf_datafile_take(struct perf_datafile *f, size_t *len)
{
	struct perf_records w = { 0 };
	uint64_t base;

	perf_records_bytes(&w, "PERFILE2", 8);
	if (f->pipe)
		perf_records_u64(&w, 16);
	else
		put_header(f, &w);
	perf_records_bytes(&w, f->data.bytes.data, f->data.bytes.len);
	base = w.bytes.len + f->feature_table.bytes.len;
	for (size_t i = 0; i < f->feature_table.bytes.len; i += 16) {
		perf_records_u64(&w, base + load_u64(f->feature_table.bytes.data + i));
		perf_records_u64(&w, load_u64(f->feature_table.bytes.data + i + 8));
	}
	perf_records_bytes(&w, f->features.bytes.data, f->features.bytes.len);
	*len = w.bytes.len;
	perf_datafile_release(f);
	return w.bytes.data;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "perf_records.h"

#include <stdlib.h>

void perf_records_init(struct perf_records *w, uint64_t regs_mask)
{
	memset(w, 0, sizeof(*w));
	w->layout = (struct perf_layout){
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN,
		.read_format = PERF_FORMAT_LOST,
		.regs_user_mask = regs_mask,
		.sample_id_all = true,
	};
	if (regs_mask)
		w->layout.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
}

void perf_records_release(struct perf_records *w)
{
	vec_free(&w->bytes);
}

void perf_records_bytes(struct perf_records *w, const void *bytes, size_t len)
{
	if (!vec_reserve(&w->bytes, len))
		abort();
	if (len)
		memcpy(w->bytes.data + w->bytes.len, bytes, len);
	w->bytes.len += len;
}

void perf_records_u32(struct perf_records *w, uint32_t value)
{
	perf_records_bytes(w, &value, sizeof(value));
}

void perf_records_u64(struct perf_records *w, uint64_t value)
{
	perf_records_bytes(w, &value, sizeof(value));
}

void perf_records_string(struct perf_records *w, const char *s)
{
	static const uint8_t zeros[8];
	size_t len = strlen(s);

	perf_records_bytes(w, s, len);
	perf_records_bytes(w, zeros, 8 - len % 8);
}

void perf_records_begin(struct perf_records *w, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	w->start = w->bytes.len;
	perf_records_bytes(w, &header, sizeof(header));
}

size_t perf_records_end(struct perf_records *w)
{
	size_t size = w->bytes.len - w->start;
	struct perf_event_header header;

	memcpy(&header, w->bytes.data + w->start, sizeof(header));
	header.size = size;
	memcpy(w->bytes.data + w->start, &header, sizeof(header));
	return size;
}

void perf_records_trailer(struct perf_records *w, int32_t pid, int32_t tid, uint64_t time)
{
	uint64_t type = w->layout.sample_id_all ? w->layout.sample_type : 0;

	if (type & PERF_SAMPLE_TID) {
		perf_records_u32(w, pid);
		perf_records_u32(w, tid);
	}
	if (type & PERF_SAMPLE_TIME)
		perf_records_u64(w, time);
	if (type & PERF_SAMPLE_ID)
		perf_records_u64(w, 77);
	if (type & PERF_SAMPLE_STREAM_ID)
		perf_records_u64(w, 78);
	if (type & PERF_SAMPLE_CPU)
		perf_records_u64(w, 1);
	if (type & PERF_SAMPLE_IDENTIFIER)
		perf_records_u64(w, 77);
}

static void put_user_state(struct perf_records *w, const struct perf_sample_fields *s)
{
	static const uint64_t no_regs[64];
	static const uint8_t zeros[65536];

	perf_records_u64(w, s->abi);
	if (s->abi)
		perf_records_bytes(w, s->regs ? s->regs : no_regs,
				   8 * __builtin_popcountll(w->layout.regs_user_mask));
	perf_records_u64(w, s->stack_size);
	if (!s->stack_size)
		return;
	perf_records_bytes(w, s->stack ? s->stack : zeros, s->stack_used);
	perf_records_bytes(w, zeros, s->stack_size - s->stack_used);
	perf_records_u64(w, s->stack_used);
}

void perf_put_sample(struct perf_records *w, const struct perf_sample_fields *s)
{
	perf_records_begin(w, PERF_RECORD_SAMPLE, s->misc ? s->misc : PERF_RECORD_MISC_USER);
	perf_records_u64(w, s->ip);
	perf_records_u32(w, s->pid);
	perf_records_u32(w, s->tid);
	perf_records_u64(w, s->time);
	perf_records_u64(w, s->chain_len);
	perf_records_bytes(w, s->chain, 8 * s->chain_len);
	if (w->layout.sample_type & PERF_SAMPLE_REGS_USER)
		put_user_state(w, s);
	perf_records_end(w);
}

static void put_mmap_head(struct perf_records *w, uint32_t type, const struct perf_mmap_fields *m)
{
	perf_records_begin(w, type, m->misc ? m->misc : PERF_RECORD_MISC_USER);
	perf_records_u32(w, m->pid);
	perf_records_u32(w, m->tid);
	perf_records_u64(w, m->start);
	perf_records_u64(w, m->len);
	perf_records_u64(w, m->offset);
}

static void put_mmap_tail(struct perf_records *w, const struct perf_mmap_fields *m)
{
	perf_records_string(w, m->path);
	perf_records_trailer(w, m->pid, m->tid, m->time);
	perf_records_end(w);
}

void perf_put_mmap2(struct perf_records *w, const struct perf_mmap_fields *m)
{
	put_mmap_head(w, PERF_RECORD_MMAP2, m);
	perf_records_u32(w, m->dev_major);
	perf_records_u32(w, m->dev_minor);
	perf_records_u64(w, m->inode);
	perf_records_u64(w, m->generation);
	perf_records_u32(w, m->prot);
	perf_records_u32(w, 2 /* MAP_PRIVATE */);
	put_mmap_tail(w, m);
}

void perf_put_mmap(struct perf_records *w, const struct perf_mmap_fields *m)
{
	put_mmap_head(w, PERF_RECORD_MMAP, m);
	put_mmap_tail(w, m);
}

void perf_put_comm(struct perf_records *w, int32_t pid, int32_t tid, uint64_t time, bool exec,
		   const char *name)
{
	perf_records_begin(w, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	perf_records_u32(w, pid);
	perf_records_u32(w, tid);
	perf_records_string(w, name);
	perf_records_trailer(w, pid, tid, time);
	perf_records_end(w);
}

void perf_put_task(struct perf_records *w, uint32_t type, int32_t pid, int32_t ppid, int32_t tid,
		   int32_t ptid, uint64_t time)
{
	perf_records_begin(w, type, 0);
	perf_records_u32(w, pid);
	perf_records_u32(w, ppid);
	perf_records_u32(w, tid);
	perf_records_u32(w, ptid);
	perf_records_u64(w, time);
	perf_records_trailer(w, ppid, ptid, time);
	perf_records_end(w);
}

void perf_put_lost(struct perf_records *w, uint64_t id, uint64_t count, uint64_t time)
{
	perf_records_begin(w, PERF_RECORD_LOST, 0);
	perf_records_u64(w, id);
	perf_records_u64(w, count);
	perf_records_trailer(w, 0, 0, time);
	perf_records_end(w);
}

void perf_put_lost_samples(struct perf_records *w, uint64_t count, uint64_t time)
{
	perf_records_begin(w, PERF_RECORD_LOST_SAMPLES, 0);
	perf_records_u64(w, count);
	perf_records_trailer(w, 0, 0, time);
	perf_records_end(w);
}

void perf_put_switch(struct perf_records *w, int32_t pid, int32_t tid, bool out, uint64_t time)
{
	perf_records_begin(w, PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0);
	perf_records_trailer(w, pid, tid, time);
	perf_records_end(w);
}

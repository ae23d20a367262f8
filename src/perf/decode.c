/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Record decoding. A record is 8-byte aligned and consumed exactly; whatever does not fit its
 * layout is refused as a whole. Nothing is copied: the event points into the record.
 */
#include <errno.h>

#include "live.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static const void *take(struct cursor *c, uint64_t bytes)
{
	const uint8_t *at = c->at;

	if (unlikely(bytes > (uint64_t)(c->end - at))) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	c->at += bytes;
	return at;
}

static uint64_t take_u64(struct cursor *c)
{
	const void *p = take(c, 8);

	return p ? load_u64(p) : 0;
}

static uint32_t take_u32(struct cursor *c)
{
	const void *p = take(c, 4);

	return p ? load_u32(p) : 0;
}

/* An array of 64-bit words whose count comes from the record. */
static const uint64_t *take_words(struct cursor *c, uint64_t count)
{
	if (count > (uint64_t)(c->end - c->at) / 8) {
		c->bad = true;
		return NULL;
	}
	return take(c, count * 8);
}

/* A NUL-terminated string that fills the rest. */
static const char *take_string(struct cursor *c, size_t *len)
{
	const char *s = (const char *)c->at;

	*len = strnlen(s, c->end - c->at);
	if (*len == (size_t)(c->end - c->at)) {
		c->bad = true;
		*len = 0;
		return "";
	}
	c->at = c->end;
	return s;
}

/* ---- samples ---- */

/* struct read_format: counters that nobody here uses. */
static void skip_read(struct cursor *c, uint64_t format)
{
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	uint64_t count;

	if (!(format & PERF_FORMAT_GROUP)) {
		take_words(c, times + each);
		return;
	}
	count = take_u64(c);
	take_words(c, times);
	if (count > (uint64_t)(c->end - c->at) / 8)
		c->bad = true;
	else
		take_words(c, count * each);
}

static void skip_raw(struct cursor *c)
{
	uint32_t size = take_u32(c);

	if ((size + 4ull) & 7)
		c->bad = true;
	else
		take(c, size);
}

static void skip_branches(struct cursor *c, uint64_t branch_type)
{
	uint64_t count = take_u64(c);

	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		take_u64(c);
	if (count > (uint64_t)(c->end - c->at) / 24)
		c->bad = true;
	else
		take(c, count * 24);
#ifdef PERF_SAMPLE_BRANCH_COUNTERS
	if (branch_type & PERF_SAMPLE_BRANCH_COUNTERS)
		take_words(c, count);
#endif
}

/* Registers of another width than ours are skipped over and not shown. */
static const uint64_t *take_regs(struct cursor *c, uint64_t mask, uint64_t *abi)
{
	const uint64_t *regs;

	*abi = take_u64(c);
	if (*abi > PERF_SAMPLE_REGS_ABI_64)
		c->bad = true;
	if (*abi == PERF_SAMPLE_REGS_ABI_NONE)
		return NULL;
	regs = take_words(c, __builtin_popcountll(mask));
	return *abi == PERF_SAMPLE_REGS_ABI_64 && !c->bad ? regs : NULL;
}

static void take_stack(struct cursor *c, struct perf_sample_data *s)
{
	uint64_t size = take_u64(c);

	s->stack_requested = size;
	if (size == 0)
		return;
	if (size & 7)
		c->bad = true;
	s->stack = take(c, size);
	s->stack_len = take_u64(c);
	s->has_stack = true;
	if (s->stack_len > size)
		c->bad = true;
}

/* What comes after the user stack; none of it is used. */
static void skip_sample_tail(struct cursor *c, const struct perf_layout *layout)
{
	uint64_t type = layout->sample_type, abi;

	/* WEIGHT and WEIGHT_STRUCT share one word. */
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		take_u64(c);
	if (type & PERF_SAMPLE_DATA_SRC)
		take_u64(c);
	if (type & PERF_SAMPLE_TRANSACTION)
		take_u64(c);
	if (type & PERF_SAMPLE_REGS_INTR)
		take_regs(c, layout->regs_intr_mask, &abi);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		take_u64(c);
	if (type & PERF_SAMPLE_CGROUP)
		take_u64(c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		take_u64(c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		take_u64(c);
	if (type & PERF_SAMPLE_AUX) {
		uint64_t size = take_u64(c);

		if (size & 7)
			c->bad = true;
		take(c, size);
	}
}

static void take_sample_head(struct cursor *c, uint64_t type, struct perf_event *event)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		take_u64(c);
	if (type & PERF_SAMPLE_IP)
		event->sample.ip = take_u64(c);
	if (type & PERF_SAMPLE_TID) {
		event->pid = take_u32(c);
		event->tid = take_u32(c);
		event->has_ids = true;
	}
	if (type & PERF_SAMPLE_TIME) {
		event->time = take_u64(c);
		event->has_time = true;
	}
	if (type & PERF_SAMPLE_ADDR)
		take_u64(c);
	if (type & PERF_SAMPLE_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_CPU) {
		event->cpu = take_u32(c);
		take_u32(c);
	}
	if (type & PERF_SAMPLE_PERIOD)
		event->sample.period = take_u64(c);
}

static void decode_sample(struct cursor *c, const struct perf_layout *layout,
			  struct perf_event *event)
{
	struct perf_sample_data *s = &event->sample;
	uint64_t type = layout->sample_type;

	memset(s, 0, sizeof(*s));
	s->event_id = layout->event_id;
	take_sample_head(c, type, event);
	if (type & PERF_SAMPLE_READ)
		skip_read(c, layout->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->callchain_len = take_u64(c);
		s->callchain = take_words(c, s->callchain_len);
		if (s->callchain_len == 0)
			s->callchain = NULL;
	}
	if (type & PERF_SAMPLE_RAW)
		skip_raw(c);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, layout->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER) {
		s->regs_mask = layout->regs_user_mask;
		s->regs = take_regs(c, s->regs_mask, &s->regs_abi);
	}
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, s);
	skip_sample_tail(c, layout);
}

/* ---- other records ---- */

static void decode_mmap(struct cursor *c, struct perf_event *event)
{
	struct perf_mmap_data *m = &event->mmap;

	memset(m, 0, sizeof(*m));
	event->pid = take_u32(c);
	event->tid = take_u32(c);
	event->has_ids = true;
	m->start = take_u64(c);
	m->len = take_u64(c);
	m->offset = take_u64(c);
	m->exec = !(event->misc & PERF_RECORD_MISC_MMAP_DATA);
	if (event->type == PERF_RECORD_MMAP2) {
		if (event->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			const uint8_t *id = take(c, 24);

			if (id && id[0] <= 20) {
				m->build_id_len = id[0];
				m->build_id = id + 4;
			} else {
				c->bad = true;
			}
		} else {
			m->dev_major = take_u32(c);
			m->dev_minor = take_u32(c);
			m->inode = take_u64(c);
			m->inode_generation = take_u64(c);
		}
		m->prot = take_u32(c);
		take_u32(c); /* flags */
		m->exec = m->prot & 4; /* PROT_EXEC */
	}
	m->path = take_string(c, &m->path_len);
}

static void decode_task(struct cursor *c, struct perf_event *event)
{
	event->pid = take_u32(c);
	event->task.ppid = take_u32(c);
	event->tid = take_u32(c);
	event->task.ptid = take_u32(c);
	event->has_ids = true;
	event->time = take_u64(c);
	event->has_time = true;
}

static void decode_comm(struct cursor *c, struct perf_event *event)
{
	event->pid = take_u32(c);
	event->tid = take_u32(c);
	event->has_ids = true;
	event->comm.exec = event->misc & PERF_RECORD_MISC_COMM_EXEC;
	event->comm.name = take_string(c, &event->comm.len);
}

static void decode_switch(struct cursor *c, struct perf_event *event)
{
	event->context_switch.out = event->misc & PERF_RECORD_MISC_SWITCH_OUT;
	event->context_switch.preempt = event->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	if (event->type == PERF_RECORD_SWITCH_CPU_WIDE)
		take_u64(c); /* the other task */
}

/* Fields at the end of every record that is not a sample. */
static void take_sample_id(struct cursor *c, uint64_t type, struct perf_event *event)
{
	if (type & PERF_SAMPLE_TID) {
		int32_t pid = take_u32(c), tid = take_u32(c);

		/* The record's own ids say whom it is about; these say who wrote it. */
		if (!event->has_ids) {
			event->pid = pid;
			event->tid = tid;
			event->has_ids = true;
		}
	}
	if (type & PERF_SAMPLE_TIME) {
		event->time = take_u64(c);
		event->has_time = true;
	}
	if (type & PERF_SAMPLE_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_CPU) {
		event->cpu = take_u32(c);
		take_u32(c);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		take_u64(c);
}

static size_t sample_id_bytes(const struct perf_layout *layout)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return layout->sample_id_all ? 8 * __builtin_popcountll(layout->sample_type & fields) : 0;
}

/* The body of a record whose sample_id fields were cut off; what is left of it is not looked at
 * for types that nobody uses and for those that grow. */
static void decode_body(struct cursor *c, struct perf_event *event)
{
	switch (event->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		decode_mmap(c, event);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		decode_task(c, event);
		break;
	case PERF_RECORD_COMM:
		decode_comm(c, event);
		break;
	case PERF_RECORD_LOST:
		event->lost.id = take_u64(c);
		event->lost.count = take_u64(c);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		event->lost.id = 0;
		event->lost.count = take_u64(c);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		decode_switch(c, event);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		event->time = take_u64(c);
		event->has_time = true;
		take_words(c, 2); /* id, stream id */
		break;
	default:
		c->at = c->end;
		break;
	}
	if (c->at != c->end)
		c->bad = true;
}

int perf_record_decode(const struct perf_layout *layout, const void *record, size_t size,
		       struct perf_event *event)
{
	const struct perf_event_header *header = record;
	struct cursor c = { .at = record, .end = (const uint8_t *)record + size };
	size_t trailer;

	if (size < sizeof(*header) || header->size != size || ((uintptr_t)record & 7))
		return -EBADMSG;
	c.at += sizeof(*header);
	event->type = header->type;
	event->misc = header->misc;
	event->has_ids = event->has_time = false;
	event->pid = event->tid = 0;
	event->time = 0;
	event->cpu = UINT32_MAX;
	if (event->type == PERF_RECORD_SAMPLE) {
		decode_sample(&c, layout, event);
		if (c.at != c.end)
			c.bad = true;
	} else {
		trailer = sample_id_bytes(layout);
		if (trailer > (size_t)(c.end - c.at))
			return -EBADMSG;
		c.end -= trailer;
		decode_body(&c, event);
		if (c.bad)
			return -EBADMSG;
		c.end += trailer;
		if (trailer)
			take_sample_id(&c, layout->sample_type, event);
	}
	return c.bad ? -EBADMSG : 0;
}

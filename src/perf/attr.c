/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One shape of attributes for every sampling event: no group, no tracking event beside it. What a
 * refusal changes is in struct perf_how.
 */
#include <time.h>

#include "live.h"

/* Version 7 of the structure: what Linux 6.0 knows. Newer kernels accept it, and a longer one
 * would be refused by older kernels only if its tail were not zero. */
enum { ATTR_SIZE = 128 };
_Static_assert(sizeof(struct perf_event_attr) >= ATTR_SIZE, "kernel headers before 5.13");

static uint64_t sample_type(const struct perf_options *options)
{
	/* The call chain is always there: kernel frames come that way. */
	uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_CALLCHAIN;

	if (options->stack_size)
		type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	return type;
}

/*
 * Bytes after which the kernel wakes us. Each wake-up costs about as much as a few samples, so they
 * shall be few: half of the ring, but no more than comes in 100 ms, so that nobody waits longer
 * for a sample, and leaving room for what comes in 20 ms, the time that a busy machine may take
 * to let us run. A ring that is small for its rate, or whose rate nobody knows, wakes us after
 * an eighth of it.
 */
static uint64_t watermark(const struct perf_open_request *request)
{
	uint64_t ring = request->ring_bytes, eighth = MAX(ring / 8, 1);
	/* A sample without its stack has 200 to 500 bytes. */
	uint64_t second = (uint64_t)request->frequency * (request->options->stack_size + 512ull);
	uint64_t reserve = second / 50;

	if (request->kind != PERF_KIND_SAMPLING || reserve >= ring - eighth)
		return eighth;
	return MAX(MIN(MIN(ring / 2, second / 10), ring - reserve), 1);
}

/* A sample at each context switch, in kernel mode by nature, and a record when it is over. Forks
 * and mappings are told by the sampling events already. */
static void make_switch_event(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attr->freq = 0;
	attr->sample_period = 1;
	attr->exclude_kernel = 0;
	attr->context_switch = 1;
	attr->mmap = attr->mmap2 = attr->comm = attr->task = 0;
}

void perf_attr_build(struct perf_event_attr *attr, const struct perf_open_request *request,
		     const struct perf_how *how)
{
	const struct perf_options *options = request->options;
	bool system_wide = request->tid == -1;

	memset(attr, 0, sizeof(*attr));
	attr->size = ATTR_SIZE;
	attr->type = how->type;
	attr->config = how->config;
	attr->freq = 1;
	attr->sample_freq = request->frequency;
	attr->sample_type = sample_type(options);
	attr->read_format = PERF_FORMAT_LOST;
	attr->disabled = 1;
	attr->inherit = how->inherit && !system_wide;
	attr->inherit_thread = attr->inherit && !options->inherit_children;
	attr->enable_on_exec = request->on_exec;
	attr->exclude_kernel = !how->kernel;
	attr->exclude_guest = how->exclude_guest;
	attr->exclude_callchain_user = 1;
	attr->exclude_callchain_kernel = !how->kernel;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->task = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = watermark(request);
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	if (options->stack_size) {
		attr->sample_regs_user = PERF_REGS_HOST;
		attr->sample_stack_user = options->stack_size;
	}
	if (request->kind == PERF_KIND_SWITCH)
		make_switch_event(attr);
}

void perf_attr_layout(const struct perf_event_attr *attr, enum perf_event_kind kind,
		      struct perf_layout *layout)
{
	*layout = (struct perf_layout){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.branch_sample_type = attr->branch_sample_type,
		.regs_user_mask = attr->sample_regs_user,
		.regs_intr_mask = attr->sample_regs_intr,
		.sample_id_all = attr->sample_id_all,
		.event_id = kind,
	};
}

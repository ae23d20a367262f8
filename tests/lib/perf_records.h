/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PERF_RECORDS_H
#define TESTS_PERF_RECORDS_H

#include "perf/perf.h"

/*
 * Writes perf records as the kernel does, one behind the other. A test never runs out of memory:
 * a failed allocation ends it.
 */
struct perf_records {
	VEC(uint8_t) bytes;
	size_t start;	/* of the record that is being written */
	struct perf_layout layout;
};

/* What live sampling uses: ip, ids, time, call chain and, with a stack size, registers, stack. */
void perf_records_init(struct perf_records *w, uint64_t regs_mask);
void perf_records_release(struct perf_records *w);

void perf_records_begin(struct perf_records *w, uint32_t type, uint16_t misc);
void perf_records_u32(struct perf_records *w, uint32_t value);
void perf_records_u64(struct perf_records *w, uint64_t value);
void perf_records_bytes(struct perf_records *w, const void *bytes, size_t len);
/* With its NUL, padded to a multiple of 8. */
void perf_records_string(struct perf_records *w, const char *s);
/* The fields at the end of a record that is not a sample, as the layout says. */
void perf_records_trailer(struct perf_records *w, int32_t pid, int32_t tid, uint64_t time);
/* Stores the size in the header; returns it. */
size_t perf_records_end(struct perf_records *w);

struct perf_sample_fields {
	int32_t pid, tid;
	uint64_t time, ip;
	uint16_t misc; /* 0: user */
	const uint64_t *chain;
	size_t chain_len;
	uint64_t abi; /* 0: no registers */
	const uint64_t *regs;
	const void *stack;
	uint64_t stack_used, stack_size;
};
void perf_put_sample(struct perf_records *w, const struct perf_sample_fields *sample);

struct perf_mmap_fields {
	int32_t pid, tid;
	uint64_t time, start, len, offset, inode, generation;
	uint32_t dev_major, dev_minor, prot;
	uint16_t misc;
	const char *path;
};
void perf_put_mmap2(struct perf_records *w, const struct perf_mmap_fields *map);
void perf_put_mmap(struct perf_records *w, const struct perf_mmap_fields *map);
void perf_put_comm(struct perf_records *w, int32_t pid, int32_t tid, uint64_t time, bool exec,
		   const char *name);
/* type: PERF_RECORD_FORK or _EXIT. */
void perf_put_task(struct perf_records *w, uint32_t type, int32_t pid, int32_t ppid, int32_t tid,
		   int32_t ptid, uint64_t time);
void perf_put_lost(struct perf_records *w, uint64_t id, uint64_t count, uint64_t time);
void perf_put_lost_samples(struct perf_records *w, uint64_t count, uint64_t time);
void perf_put_switch(struct perf_records *w, int32_t pid, int32_t tid, bool out, uint64_t time);

#endif

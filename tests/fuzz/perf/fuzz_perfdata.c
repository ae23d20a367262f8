/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "../driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/datafile.h"
#include "perf_datafile.h"

static void use(const void *bytes, size_t len)
{
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)bytes)[i];
}

/* Touches whatever an event points at. */
static void look_at(const struct perf_event *event)
{
	const struct perf_sample_data *s = &event->sample;

	switch (event->type) {
	case PERF_RECORD_SAMPLE:
		use(s->callchain, s->callchain_len * 8);
		if (s->regs)
			use(s->regs, __builtin_popcountll(s->regs_mask) * 8);
		use(s->stack, s->stack_len);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		use(event->mmap.path, event->mmap.path_len + 1);
		use(event->mmap.build_id, event->mmap.build_id_len);
		break;
	case PERF_RECORD_COMM:
		use(event->comm.name, event->comm.len + 1);
		break;
	}
}

static void read_all(struct perf_source *source)
{
	const struct perf_event *event;

	while (source->ops->snapshot(source, 0, NULL) == 0) {
		if (source->ops->front(source, 0, &event, NULL) <= 0)
			break;
		while (source->ops->front(source, 0, &event, NULL) > 0) {
			look_at(event);
			source->ops->advance(source, 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct perf_file_info *info;
	struct perf_source *source;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write_full(fd, data, size) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	perf_file_queue_limit = 64 << 10;
	if (perf_file_open(path, &source, &info, NULL) == 0) {
		read_all(source);
		source->ops->free(source);
	}
	close(fd);
	return 0;
}

/* ---- seeds ---- */

static void put_records(struct perf_records *w)
{
	static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0x10, PERF_CONTEXT_USER, 0x1000 };
	static const uint64_t regs[] = { 1, 2, 3 };
	static const uint8_t stack[64] = { 1, 2, 3 };

	perf_put_comm(w, 7, 7, 0, true, "program");
	perf_put_mmap2(w, &(struct perf_mmap_fields){
		.pid = 7, .tid = 7, .time = 1, .start = 0x1000, .len = 0x1000, .prot = 5,
		.path = "/bin/program",
	});
	perf_put_task(w, PERF_RECORD_FORK, 8, 7, 8, 7, 2);
	for (uint64_t time = 9; time > 3; time--)
		perf_put_sample(w, &(struct perf_sample_fields){
			.pid = 7, .tid = 8, .time = time, .ip = 0x1000, .chain = chain,
			.chain_len = 4, .abi = w->layout.regs_user_mask ? 2 : 0, .regs = regs,
			.stack = stack, .stack_used = 40, .stack_size = 64,
		});
	perf_put_lost(w, 1, 3, 10);
}

static void put_features(struct perf_datafile *f)
{
	static const uint32_t cpus[] = { 4, 2 };
	static const struct {
		struct perf_event_header header;
		int32_t pid;
		uint8_t id[24];
		char path[28];
	} build_id = {
		.header = { .type = FILE_RECORD_BUILD_ID, .size = sizeof(build_id) },
		.id = { 1, 2, 3 },
		.path = "/bin/program",
	};

	perf_datafile_feature(f, FILE_FEATURE_BUILD_ID, &build_id, sizeof(build_id));
	perf_datafile_string_feature(f, FILE_FEATURE_HOSTNAME, "host");
	perf_datafile_feature(f, FILE_FEATURE_NRCPUS, cpus, sizeof(cpus));
	perf_datafile_feature(f, FILE_FEATURE_CMDLINE, "\1\0\0\0\4\0\0\0ls\0", 12);
}

/* Bit 0: a pipe; bit 1: stacks. */
uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	struct perf_datafile f;
	struct perf_records w;

	if (i >= 4)
		return NULL;
	perf_records_init(&w, i & 2 ? 7 : 0);
	put_records(&w);
	perf_datafile_init(&f, i & 1);
	if (f.pipe)
		put_features(&f);
	perf_datafile_plain_attr(&f, &w.layout);
	perf_datafile_records(&f, w.bytes.data, w.bytes.len);
	perf_datafile_round(&f);
	perf_datafile_records(&f, w.bytes.data, w.bytes.len);
	perf_datafile_round(&f);
	if (!f.pipe)
		put_features(&f);
	perf_records_release(&w);
	return perf_datafile_take(&f, len);
}

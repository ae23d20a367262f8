/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Symbolizers in threads of their own, and one with workers: the same names as alone. Built with
 * -Db_sanitize=thread it also shows what threads share without a lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symkit.h"

enum { THREADS = 3, ADDRESSES = 400, LIBRARIES = 6 };

/* This program has debug information; so have some of the libraries that it is linked with. */
struct part {
	char path[512];
	uint64_t start, end, offset;
};

struct parts {
	struct part list[LIBRARIES];
	size_t count;
};

static int add_part(struct dl_phdr_info *info, size_t size, void *data)
{
	struct parts *parts = data;
	struct part *part = &parts->list[parts->count];
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	(void)size;
	/* The first one is the program, without a name. */
	if (parts->count == LIBRARIES || (parts->count && name[0] != '/'))
		return 0;
	if (parts->count)
		snprintf(part->path, sizeof(part->path), "%s", name);
	else if (readlink("/proc/self/exe", part->path, sizeof(part->path) - 1) < 0)
		return -1;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		part->offset = ph->p_offset & ~4095ull;
		part->start = (info->dlpi_addr + ph->p_vaddr) & ~4095ull;
		part->end = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz + 4095) & ~4095ull;
		parts->count++;
		break;
	}
	return 0;
}

static void write_recording(struct kit *kit)
{
	struct parts parts = { 0 };

	dl_iterate_phdr(add_part, &parts);
	assert_true(parts.count > 1);
	kit_perf_map(kit, KIT_PID, "1000 1000 jitted\n");
	for (size_t k = 0; k < parts.count; k++) {
		const struct part *part = &parts.list[k];
		struct spulse_module_fields fields = {
			.size = sizeof(fields), .pid = KIT_PID, .start = part->start,
			.end = part->end, .file_offset = part->offset, .path = part->path,
			.path_len = strlen(part->path) };
		uint64_t step = (part->end - part->start) / ADDRESSES;
		uint32_t id;

		assert_int_equal(spulse_spool_writer_module(kit->writer, &fields, &id, NULL), 0);
		for (uint64_t i = 0; i < ADDRESSES; i++) {
			uint64_t ip = part->start + i * step;
			struct spulse_frame frame = { ip - part->start + part->offset, ip, id,
						      SPULSE_FRAME_USER };

			KIT_SAMPLE(kit, KIT_PID, frame, kit_user(0x1000 + i),
				   kit_kernel(0xffffffff81000000 + i));
		}
	}
	assert_int_equal(spulse_spool_writer_finish(kit->writer, NULL), 0);
}

/* ---- all names of a recording ---- */

struct reading {
	const struct kit *kit;
	uint32_t threads; /* 0: no preparing */
	uint64_t sum;	  /* of names, files and lines, in order */
	size_t named;
	int failed;
};

static void add_text(struct reading *reading, const char *text)
{
	for (; text && *text; text++)
		reading->sum = (reading->sum ^ (unsigned char)*text) * 0x100000001b3u;
}

static void add_frames(struct reading *reading, const struct spulse_resolved *resolved)
{
	for (size_t i = 0; i < spulse_resolved_count(resolved); i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);

		add_text(reading, spulse_resolved_frame_name(frame));
		add_text(reading, spulse_resolved_frame_file(frame));
		reading->sum += (uint64_t)spulse_resolved_frame_line(frame);
		reading->named += spulse_resolved_frame_origin(frame) == SPULSE_ORIGIN_ELF;
	}
}

static int resolve_all(struct reading *reading, struct spulse_snapshot *snapshot,
		       struct spulse_symbolizer *symbolizer)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_resolved *resolved;
	const struct spulse_stack *stack;
	int r = reading->threads ? spulse_symbolizer_prepare(symbolizer, NULL) : 0;

	if (!r)
		r = spulse_snapshot_stacks(snapshot, &stacks, NULL);
	while (!r && (r = spulse_stacks_next(stacks, &stack, NULL)) > 0) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, NULL);
		if (!r)
			add_frames(reading, resolved);
	}
	return r;
}

/* cmocka is not made for threads: a failure is only noted. */
static void *read_recording(void *data)
{
	struct reading *reading = data;
	struct spulse_symbolizer_options options = kit_options(reading->kit, NULL, NULL);
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;

	options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_HOST;
	options.threads = reading->threads;
	reading->sum = 14695981039346656037u;
	reading->failed = spulse_snapshot_open(reading->kit->spool, &snapshot, NULL) < 0 ||
			  spulse_symbolizer_new(spulse_snapshot_source(snapshot), &options,
						&symbolizer, NULL) < 0 ||
			  resolve_all(reading, snapshot, symbolizer) < 0;
	return NULL;
}

static void threads_and_workers_find_the_same(void **state)
{
	struct reading alone, readings[THREADS];
	pthread_t threads[THREADS];
	struct kit kit;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	write_recording(&kit);
	alone = (struct reading){ .kit = &kit };
	read_recording(&alone);
	assert_false(alone.failed);
	assert_true(alone.named > ADDRESSES / 4);
	/* At once: one stack by stack, the others with workers. */
	for (uint32_t i = 0; i < THREADS; i++) {
		readings[i] = (struct reading){ .kit = &kit, .threads = i ? 1 + i : 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, read_recording, &readings[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_false(readings[i].failed);
		assert_true(readings[i].sum == alone.sum);
		assert_int_equal(readings[i].named, alone.named);
	}
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(threads_and_workers_find_the_same) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

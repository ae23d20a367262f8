/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A long recording followed live: processes come, run in the same few libraries and under a JIT,
 * and go; samples of a server that stays never end. What a symbolizer keeps must not grow with
 * them. Its reader keeps each distinct definition, so the same recording is read without it first.
 *	test_day [PROCESSES SAMPLES]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "livemem.h"
#include "symkit.h"

enum { SERVER = 3999999, DIFFERENT = 200, SHORT = 40, DEPTH = 24, PIDS = 20000 };

static unsigned long processes = 600, samples = 200000;

/* A process with a library and JIT code, and stacks through both. */
struct life {
	pid_t pid;
	uint32_t library, code;
};

static struct life begin(struct kit *kit, pid_t pid)
{
	struct life life = { .pid = pid };

	life.library = kit_module(kit, pid, 0x10000, 0x11200, kit_path(kit, "lib.so"));
	kit_module(kit, pid, 0x20000, 0x21200, kit_path(kit, "other.so"));
	life.code = kit_module(kit, pid, 0x500000, 0x600000, "//anon");
	return life;
}

static void run(struct kit *kit, struct life life, unsigned long count)
{
	struct spulse_frame frames[DEPTH];

	for (unsigned long n = 0; n < count; n++) {
		for (unsigned int i = 0; i < DEPTH; i++)
			frames[i] = i % 8 == 7 ?
				kit_pinned(life.code, 0x500000, 0x500000 + 16 * (n % DIFFERENT)) :
				kit_pinned(life.library, 0x10000,
					   0x11000 + (n % DIFFERENT * 7 + i * 13) % 512);
		kit_sample(kit, life.pid, frames, DEPTH);
	}
}

static void write_day(struct kit *kit)
{
	struct life server = begin(kit, SERVER);

	for (unsigned long i = 0; i < processes; i++) {
		pid_t pid = KIT_PID + 100 + i % PIDS;

		if (i < PIDS && i % 4 == 0)
			kit_perf_map(kit, pid, "500000 1000 jitted\n");
		run(kit, begin(kit, pid), SHORT);
		assert_int_equal(spulse_spool_writer_retire_process(kit->writer, pid, NULL), 0);
		run(kit, server, samples / processes);
	}
	assert_int_equal(spulse_spool_writer_finish(kit->writer, NULL), 0);
	spulse_spool_writer_free(kit->writer);
	kit->writer = NULL;
}

/* Reads the day, with the symbolizer or without; the growth after its first quarter. */
static size_t live_through(struct kit *kit, bool resolve)
{
	const unsigned long total = processes * (SHORT + samples / processes);
	const struct spulse_invalidation *stale;
	const struct spulse_stack *stack;
	unsigned long count = 0;
	bool counting = false;

	do {
		assert_int_equal(spulse_tail_poll(kit->tail, &kit->batch, NULL), 0);
		if (resolve)
			assert_int_equal(spulse_symbolizer_update(kit->symbolizer, kit->batch,
								  &stale, NULL), 0);
		assert_int_equal(spulse_batch_stacks(kit->batch, &kit->stacks, NULL), 0);
		if (resolve)
			while (kit_next(kit))
				count++;
		else
			while (spulse_stacks_next(kit->stacks, &stack, NULL) > 0)
				count++;
		spulse_stacks_free(kit->stacks);
		kit->stacks = NULL;
		if (!counting && count >= total / 4) {
			livemem_reset();
			counting = true;
		}
	} while (spulse_batch_has_more(kit->batch));
	assert_int_equal(count, total);
	return livemem_peak();
}

static void symbolizer_stays_flat(void **state)
{
	struct spulse_symbolizer_options options;
	size_t without, with;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	kit_elf(&kit, "lib.so", "lib");
	kit_elf(&kit, "other.so", "other");
	write_day(&kit);
	assert_int_equal(spulse_tail_open(kit.spool, &kit.tail, NULL), 0);
	without = live_through(&kit, false);
	spulse_tail_free(kit.tail);
	options = kit_options(&kit, NULL, NULL);
	options.threads = 1;
	assert_int_equal(spulse_tail_open(kit.spool, &kit.tail, NULL), 0);
	assert_int_equal(spulse_symbolizer_new(spulse_tail_source(kit.tail), &options,
					       &kit.symbolizer, NULL), 0);
	with = live_through(&kit, true);
	printf("%lu processes: %zu more bytes in the reader, %zu with the symbolizer\n", processes,
	       without, with);
	assert_true(with < without + (256 << 10));
	kit_close(&kit);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(symbolizer_stays_flat) };

	if (argc == 3) {
		processes = strtoul(argv[1], NULL, 0);
		samples = strtoul(argv[2], NULL, 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failalloc.h"
#include "offline.h"

enum { SAMPLES = 2000 };

static uint64_t stack[64], regs[17];

/* A chain of ten frames by frame pointers. */
static void build_stack(void)
{
	const uint64_t base = 0x7ffd00000000;

	regs[6] = regs[7] = base; /* frame and stack pointer */
	regs[8] = 0x401000;
	for (int i = 0; i < 10; i++) {
		stack[6 * i] = i < 9 ? base + 48 * (i + 1) : 0;
		stack[6 * i + 1] = i < 9 ? 0x401100 + 16 * i : 0;
	}
}

static void put_samples(struct offline *o, uint64_t start)
{
	for (int i = 0; i < SAMPLES; i++) {
		struct perf_event event = offline_sample(5, 5, start + i, 0x401000);

		event.sample.regs = regs;
		event.sample.regs_mask = 0xff01ff;
		event.sample.has_stack = true;
		event.sample.stack = (const uint8_t *)stack;
		event.sample.stack_len = event.sample.stack_requested = sizeof(stack);
		fake_source_put(&o->fake, i % 2, &event);
	}
}

static void samples_that_bring_nothing_new_allocate_nothing(void **state)
{
	struct perf_event map = offline_mmap(5, 1, 0x400000, 0x100000, 0x400000, "//anon");
	struct offline o;

	(void)state;
	build_stack();
	offline_init(&o, 2);
	offline_start(&o);
	fake_source_put(&o.fake, 0, &map);
	put_samples(&o, 10);
	failalloc_set(0, false);
	assert_int_equal(spulse_recorder_flush(o.recorder, NULL), 0);
	assert_true(failalloc_count() > 0); /* it does count */
	put_samples(&o, 10 + SAMPLES);
	failalloc_set(0, false);
	assert_int_equal(spulse_recorder_flush(o.recorder, NULL), 0);
	assert_int_equal(failalloc_count(), 0);
	offline_finish(&o);
	assert_int_equal(o.summary.samples, 2 * SAMPLES);
	assert_string_equal(offline_next_stack(&o),
			    "user:401000 user:4010ff user:40110f user:40111f user:40112f "
			    "user:40113f user:40114f user:40115f user:40116f user:40117f");
	offline_release(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_that_bring_nothing_new_allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

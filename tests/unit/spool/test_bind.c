/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Which module an unpinned frame belongs to, against a look at every module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "random.h"
#include "spool/source.h"

enum { SPACE = 1 << 12, PIDS = 3 };

static uint32_t bind_slowly(const struct spulse_source *source, const uint32_t *modules_then,
			    pid_t pid, uint32_t frame_id)
{
	uint64_t address = source->frames.data[frame_id].abs_ip;

	for (uint32_t id = modules_then[frame_id]; id-- > 0;) {
		const struct spulse_module *m = source->modules.data[id];

		if (m->pid == pid && m->start <= address && address < m->end &&
		    frame_id < m->retired_at)
			return id;
	}
	return SPULSE_NO_MODULE;
}

static void add_module(struct spulse_source *source, pid_t pid, uint64_t start, uint64_t end)
{
	struct spulse_module module = { .id = source->modules.len, .pid = pid, .start = start,
					.end = end, .path = "/m", .path_len = 2 };

	assert_true(source_add_module(source, &module));
}

static void add_frame(struct spulse_source *source, uint64_t address)
{
	struct spulse_frame frame = { .abs_ip = address, .file_relative_ip = address,
				      .mode = SPULSE_FRAME_USER, .module_id = SPULSE_NO_MODULE };

	assert_true(source_add_frame(source, &frame));
}

static void step(struct spulse_source *source, struct random *rng)
{
	uint64_t start = random_below(rng, SPACE);

	switch (random_below(rng, 8)) {
	case 0: /* may be empty: it then holds nothing */
		add_module(source, 1 + random_below(rng, PIDS), start,
			   start + random_below(rng, SPACE));
		break;
	case 1:
		add_module(source, 1 + random_below(rng, PIDS), start, start + 1);
		break;
	case 2:
		if (source->modules.len)
			source_retire_module(source, random_below(rng, source->modules.len));
		break;
	case 3:
		if (!random_below(rng, 50))
			assert_true(source_retire_process(source, 1 + random_below(rng, PIDS)));
		break;
	default:
		add_frame(source, random_below(rng, SPACE + 8));
	}
}

static void check_all(const struct spulse_source *source, const uint32_t *modules_then)
{
	for (uint32_t id = 0; id < source->frames.len; id++)
		for (pid_t pid = 1; pid <= PIDS; pid++) {
			const struct spulse_module *found = bind_find(source, pid, id);
			uint32_t expected = bind_slowly(source, modules_then, pid, id);

			assert_int_equal(found ? found->id : SPULSE_NO_MODULE, expected);
		}
}

/* The index grows by steps of all sizes, with retirements after modules were indexed. */
static void grows_as_all_modules_say(void **state)
{
	uint32_t modules_then[3000];

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct spulse_source source = { 0 };
		struct random rng = { .state = seed };

		assert_int_equal(source_init(&source, "grown", NULL), 0);
		for (size_t i = 0; i < 3000; i++) {
			size_t before = source.frames.len;

			step(&source, &rng);
			if (source.frames.len > before)
				modules_then[before] = source.modules.len;
			if (!random_below(&rng, 1 + seed * seed * 10))
				assert_true(bind_index_update(&source));
		}
		assert_true(bind_index_update(&source));
		check_all(&source, modules_then);
		source_release(&source);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/*
 * 100,000 mappings over each other and as many addresses; looking at each pair takes a minute.
 * With `retire` all are gone when the addresses are met.
 */
static void check_pile(bool retire)
{
	enum { COUNT = 100000 };
	struct spulse_source source = { 0 };
	double begin = seconds();

	assert_int_equal(source_init(&source, "pile", NULL), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		add_module(&source, 1, 0x1000, 0x10000000);
		if (retire)
			source_retire_module(&source, i);
		if (i % 16 == 0)
			assert_true(bind_index_update(&source));
	}
	for (uint32_t i = 0; i < COUNT; i++)
		add_frame(&source, 0x2000 + i);
	assert_true(bind_index_update(&source));
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct spulse_module *found = bind_find(&source, 1, i);

		assert_int_equal(found ? found->id : SPULSE_NO_MODULE,
				 retire ? SPULSE_NO_MODULE : COUNT - 1);
	}
	source_release(&source);
	assert_true(seconds() - begin < 15);
}

static void piles_cost_little(void **state)
{
	(void)state;
	check_pile(false);
	check_pile(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_as_all_modules_say),
		cmocka_unit_test(piles_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

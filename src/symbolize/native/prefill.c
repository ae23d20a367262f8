/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Reading ahead with several threads: first all programs that the lookups touch, then all units
 * of their debug information. Each thread has its own reader; what they make are separate arrays,
 * so that nothing is locked but the table of file names.
 */
#include <pthread.h>
#include <stdlib.h>

#include "program.h"

enum { THREADS_MAX = 64, MANY_UNITS = 16, WAVE_BYTES = 32 << 20 };

/* Places that lie in one unit. */
struct unit_task {
	struct program *program;
	struct dwarf_unit *unit;
	size_t first, end;
};

struct team {
	const struct image_debug_options *options;
	const struct native_place *places;
	VEC(struct program *) programs;
	VEC(struct unit_task) units;
	size_t next; /* atomic */
	size_t end;  /* of the tasks at hand */
};

static void *load_programs(void *data)
{
	struct team *team = data;
	size_t i;

	while ((i = __atomic_fetch_add(&team->next, 1, __ATOMIC_RELAXED)) < team->end)
		program_load(team->programs.data[i], team->options);
	return NULL;
}

static void run_task(const struct team *team, const struct unit_task *task,
		     struct dwarf_reader *reader)
{
	struct dwarf_info *info = task->program->dwarf;

	if (task->unit->state == UNIT_EMPTY)
		dwarf_fill_unit(info, reader, task->unit);
	if (task->unit->state != UNIT_READY)
		return;
	for (size_t i = task->first; i < task->end; i++)
		dwarf_fill_function(info, reader, task->unit, team->places[i].image_address);
}

/* Tasks of one unit are done by one thread: that of the first. */
static void *fill_units(void *data)
{
	struct team *team = data;
	struct dwarf_reader reader = { 0 };
	size_t i;

	while ((i = __atomic_fetch_add(&team->next, 1, __ATOMIC_RELAXED)) < team->end) {
		const struct unit_task *tasks = team->units.data;
		const struct dwarf_unit *unit = tasks[i].unit;

		if (i && tasks[i - 1].unit == unit)
			continue;
		if (reader.info != tasks[i].program->dwarf) {
			if (reader.info)
				dwarf_reader_close(&reader);
			dwarf_reader_open(&reader, tasks[i].program->dwarf);
		}
		for (; i < team->end && tasks[i].unit == unit; i++)
			run_task(team, &tasks[i], &reader);
	}
	if (reader.info)
		dwarf_reader_close(&reader);
	return NULL;
}

/* Runs `work` on tasks [first, end), on this thread and up to `threads` - 1 others. */
static void run_team(struct team *team, void *(*work)(void *), size_t first, size_t end,
		     unsigned int threads)
{
	pthread_t others[THREADS_MAX];
	size_t n = 0;

	team->next = first;
	team->end = end;
	while (n + 1 < MIN(MIN(threads, end - first), (size_t)THREADS_MAX) &&
	       !pthread_create(&others[n], NULL, work, team))
		n++;
	work(team);
	while (n)
		pthread_join(others[--n], NULL);
}

static bool collect_programs(struct team *team, struct native_store *store,
			     const struct native_place *places, size_t count)
{
	const struct spulse_native_module *module = NULL;
	struct program *program;

	for (size_t i = 0; i < count; i++) {
		if (places[i].module == module || !places[i].module->image)
			continue;
		module = places[i].module;
		program = store_program(store, module);
		if (!program)
			return false;
		if (program->wanted)
			continue;
		program->wanted = true;
		if (!vec_push(&team->programs, program))
			return false;
	}
	return true;
}

static void collect_units(struct team *team, struct native_store *store, size_t count)
{
	const struct spulse_native_module *module = NULL;
	struct program *program = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct native_place *place = &team->places[i];
		struct dwarf_unit *unit;

		if (!place->module->image)
			continue;
		if (place->module != module)
			program = store_program(store, place->module);
		module = place->module;
		unit = program ? program_unit(program, place->image_address) : NULL;
		if (!unit || unit->state == UNIT_FAILED)
			continue;
		if (team->units.len && vec_last(&team->units).unit == unit &&
		    vec_last(&team->units).end == i)
			vec_last(&team->units).end++;
		else if (!vec_push(&team->units,
				   (struct unit_task){ program, unit, i, i + 1 }))
			return;
	}
}

static int compare_tasks(const void *a, const void *b)
{
	const struct unit_task *x = a, *y = b;

	if (x->program != y->program)
		return x->program < y->program ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Tells of files of which many units are needed; tasks are in their order. */
static void expect_units(const struct team *team)
{
	size_t i = 0;

	while (i < team->units.len) {
		const struct unit_task *tasks = team->units.data;
		const struct program *program = tasks[i].program;
		const struct dwarf_unit *last = NULL;
		uint64_t bytes = 0;
		size_t units = 0;

		for (; i < team->units.len && tasks[i].program == program; i++) {
			if (tasks[i].unit != last && tasks[i].unit->state == UNIT_EMPTY) {
				bytes += tasks[i].unit->end - tasks[i].unit->start;
				units++;
			}
			last = tasks[i].unit;
		}
		if (units >= MANY_UNITS)
			dwarf_info_expect(program->dwarf,
					  bytes >= program->dwarf->file.info.len / 4 * 3);
	}
}

/* Lookups need no more than what was made of the units. */
static void forget_units(const struct team *team)
{
	for (size_t i = 0; i < team->programs.len; i++) {
		struct program *program = team->programs.data[i];

		if (!program->dwarf)
			continue;
		if (program->reader.info)
			dwarf_reader_close(&program->reader);
		dwarf_info_forget(program->dwarf);
	}
}

/* Tasks from `first` on whose units are as much as may be there at once. */
static size_t wave_end(const struct team *team, size_t first)
{
	const struct unit_task *tasks = team->units.data;
	const struct dwarf_unit *last = NULL;
	uint64_t bytes = 0;
	size_t i = first;

	for (; i < team->units.len && (tasks[i].unit == last || bytes < WAVE_BYTES); i++) {
		if (tasks[i].unit != last && tasks[i].unit->state == UNIT_EMPTY)
			bytes += tasks[i].unit->end - tasks[i].unit->start;
		last = tasks[i].unit;
	}
	return i;
}

/* In waves: what a unit was read from is dropped once the whole wave has no use for it. */
static void fill_in_waves(struct team *team, unsigned int threads)
{
	size_t first = 0;

	while (first < team->units.len) {
		run_team(team, fill_units, first, wave_end(team, first), threads);
		forget_units(team);
		first = team->end;
	}
}

void native_store_prepare(struct native_store *store, const struct native_place *places,
			  size_t count, unsigned int threads)
{
	struct team team = { .options = store_options(store), .places = places };
	bool complete = collect_programs(&team, store, places, count);

	for (size_t i = 0; i < team.programs.len; i++)
		team.programs.data[i]->wanted = false;
	if (complete) {
		run_team(&team, load_programs, 0, team.programs.len, threads);
		collect_units(&team, store, count);
		if (team.units.len)
			qsort(team.units.data, team.units.len, sizeof(*team.units.data),
			      compare_tasks);
		expect_units(&team);
		fill_in_waves(&team, threads);
	}
	vec_free(&team.programs);
	vec_free(&team.units);
}

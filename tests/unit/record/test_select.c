/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Processes chosen by their name, as it is when the sample is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "offline.h"

static struct offline o;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	offline_init(&o, 1);
	o.options.comm = "cc1*";
	now = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offline_release(&o);
	return 0;
}

static void put(struct perf_event event)
{
	fake_source_put(&o.fake, 0, &event);
}

static void name(int32_t pid, int32_t tid, bool exec, const char *comm)
{
	put(offline_comm(pid, tid, ++now, exec, comm));
}

static void sample(int32_t pid, uint64_t address)
{
	put(offline_sample(pid, pid, ++now, address));
}

static void run(void)
{
	offline_start(&o);
	offline_finish(&o);
	assert_int_equal(o.summary.sample_events,
			 o.summary.samples + o.summary.other_program_samples);
}

static void only_samples_of_processes_with_the_name_are_written(void **state)
{
	(void)state;
	name(5, 5, true, "cc1plus");
	name(6, 6, true, "make");
	sample(5, 0x1000);
	sample(6, 0x2000);
	sample(6, 0x2000);
	run();
	assert_int_equal(o.summary.samples, 1);
	assert_int_equal(o.summary.other_program_samples, 2);
	assert_string_equal(offline_next_stack(&o), "user:1000");
}

static void a_child_has_the_name_of_its_parent_until_it_executes_a_program(void **state)
{
	(void)state;
	name(5, 5, true, "cc1");
	put(offline_fork(5, 6, 6, ++now));
	sample(6, 0x1000);
	name(6, 6, true, "as");
	sample(6, 0x2000);
	name(6, 6, true, "cc1obj");
	sample(6, 0x3000);
	run();
	assert_int_equal(o.summary.samples, 2);
	assert_string_equal(offline_next_stack(&o), "user:1000");
	assert_string_equal(offline_next_stack(&o), "user:3000");
}

static void a_process_that_renames_itself_is_decided_on_anew(void **state)
{
	(void)state;
	name(5, 5, true, "make");
	sample(5, 0x1000);
	name(5, 5, false, "cc1 by name");
	sample(5, 0x2000);
	run();
	assert_string_equal(offline_next_stack(&o), "user:2000");
	assert_int_equal(o.summary.samples, 1);
}

static void the_name_of_another_thread_decides_nothing(void **state)
{
	(void)state;
	name(5, 5, true, "cc1");
	name(5, 7, false, "worker");
	sample(5, 0x1000);
	run();
	assert_int_equal(o.summary.samples, 1);
}

static void what_has_no_name_was_not_asked_for(void **state)
{
	(void)state;
	sample(5, 0x1000);
	run();
	assert_int_equal(o.summary.samples, 0);
	assert_int_equal(o.summary.other_program_samples, 1);
}

static void names_are_chosen_without_annotations_too(void **state)
{
	(void)state;
	o.options.annotate = false;
	name(5, 5, true, "make");
	name(5, 5, false, "cc1");
	sample(5, 0x1000);
	run();
	assert_int_equal(o.summary.samples, 1);
}

static void without_a_pattern_everything_is_written(void **state)
{
	(void)state;
	o.options.comm = NULL;
	name(6, 6, true, "make");
	sample(5, 0x1000);
	sample(6, 0x2000);
	run();
	assert_int_equal(o.summary.samples, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(only_samples_of_processes_with_the_name_are_written),
		TEST(a_child_has_the_name_of_its_parent_until_it_executes_a_program),
		TEST(a_process_that_renames_itself_is_decided_on_anew),
		TEST(the_name_of_another_thread_decides_nothing),
		TEST(what_has_no_name_was_not_asked_for),
		TEST(names_are_chosen_without_annotations_too),
		TEST(without_a_pattern_everything_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

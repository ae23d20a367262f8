/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Recordings of the whole machine, where the kernel permits them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

#define EVERYONE(...) LIVE_OPTIONS(.system_wide = true, __VA_ARGS__)

static int setup(void **state)
{
	int r = live_setup(state);
	struct spulse_error *err = NULL;

	if (r < 0)
		return r;
	r = spulse_recorder_attach(0, live.path, SPULSE_ATTACH_RUNNING, EVERYONE(),
				   &live.recorder, &err);
	if (spulse_error_kind(err) == SPULSE_ERROR_PERMISSION) {
		spulse_error_free(err);
		skip();
	}
	live_succeed(r, &err);
	live_forget();
	return 0;
}

static void attach(pid_t pid, const struct spulse_recorder_options *options)
{
	struct spulse_error *err = NULL;

	live_succeed(spulse_recorder_attach(pid, live.path, SPULSE_ATTACH_RUNNING, options,
					    &live.recorder, &err), &err);
}

/* Descriptors of events among all of ours. */
static size_t event_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char path[300], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, link, sizeof(link) - 1) > 0)
			n += strstr(link, "perf_event") != NULL;
	}
	closedir(folder);
	return n;
}

static void *burn_thread(void *data)
{
	(void)data;
	for (;;)
		burn(50);
	return NULL;
}

static void four_threads(struct target *self)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, burn_thread, NULL);
	target_ready(self);
	burn_thread(NULL);
}

static void a_program_that_nobody_named_is_recorded(void **state)
{
	(void)state;
	live.target = target_start(four_threads);
	attach(0, EVERYONE());
	live_poll_for(500);
	live_finish();
	assert_true(live_samples_of(live.target.pid, 0) > 20);
}

static void ids_that_no_process_has_are_refused(void **state)
{
	(void)state;
	assert_int_equal(spulse_recorder_attach(-1, live.path, SPULSE_ATTACH_RUNNING, EVERYONE(),
						&live.recorder, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

static void everything_is_attached_already(void **state)
{
	enum spulse_attach_outcome outcome = SPULSE_ATTACHED;
	struct spulse_error *err = NULL;
	size_t before;

	(void)state;
	live.target = target_start(four_threads);
	attach(0, EVERYONE());
	before = event_descriptors();
	live_succeed(spulse_recorder_attach_process(live.recorder, live.target.pid,
						    SPULSE_ATTACH_STOP, &outcome, &err), &err);
	assert_int_equal(outcome, SPULSE_ALREADY_ATTACHED);
	assert_int_equal(event_descriptors(), before);
	live_finish();
}

/* One event on each CPU sees everything: a sweep over what /proc shows must not open more. */
static void a_loss_opens_nothing_for_single_threads(void **state)
{
	size_t before;

	(void)state;
	live.target = target_start(four_threads);
	attach(live.target.pid, LIVE_OPTIONS(.system_wide = true, .stack_size = 65528,
					     .ring_buffer_stacks = 1));
	before = event_descriptors();
	for (int i = 0; i < 50 && !live.summary.lost_events; i++) {
		usleep(200000);
		live_poll_for(20);
		spulse_recorder_summary(live.recorder, &live.summary);
	}
	/* The sweep comes at most every quarter of a second. */
	live_poll_for(600);
	live_finish();
	assert_true(live.summary.lost_events > 0);
	assert_true(live.summary.lifecycle_gaps > 0);
	assert_int_equal(event_descriptors(), before);
}

static void only_what_has_the_name_is_written(void **state)
{
	(void)state;
	live.target = target_start(four_threads);
	attach(0, EVERYONE(.comm = "no process has such a name"));
	live_poll_for(300);
	live_finish();
	assert_int_equal(live.summary.samples, 0);
	assert_true(live.summary.other_program_samples > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, live_teardown)
		TEST(a_program_that_nobody_named_is_recorded),
		TEST(ids_that_no_process_has_are_refused),
		TEST(everything_is_attached_already),
		TEST(a_loss_opens_nothing_for_single_threads),
		TEST(only_what_has_the_name_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "perf_fake.h"

static struct perf_options options;
static struct perf_event_attr attr;
static struct perf_how how;

static int setup(void **state)
{
	(void)state;
	perf_fake_install();
	options = (struct perf_options){
		.frequency = 99,
		.stack_size = 32768,
		.inherit_children = true,
	};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_fake_remove();
	return 0;
}

static int open_event(void)
{
	struct perf_open_request request = {
		.options = &options,
		.frequency = 99,
		.tid = 5,
		.cpu = 3,
		.ring_bytes = 65536,
	};

	return perf_open_one(&request, &how, &attr);
}

static int open_first(void)
{
	perf_how_init(&how, &options, PERF_KIND_SAMPLING);
	return open_event();
}

static const struct perf_event_attr *tried(size_t i)
{
	assert_true(i < perf_fake.opens.len);
	return &perf_fake.opens.data[i].attr;
}

static int no_hardware(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return a->type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

static int no_interrupt(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return a->type == PERF_TYPE_HARDWARE ? -EOPNOTSUPP : 0;
}

static int user_only_software(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	if (!a->exclude_kernel)
		return -EACCES;
	return a->type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

static int answer_errno;

static int always(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)a;
	(void)pid;
	(void)cpu;
	return -answer_errno;
}

static void test_call_names_one_thread_and_cpu(void **state)
{
	int fd = open_first();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(perf_fake.opens.len, 1);
	assert_int_equal(perf_fake.opens.data[0].pid, 5);
	assert_int_equal(perf_fake.opens.data[0].cpu, 3);
	assert_int_equal(perf_fake.opens.data[0].flags, PERF_FLAG_FD_CLOEXEC);
	perf_sys->close(fd);
}

static void test_missing_hardware_is_tried_once(void **state)
{
	int first, second;

	(void)state;
	perf_fake.open_answer = no_hardware;
	first = open_first();
	second = open_event();
	assert_true(first >= 0 && second >= 0);
	assert_int_equal(perf_fake.opens.len, 3);
	assert_int_equal(tried(0)->type, PERF_TYPE_HARDWARE);
	assert_int_equal(tried(1)->type, PERF_TYPE_SOFTWARE);
	assert_int_equal(tried(2)->type, PERF_TYPE_SOFTWARE);
	perf_sys->close(first);
	perf_sys->close(second);
}

static void test_counter_without_interrupt_falls_back_too(void **state)
{
	int fd;

	(void)state;
	perf_fake.open_answer = no_interrupt;
	fd = open_first();
	assert_true(fd >= 0);
	/* The guest rung first, then the other event. */
	assert_int_equal(perf_fake.opens.len, 3);
	assert_int_equal(tried(1)->type, PERF_TYPE_HARDWARE);
	assert_int_equal(tried(1)->exclude_guest, 1);
	assert_int_equal(tried(2)->type, PERF_TYPE_SOFTWARE);
	assert_int_equal(tried(2)->exclude_guest, 0);
	perf_sys->close(fd);
}

static void test_asked_for_cycles_never_become_a_clock(void **state)
{
	(void)state;
	perf_fake.open_answer = no_hardware;
	options.event = SPULSE_EVENT_CYCLES;
	assert_int_equal(open_first(), -ENOENT);
	assert_int_equal(perf_fake.opens.len, 1);
}

static void test_refused_kernel_frames_become_user_only(void **state)
{
	int first, second;

	(void)state;
	perf_fake.open_answer = user_only_software;
	options.include_kernel = true;
	first = open_first();
	second = open_event();
	assert_true(first >= 0 && second >= 0);
	assert_false(how.kernel);
	/* Hardware with and without the kernel, software the same, and then only what worked. */
	assert_int_equal(perf_fake.opens.len, 5);
	assert_int_equal(tried(0)->exclude_kernel, 0);
	assert_int_equal(tried(1)->exclude_kernel, 1);
	assert_int_equal(tried(2)->type, PERF_TYPE_SOFTWARE);
	assert_int_equal(tried(2)->exclude_kernel, 0);
	assert_int_equal(tried(3)->exclude_kernel, 1);
	assert_int_equal(tried(4)->type, PERF_TYPE_SOFTWARE);
	assert_int_equal(tried(4)->exclude_kernel, 1);
	perf_sys->close(first);
	perf_sys->close(second);
}

static void test_denied_without_kernel_frames_is_final(void **state)
{
	(void)state;
	perf_fake.open_answer = always;
	answer_errno = EACCES;
	assert_int_equal(open_first(), -EACCES);
	assert_int_equal(perf_fake.opens.len, 1);
}

static void test_other_errors_never_switch_events(void **state)
{
	static const int errors[] = { EMFILE, EINVAL, EBUSY, ESRCH, ENOSPC };

	(void)state;
	perf_fake.open_answer = always;
	perf_fake.nofile = (struct rlimit){ 100, 100 };
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		perf_fake.opens.len = 0;
		answer_errno = errors[i];
		assert_int_equal(open_first(), -errors[i]);
		assert_int_equal(perf_fake.opens.len, 1);
	}
}

static void test_guest_is_excluded_once_only(void **state)
{
	(void)state;
	perf_fake.open_answer = always;
	answer_errno = EOPNOTSUPP;
	options.event = SPULSE_EVENT_CPU_CLOCK;
	assert_int_equal(open_first(), -EOPNOTSUPP);
	assert_int_equal(perf_fake.opens.len, 2);
	assert_int_equal(tried(0)->exclude_guest, 0);
	assert_int_equal(tried(1)->exclude_guest, 1);
}

static int descriptors_used_up(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)a;
	(void)pid;
	(void)cpu;
	return perf_fake.nofile.rlim_cur < 4096 ? -EMFILE : 0;
}

static void test_soft_descriptor_limit_is_raised(void **state)
{
	int fd;

	(void)state;
	perf_fake.open_answer = descriptors_used_up;
	fd = open_first();
	assert_true(fd >= 0);
	assert_int_equal(perf_fake.opens.len, 2);
	assert_int_equal(perf_fake.nofile.rlim_cur, 4096);
	perf_sys->close(fd);
}

static int no_thread_inheritance(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return a->inherit_thread ? -EINVAL : 0;
}

static void test_thread_inheritance_is_dropped_when_refused(void **state)
{
	int fd;

	(void)state;
	perf_fake.open_answer = no_thread_inheritance;
	options.inherit_children = false;
	fd = open_first();
	assert_true(fd >= 0);
	assert_false(how.inherit);
	assert_int_equal(attr.inherit, 0);
	perf_sys->close(fd);
}

static int no_inheritance(const struct perf_event_attr *a, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return a->inherit ? -EINVAL : 0;
}

static void test_child_inheritance_is_never_dropped(void **state)
{
	(void)state;
	perf_fake.open_answer = no_inheritance;
	assert_int_equal(open_first(), -EINVAL);
	assert_true(how.inherit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_call_names_one_thread_and_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_hardware_is_tried_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counter_without_interrupt_falls_back_too, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_asked_for_cycles_never_become_a_clock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refused_kernel_frames_become_user_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_denied_without_kernel_frames_is_final, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_other_errors_never_switch_events, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_guest_is_excluded_once_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_soft_descriptor_limit_is_raised, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_inheritance_is_dropped_when_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_inheritance_is_never_dropped, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "perf_fake.h"
#include "perf_records.h"

static const uint32_t cpus[] = { 0, 2, 5 };
static const pid_t tids[] = { 10, 11, 12 };
static struct perf_options options;
static struct perf_events *events;
static struct perf_opened opened;
static struct spulse_error *err;

static int setup(void **state)
{
	(void)state;
	perf_fake_install();
	options = (struct perf_options){
		.frequency = 1000,
		.stack_size = 32768,
		.inherit_children = true,
		.cpus = cpus,
		.cpu_count = 3,
	};
	events = NULL;
	err = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_events_free(events);
	spulse_error_free(err);
	assert_int_equal(perf_fake.open_descriptors, 0);
	for (size_t i = 0; i < perf_fake.maps.len; i++)
		assert_null(perf_fake.maps.data[i].page);
	perf_fake_remove();
	return 0;
}

static void make(void)
{
	assert_int_equal(perf_events_new(&options, &events, &err), 0);
}

static int open_all(void)
{
	return perf_events_open(events, 10, tids, 3, false, false, &opened, &err);
}

static size_t count_ioctls(unsigned long request)
{
	size_t n = 0;

	for (size_t i = 0; i < perf_fake.ioctls.len; i++)
		n += perf_fake.ioctls.data[i].request == request;
	return n;
}

static void test_one_ring_per_cpu_is_shared(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(opened.threads, 3);
	assert_true(opened.inherits);
	assert_int_equal(perf_events_descriptors(events), 9);
	assert_int_equal(perf_fake.maps.len, 3);
	assert_int_equal(perf_fake.maps.data[0].bytes, 4096 + (1 << 20));
	/* The leader on all CPUs first, then each other thread. */
	for (int i = 0; i < 9; i++) {
		assert_int_equal(perf_fake.opens.data[i].pid, tids[i / 3]);
		assert_int_equal(perf_fake.opens.data[i].cpu, cpus[i % 3]);
	}
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_SET_OUTPUT), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(perf_fake.ioctls.data[i].argument,
				 perf_fake.opens.data[i % 3].result);
	/* Nothing runs yet. */
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 0);
}

static void test_rate_limit_is_read_once_per_attach(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_fake.rate_reads, 1);
}

static void test_rate_above_the_limit_opens_nothing(void **state)
{
	uint64_t requested, maximum;

	(void)state;
	make();
	perf_fake.rate = 999;
	assert_int_equal(open_all(), -SPULSE_ERROR_FREQUENCY_LIMIT);
	assert_true(spulse_error_frequency_limit(err, &requested, &maximum));
	assert_int_equal(requested, 1000);
	assert_int_equal(maximum, 999);
	assert_int_equal(perf_fake.opens.len, 0);
}

static void test_later_opens_are_clamped_to_the_limit(void **state)
{
	(void)state;
	make();
	perf_fake.rate = 500;
	assert_int_equal(perf_events_open(events, 10, tids, 1, false, true, &opened, &err), 0);
	assert_int_equal(perf_fake.opens.data[0].attr.sample_freq, 500);
	/* An unreadable limit is no limit. */
	perf_fake.rate = -1;
	assert_int_equal(perf_events_open(events, 11, tids + 1, 1, false, false, &opened, &err), 0);
	assert_int_equal(vec_last(&perf_fake.opens).attr.sample_freq, 1000);
}

static void test_enable_switches_each_event_on_once(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_fake.ioctls.len = 0;
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 9);
	/* Ring owners first. */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(perf_fake.ioctls.data[i].fd, perf_fake.opens.data[i].result);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 9);
	assert_int_equal(perf_events_disable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_DISABLE), 9);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 18);
}

static void test_events_for_an_execve_are_left_to_the_kernel(void **state)
{
	(void)state;
	make();
	assert_int_equal(perf_events_open(events, 10, tids, 1, true, false, &opened, &err), 0);
	assert_int_equal(perf_fake.opens.data[0].attr.enable_on_exec, 1);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 0);
}

static pid_t gone_tid;
static int gone_errno;

static int one_is_gone(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	return pid == gone_tid && cpu == 2 ? -gone_errno : 0;
}

static void test_thread_that_ends_meanwhile_is_skipped(void **state)
{
	(void)state;
	make();
	perf_fake.open_answer = one_is_gone;
	gone_tid = 11;
	gone_errno = ESRCH;
	assert_int_equal(open_all(), 0);
	assert_int_equal(opened.threads, 2);
	assert_int_equal(perf_events_descriptors(events), 6);
	assert_int_equal(perf_fake.open_descriptors, 6);
}

static void test_zombie_leader_leaves_the_rings_to_others(void **state)
{
	(void)state;
	make();
	perf_fake.open_answer = one_is_gone;
	gone_tid = 10;
	gone_errno = ESRCH;
	assert_int_equal(open_all(), 0);
	assert_int_equal(opened.threads, 2);
	assert_int_equal(perf_events_descriptors(events), 6);
}

static void test_denied_leader_fails_and_denied_thread_does_not(void **state)
{
	(void)state;
	make();
	perf_fake.open_answer = one_is_gone;
	gone_errno = EACCES;
	gone_tid = 11;
	assert_int_equal(open_all(), 0);
	assert_int_equal(opened.threads, 2);
	gone_tid = 10;
	assert_int_equal(open_all(), -SPULSE_ERROR_PERMISSION);
	/* What the first call opened is untouched. */
	assert_int_equal(perf_events_descriptors(events), 6);
	assert_int_equal(perf_fake.open_descriptors, 6);
}

static int all_gone(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -ESRCH;
}

static void test_process_without_threads_is_gone(void **state)
{
	(void)state;
	make();
	perf_fake.open_answer = all_gone;
	assert_int_equal(open_all(), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(spulse_error_errno(err), ESRCH);
	assert_int_equal(perf_fake.open_descriptors, 0);
}

static int offline_cpu(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == 5 ? -ENODEV : 0;
}

static void test_cpu_that_went_offline_is_skipped(void **state)
{
	(void)state;
	make();
	perf_fake.open_answer = offline_cpu;
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_descriptors(events), 6);
}

static size_t budget, used;

/* As the kernel counts locked memory: first come, first served. */
static int locked_budget(size_t bytes, int cpu)
{
	(void)cpu;
	used = 0;
	for (size_t i = 0; i < perf_fake.maps.len; i++)
		if (perf_fake.maps.data[i].page)
			used += perf_fake.maps.data[i].bytes;
	return used + bytes > budget ? -EPERM : 0;
}

static void test_ring_shrinks_until_it_fits(void **state)
{
	uint64_t least, most;

	(void)state;
	make();
	perf_fake.map_answer = locked_budget;
	budget = 3 * (65536 + 4096);
	assert_int_equal(open_all(), 0);
	perf_events_ring_range(events, &least, &most);
	assert_int_equal(least, 65536);
	/* The watermark belongs to the ring that it became. */
	assert_int_equal(vec_last(&perf_fake.opens).attr.wakeup_watermark,
			 events->rings.data[2]->stream.ring.size / 8);
	assert_int_equal(perf_events_descriptors(events), 9);
}

static void test_all_cpus_shrink_when_the_last_has_no_room(void **state)
{
	uint64_t least, most;

	(void)state;
	make();
	perf_fake.map_answer = locked_budget;
	/* One ring of 1 MiB, and nothing for the others. */
	budget = (1 << 20) + 4096 + 8192;
	assert_int_equal(open_all(), 0);
	perf_events_ring_range(events, &least, &most);
	assert_true(least >= 65536);
	assert_true(most <= 512 << 10);
	assert_int_equal(perf_events_descriptors(events), 9);
	assert_int_equal(perf_fake.open_descriptors, 9);
}

static void test_no_room_for_the_smallest_rings(void **state)
{
	(void)state;
	make();
	perf_fake.map_answer = locked_budget;
	budget = 2 * (65536 + 4096);
	assert_int_equal(open_all(), -SPULSE_ERROR_PERMISSION);
	assert_non_null(strstr(spulse_error_message(err), "RLIMIT_MEMLOCK"));
	assert_int_equal(perf_fake.open_descriptors, 0);
	assert_int_equal(perf_events_descriptors(events), 0);
}

static void test_threads_that_do_not_inherit_are_closed(void **state)
{
	(void)state;
	options.inherit_children = true;
	make();
	assert_int_equal(open_all(), 0);
	for (size_t i = 0; i < events->members.len; i++)
		events->members.data[i].inherits = false;
	perf_events_close(events, 10, 11);
	assert_int_equal(perf_events_descriptors(events), 6);
	/* Owners of rings stay. */
	perf_events_close(events, 10, 0);
	assert_int_equal(perf_events_descriptors(events), 3);
}

static void test_threads_that_inherit_wait_for_their_descendants(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_events_close(events, 10, 11);
	assert_int_equal(perf_events_descriptors(events), 9);
	assert_int_equal(events->watched, 3);
}

static void test_rollback_removes_rings_of_its_own(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_events_rollback(events, 10);
	assert_int_equal(perf_events_descriptors(events), 0);
	assert_int_equal(events->rings.len, 0);
	assert_int_equal(perf_fake.open_descriptors, 0);
}

static void test_rollback_keeps_rings_that_others_use(void **state)
{
	static const pid_t other = 20;

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_open(events, 20, &other, 1, false, false, &opened, &err), 0);
	perf_events_rollback(events, 20);
	assert_int_equal(perf_events_descriptors(events), 9);
	assert_int_equal(perf_events_open(events, 20, &other, 1, false, false, &opened, &err), 0);
	perf_events_rollback(events, 10);
	/* The owners and the other process. */
	assert_int_equal(perf_events_descriptors(events), 6);
	assert_int_equal(events->rings.len, 3);
}

struct losses {
	uint64_t total;
	size_t calls;
};

static void add_loss(void *data, pid_t pid, pid_t tid, uint64_t lost)
{
	struct losses *l = data;

	assert_int_equal(pid, 10);
	assert_true(tid >= 10 && tid <= 12);
	l->total += lost;
	l->calls++;
}

static void test_losses_are_differences_by_thread(void **state)
{
	struct losses l = { 0 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_fake.lost = 4;
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), 0);
	assert_int_equal(l.total, 36);
	perf_fake.lost = 5;
	l = (struct losses){ 0 };
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), 0);
	assert_int_equal(l.total, 9);
	l = (struct losses){ 0 };
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), 0);
	assert_int_equal(l.calls, 0);
}

static void test_losses_of_closed_events_are_not_forgotten(void **state)
{
	struct losses l = { 0 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	for (size_t i = 0; i < events->members.len; i++)
		events->members.data[i].inherits = false;
	perf_fake.lost = 7;
	perf_events_close(events, 10, 11);
	perf_fake.lost = 0;
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), 0);
	assert_int_equal(l.total, 21);
}

static void test_loss_counter_that_goes_back_is_refused(void **state)
{
	struct losses l = { 0 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_fake.lost = 4;
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), 0);
	perf_fake.lost = 3;
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), -SPULSE_ERROR_IO);
	assert_int_equal(spulse_error_errno(err), EBADMSG);
	assert_non_null(strstr(spulse_error_message(err), "regressed"));
}

static void test_short_loss_counter_is_refused(void **state)
{
	struct losses l = { 0 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_fake.read_bytes = 8;
	assert_int_equal(perf_events_read_losses(events, add_loss, &l, &err), -SPULSE_ERROR_IO);
}

static void test_new_cpu_is_covered(void **state)
{
	static const uint32_t more[] = { 0, 2, 5, 7 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(perf_events_cover_cpus(events, more, 4), 0);
	assert_int_equal(perf_events_descriptors(events), 12);
	assert_int_equal(events->source.ops->streams(&events->source), 4);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 12);
	/* Nothing to do the second time. */
	assert_int_equal(perf_events_cover_cpus(events, more, 4), 0);
	assert_int_equal(perf_events_descriptors(events), 12);
}

static void test_new_cpu_stays_silent_while_paused(void **state)
{
	static const uint32_t more[] = { 0, 2, 5, 7 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(perf_events_disable(events, &err), 0);
	perf_fake.ioctls.len = 0;
	assert_int_equal(perf_events_cover_cpus(events, more, 4), 0);
	assert_int_equal(perf_events_descriptors(events), 12);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 0);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 12);
}

static void tell_of_exec(pid_t pid)
{
	struct perf_source *source = perf_events_source(events);
	const struct perf_event *event;
	struct perf_records w;

	perf_records_init(&w, PERF_REGS_HOST);
	perf_put_comm(&w, pid, pid, 1, true, "program");
	perf_fake_produce(perf_fake.maps.data[0].page, w.bytes.data, w.bytes.len);
	perf_records_release(&w);
	assert_int_equal(source->ops->snapshot(source, 0, &err), 0);
	assert_int_equal(source->ops->front(source, 0, &event, &err), 1);
	source->ops->advance(source, 0);
}

/* Before the execve a new CPU waits for it as well; afterwards it is enabled like any other. */
static void test_new_cpu_after_an_execve_is_enabled(void **state)
{
	static const uint32_t more[] = { 0, 2, 5, 7, 8 };

	(void)state;
	make();
	assert_int_equal(perf_events_open(events, 10, tids, 1, true, false, &opened, &err), 0);
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_int_equal(perf_events_cover_cpus(events, more, 4), 0);
	assert_true(vec_last(&perf_fake.opens).attr.enable_on_exec);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 0);
	tell_of_exec(10);
	assert_int_equal(perf_events_cover_cpus(events, more, 5), 0);
	assert_false(vec_last(&perf_fake.opens).attr.enable_on_exec);
	assert_int_equal(count_ioctls(PERF_EVENT_IOC_ENABLE), 1);
}

static int no_cpu_7(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == 7 ? -EMFILE : 0;
}

static void test_cpu_that_cannot_be_covered_is_counted(void **state)
{
	static const uint32_t more[] = { 0, 2, 5, 7 };

	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	perf_fake.open_answer = no_cpu_7;
	assert_int_equal(perf_events_cover_cpus(events, more, 4), 1);
	assert_int_equal(perf_events_descriptors(events), 9);
}

static void test_blocked_time_has_rings_of_its_own(void **state)
{
	(void)state;
	options.off_cpu = true;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_descriptors(events), 18);
	assert_int_equal(events->source.ops->streams(&events->source), 6);
}

static void test_every_process_is_one_event_per_cpu(void **state)
{
	(void)state;
	make();
	assert_int_equal(perf_events_open(events, -1, NULL, 0, false, false, &opened, &err), 0);
	assert_int_equal(perf_events_descriptors(events), 3);
	assert_int_equal(perf_fake.opens.data[0].pid, -1);
	assert_int_equal(perf_fake.opens.data[0].attr.inherit, 0);
}

static void test_options_are_checked_before_anything_is_opened(void **state)
{
	(void)state;
	options.stack_size = 65529;
	assert_int_equal(perf_events_new(&options, &events, &err), -SPULSE_ERROR_INVALID_INPUT);
	spulse_error_free(err);
	err = NULL;
	options.stack_size = 65528;
	make();
	perf_events_free(events);
	options.stack_size = 13;
	make();
	assert_int_equal(events->options.stack_size, 16);
	assert_int_equal(perf_fake.opens.len, 0);
}

static void test_idle_wait_ends_with_its_time(void **state)
{
	(void)state;
	make();
	assert_int_equal(open_all(), 0);
	assert_int_equal(perf_events_wait(events, 1000000, &err), 0);
	/* A ring with data makes its anchor readable. */
	assert_int_equal(write(perf_fake.opens.data[1].result, &(uint64_t){ 1 }, 8), 8);
	assert_int_equal(perf_events_wait(events, 1000000000, &err), 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_one_ring_per_cpu_is_shared),
		CASE(test_rate_limit_is_read_once_per_attach),
		CASE(test_rate_above_the_limit_opens_nothing),
		CASE(test_later_opens_are_clamped_to_the_limit),
		CASE(test_enable_switches_each_event_on_once),
		CASE(test_events_for_an_execve_are_left_to_the_kernel),
		CASE(test_thread_that_ends_meanwhile_is_skipped),
		CASE(test_zombie_leader_leaves_the_rings_to_others),
		CASE(test_denied_leader_fails_and_denied_thread_does_not),
		CASE(test_process_without_threads_is_gone),
		CASE(test_cpu_that_went_offline_is_skipped),
		CASE(test_ring_shrinks_until_it_fits),
		CASE(test_all_cpus_shrink_when_the_last_has_no_room),
		CASE(test_no_room_for_the_smallest_rings),
		CASE(test_threads_that_do_not_inherit_are_closed),
		CASE(test_threads_that_inherit_wait_for_their_descendants),
		CASE(test_rollback_removes_rings_of_its_own),
		CASE(test_rollback_keeps_rings_that_others_use),
		CASE(test_losses_are_differences_by_thread),
		CASE(test_losses_of_closed_events_are_not_forgotten),
		CASE(test_loss_counter_that_goes_back_is_refused),
		CASE(test_short_loss_counter_is_refused),
		CASE(test_new_cpu_is_covered),
		CASE(test_new_cpu_stays_silent_while_paused),
		CASE(test_new_cpu_after_an_execve_is_enabled),
		CASE(test_cpu_that_cannot_be_covered_is_counted),
		CASE(test_blocked_time_has_rings_of_its_own),
		CASE(test_every_process_is_one_event_per_cpu),
		CASE(test_options_are_checked_before_anything_is_opened),
		CASE(test_idle_wait_ends_with_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

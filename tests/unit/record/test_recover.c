/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What /proc shows is compared with what is known: after losses, at unknown addresses, and on new
 * CPUs. A real process on a made-up kernel; its maps and the list of CPUs are what the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "live.h"
#include "perf/perf.h"
#include "perf_fake.h"
#include "perf_records.h"
#include "proc/proc.h"

static struct perf_records records;
static uint64_t now;

/* ---- what the test decides ---- */

static struct {
	size_t reads;
	bool empty;
	int errnum; /* 0: none */
	bool more_cpus;
} maps;

int __real_proc_maps_read(struct proc_maps *out, pid_t pid, struct spulse_error **err);
int __wrap_proc_maps_read(struct proc_maps *out, pid_t pid, struct spulse_error **err);
int __real_proc_online_cpus(struct proc_cpus *cpus, struct spulse_error **err);
int __wrap_proc_online_cpus(struct proc_cpus *cpus, struct spulse_error **err);
int64_t __real_rec_monotonic_ns(void);
int64_t __wrap_rec_monotonic_ns(void);

int __wrap_proc_maps_read(struct proc_maps *out, pid_t pid, struct spulse_error **err)
{
	maps.reads++;
	if (maps.errnum)
		return err_io(err, maps.errnum, "maps", "cannot be read");
	return maps.empty ? 0 : __real_proc_maps_read(out, pid, err);
}

int __wrap_proc_online_cpus(struct proc_cpus *cpus, struct spulse_error **err)
{
	int r = __real_proc_online_cpus(cpus, err);

	if (r == 0 && maps.more_cpus)
		(void)vec_push(&cpus->cpus, (uint32_t)999);
	return r;
}

/* Pauses are over at the next call. */
int64_t __wrap_rec_monotonic_ns(void)
{
	static int64_t skipped;

	return __real_rec_monotonic_ns() + (skipped += 2000000000);
}

static size_t warnings;
static char warning[512];

static void note_warning(void *data, enum spulse_log_level level, const char *message)
{
	(void)data;
	if (level == SPULSE_LOG_WARNING) {
		warnings++;
		snprintf(warning, sizeof(warning), "%s", message);
	}
}

/* ---- the target ---- */

static void map_code_and_fork(struct target *self)
{
	target_ready(self);
	target_listen(self);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	target_ready(self);
	target_listen(self);
	if (fork() == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		target_ready(self);
	for (;;)
		pause();
}

static int setup(void **state)
{
	(void)state;
	memset(&live, 0, sizeof(live));
	memset(&maps, 0, sizeof(maps));
	warnings = 0;
	snprintf(live.path, sizeof(live.path), "/tmp/test-recover-%d.spool", getpid());
	unlink(live.path);
	live.summary.size = sizeof(live.summary);
	live.target = target_start(map_code_and_fork);
	perf_fake_install();
	perf_records_init(&records, 0xff01ff);
	spulse_log_set(note_warning, NULL, SPULSE_LOG_WARNING);
	return 0;
}

static int teardown(void **state)
{
	spulse_log_set(NULL, NULL, SPULSE_LOG_NONE);
	live_teardown(state);
	perf_records_release(&records);
	perf_fake_remove();
	return 0;
}

static void flush(void)
{
	struct spulse_error *err = NULL;

	live_succeed(spulse_recorder_flush(live.recorder, &err), &err);
}

/* A sample without registers: its address is the stack. */
static void put_sample(uint64_t ip)
{
	const struct perf_sample_fields sample = {
		.pid = live.target.pid,
		.tid = live.target.pid,
		.time = ++now,
		.ip = ip,
		.misc = PERF_RECORD_MISC_USER,
	};

	perf_put_sample(&records, &sample);
	perf_fake_produce(perf_fake.maps.data[0].page, records.bytes.data, records.bytes.len);
	records.bytes.len = 0;
	flush();
}

static uint64_t known_address(void)
{
	return (uintptr_t)map_code_and_fork;
}

static void lose(void)
{
	perf_fake.lost++;
	flush();
}

static uint32_t ids[8];

/* Module ids of all samples; returns how many there are. */
static size_t read_ids(void)
{
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;
	size_t n = 0;

	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	while (spulse_stacks_next(stacks, &stack, NULL) > 0 && n < 8) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);

		ids[n++] = spulse_frame_iter_next(&iter)->module_id;
	}
	spulse_stacks_free(stacks);
	return n;
}

/* ---- after losses ---- */

static void a_loss_keeps_the_modules_of_an_unchanged_process(void **state)
{
	size_t before;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_sample(known_address());
	before = maps.reads;
	lose();
	assert_true(maps.reads > before);
	put_sample(known_address());
	live_finish();
	assert_int_equal(live.summary.lifecycle_gaps, 1);
	assert_int_equal(read_ids(), 2);
	assert_true(ids[0] != SPULSE_NO_MODULE);
	assert_int_equal(ids[0], ids[1]);
}

static void a_loss_brings_what_was_mapped_meanwhile(void **state)
{
	char c;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_sample(known_address());
	target_tell(&live.target);
	assert_int_equal(read(live.target.from, &c, 1), 1);
	lose();
	put_sample(known_address());
	live_finish();
	assert_int_equal(read_ids(), 2);
	assert_true(ids[0] != SPULSE_NO_MODULE && ids[1] != SPULSE_NO_MODULE);
	assert_int_not_equal(ids[0], ids[1]);
}

static void a_loss_keeps_the_modules_where_maps_show_none(void **state)
{
	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_sample(known_address());
	maps.empty = true;
	lose();
	put_sample(known_address());
	live_finish();
	assert_int_equal(read_ids(), 2);
	assert_true(ids[0] != SPULSE_NO_MODULE);
	assert_int_equal(ids[0], ids[1]);
}

static void maps_that_become_unreadable_are_told_of_once(void **state)
{
	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_sample(known_address());
	maps.errnum = EACCES;
	lose();
	lose();
	put_sample(0x10000);
	put_sample(known_address());
	live_finish();
	assert_int_equal(warnings, 1);
	assert_int_equal(read_ids(), 3);
	assert_true(ids[0] != SPULSE_NO_MODULE);
	assert_int_equal(ids[0], ids[2]);
	assert_int_equal(ids[1], SPULSE_NO_MODULE);
}

static void a_loss_brings_children_whose_forks_were_missed(void **state)
{
	size_t active = 0;
	char c;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_NEW));
	for (int i = 0; i < 2; i++) {
		target_tell(&live.target);
		assert_int_equal(read(live.target.from, &c, 1), 1);
	}
	lose();
	assert_int_equal(spulse_recorder_active_process_count(live.recorder, &active, NULL), 0);
	assert_int_equal(active, 2);
	live_finish();
}

/* ---- unknown addresses ---- */

static void an_unknown_page_is_looked_up_once(void **state)
{
	size_t before;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	before = maps.reads;
	put_sample(known_address());
	assert_int_equal(maps.reads, before);
	for (int i = 0; i < 20; i++)
		put_sample(0x10000 + i * 8);
	assert_int_equal(maps.reads, before + 1);
	put_sample(0x20000);
	assert_int_equal(maps.reads, before + 2);
	live_finish();
	assert_int_equal(live.summary.samples, 22);
}

static void a_new_mapping_lets_a_page_be_looked_up_again(void **state)
{
	const struct perf_mmap_fields mapping = {
		.pid = live.target.pid,
		.tid = live.target.pid,
		.time = ++now,
		.start = 0x40000,
		.len = 4096,
		.prot = PROT_EXEC,
		.path = "//anon",
	};
	size_t before;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	put_sample(0x10000);
	before = maps.reads;
	perf_put_mmap2(&records, &mapping);
	put_sample(0x10008);
	assert_int_equal(maps.reads, before + 1);
	live_finish();
}

/* ---- attaching ---- */

static void maps_that_cannot_be_read_do_not_end_an_attach(void **state)
{
	static const struct {
		int errnum;
		const char *text;
	} reasons[] = {{EACCES, "ermission"}, {EPERM, "ermitted"}, {EIO, "error"}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		maps.errnum = reasons[i].errnum;
		warnings = 0;
		live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
		assert_int_equal(warnings, 1);
		assert_non_null(strstr(warning, reasons[i].text));
		put_sample(known_address());
		live_finish();
		assert_int_equal(live.summary.samples, 1);
		assert_int_equal(read_ids(), 1);
		assert_int_equal(ids[0], SPULSE_NO_MODULE);
		spulse_snapshot_free(live.snapshot);
		live.snapshot = NULL;
		spulse_recorder_free(live.recorder);
		live.recorder = NULL;
		unlink(live.path);
		perf_fake_install();
	}
}

/* ---- CPUs ---- */

static int no_such_cpu(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == 999 ? -EBUSY : 0;
}

static void a_new_cpu_is_sampled(void **state)
{
	size_t opens;

	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	opens = perf_fake.opens.len;
	maps.more_cpus = true;
	live_poll_for(20);
	assert_int_equal(perf_fake.opens.len, opens + 1);
	assert_int_equal(vec_last(&perf_fake.opens).cpu, 999);
	live_finish();
	assert_int_equal(live.summary.uncovered_cpus, 0);
	assert_int_equal(warnings, 0);
}

static void a_new_cpu_that_cannot_be_sampled_is_told_of(void **state)
{
	(void)state;
	live_attach(SPULSE_ATTACH_RUNNING, LIVE_OPTIONS());
	perf_fake.open_answer = no_such_cpu;
	maps.more_cpus = true;
	live_poll_for(60);
	live_finish();
	assert_int_equal(live.summary.uncovered_cpus, 1);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "CPU"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_loss_keeps_the_modules_of_an_unchanged_process),
		TEST(a_loss_brings_what_was_mapped_meanwhile),
		TEST(a_loss_keeps_the_modules_where_maps_show_none),
		TEST(maps_that_become_unreadable_are_told_of_once),
		TEST(a_loss_brings_children_whose_forks_were_missed),
		TEST(an_unknown_page_is_looked_up_once),
		TEST(a_new_mapping_lets_a_page_be_looked_up_again),
		TEST(maps_that_cannot_be_read_do_not_end_an_attach),
		TEST(a_new_cpu_is_sampled),
		TEST(a_new_cpu_that_cannot_be_sampled_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

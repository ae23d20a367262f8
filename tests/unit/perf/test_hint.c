/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <unistd.h>

#include "perf_fake.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static struct perf_failure failure;
static struct spulse_error *err;

static int setup(void **state)
{
	(void)state;
	perf_fake_install();
	perf_fake.capabilities = 0;
	failure = (struct perf_failure){ .pid = 4711, .tid = 4711, .cpu = 3, .software = true };
	err = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spulse_error_free(err);
	perf_fake_remove();
	return 0;
}

/* Every message has the call, the process, the CPU and the errno. */
static void expect(int errnum, enum spulse_error_kind kind, const char *const *parts)
{
	const char *message;

	failure.errnum = errnum;
	assert_int_equal(perf_report_failure(&failure, &err), -(int)kind);
	assert_int_equal(spulse_error_kind(err), kind);
	assert_int_equal(spulse_error_errno(err), errnum);
	message = spulse_error_message(err);
	assert_non_null(strstr(message, failure.mapping ? "mmap of a ring" : "perf_event_open"));
	assert_non_null(strstr(message, failure.tid == -1 ? "every process" : "process 4711"));
	assert_non_null(strstr(message, "CPU 3"));
	assert_non_null(strstr(message, strerrorname_np(errnum)));
	for (; *parts; parts++)
		if (!strstr(message, *parts))
			fail_msg("\"%s\" is not in \"%s\"", *parts, message);
}

#define EXPECT(errnum, kind, ...) \
	expect(errnum, SPULSE_ERROR_##kind, (const char *const[]){ __VA_ARGS__, NULL })

static int refuse(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EACCES;
}

static void test_paranoid_3_and_4_refuse_everything(void **state)
{
	(void)state;
	perf_fake.open_answer = refuse;
	perf_fake.paranoid = 3;
	EXPECT(EACCES, PERMISSION, "perf_event_paranoid is 3", "kernel.perf_event_paranoid=2",
	       "CAP_PERFMON");
	spulse_error_free(err);
	err = NULL;
	perf_fake.paranoid = 4;
	EXPECT(EPERM, PERMISSION, "perf_event_paranoid is 4", "kernel.perf_event_paranoid=2");
}

static void test_every_process_needs_paranoid_0(void **state)
{
	(void)state;
	perf_fake.paranoid = 1;
	failure.tid = failure.pid = -1;
	EXPECT(EACCES, PERMISSION, "perf_event_paranoid is 1", "every process",
	       "kernel.perf_event_paranoid=0");
}

static void test_blocked_time_needs_paranoid_1(void **state)
{
	(void)state;
	failure.kind = PERF_KIND_SWITCH;
	EXPECT(EACCES, PERMISSION, "perf_event_paranoid is 2", "blocked time",
	       "kernel.perf_event_paranoid=1");
}

static void test_other_users_process(void **state)
{
	(void)state;
	perf_fake.user = perf_fake.folder = geteuid() + 1;
	failure.tid = 4712;
	EXPECT(EACCES, PERMISSION, "thread 4712", "the owner of the process is user",
	       "and we are user", "CAP_PERFMON");
}

static void test_process_that_is_not_dumpable(void **state)
{
	(void)state;
	perf_fake.folder = geteuid() + 1;
	EXPECT(EACCES, PERMISSION, "the process is not dumpable", "PR_SET_DUMPABLE",
	       "CAP_PERFMON");
}

/* Values above 2 mean 2 to a kernel that does not know them. */
static void test_paranoid_3_that_refuses_nothing_is_no_reason(void **state)
{
	(void)state;
	perf_fake.paranoid = 3;
	perf_fake.user = perf_fake.folder = geteuid() + 1;
	EXPECT(EACCES, PERMISSION, "the owner of the process is user");
	assert_null(strstr(spulse_error_message(err), "paranoid"));
}

static void test_unexplained_denial_is_not_guessed_at(void **state)
{
	(void)state;
	perf_fake.paranoid = 0;
	EXPECT(EPERM, PERMISSION, "perf_event_paranoid is 0", "security module", "seccomp");
}

static void test_denial_despite_the_capability(void **state)
{
	(void)state;
	perf_fake.capabilities = 1ull << CAP_PERFMON;
	EXPECT(EPERM, PERMISSION, "we have CAP_PERFMON", "security module");
}

static void test_locked_memory(void **state)
{
	(void)state;
	failure.mapping = true;
	failure.bytes = 65536;
	EXPECT(EPERM, PERMISSION, "64 KiB of ring", "perf_event_mlock_kb is 516 KiB",
	       "RLIMIT_MEMLOCK is 8192 KiB", "every profiler of this user", "CAP_IPC_LOCK");
}

static void test_unlimited_locked_memory_is_said_so(void **state)
{
	(void)state;
	failure.mapping = true;
	perf_fake.memlock.rlim_cur = RLIM_INFINITY;
	EXPECT(EPERM, PERMISSION, "RLIMIT_MEMLOCK is unlimited");
}

static void test_no_memory_for_a_ring(void **state)
{
	(void)state;
	failure.mapping = true;
	EXPECT(ENOMEM, IO, "RLIMIT_AS", "smaller stacks");
}

static void test_descriptors(void **state)
{
	(void)state;
	failure.descriptors = 1000;
	EXPECT(EMFILE, IO, "RLIMIT_NOFILE is 1024", "hard limit 4096", "1000 events are open",
	       "LimitNOFILE");
	spulse_error_free(err);
	err = NULL;
	EXPECT(ENFILE, IO, "fs.file-max");
}

static void test_process_that_is_gone(void **state)
{
	(void)state;
	EXPECT(ESRCH, TARGET_GONE, "is gone");
}

static int no_lost_counter(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->read_format & PERF_FORMAT_LOST ? -EINVAL : 0;
}

static int nothing_works(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EINVAL;
}

static void test_kernel_before_6_0(void **state)
{
	(void)state;
	perf_fake.open_answer = no_lost_counter;
	EXPECT(EINVAL, UNSUPPORTED, "Linux 6.0", "cannot count lost samples");
	assert_int_equal(perf_fake.open_descriptors, 0);
}

static void test_other_refused_settings_keep_their_error(void **state)
{
	(void)state;
	EXPECT(EINVAL, INVALID_INPUT, "settings");
	assert_int_equal(perf_fake.open_descriptors, 0);
	spulse_error_free(err);
	err = NULL;
	perf_fake.open_answer = nothing_works;
	EXPECT(EINVAL, INVALID_INPUT, "settings");
}

static void test_no_hardware_counter(void **state)
{
	(void)state;
	failure.software = false;
	EXPECT(ENOENT, UNSUPPORTED, "no hardware cycle counter", "CPU clock");
}

static void test_remaining_rows(void **state)
{
	static const struct {
		int errnum;
		enum spulse_error_kind kind;
		const char *part;
	} rows[] = {
		{ EOPNOTSUPP, SPULSE_ERROR_UNSUPPORTED, "lacks the event" },
		{ ENOSYS, SPULSE_ERROR_UNSUPPORTED, "missing (ENOSYS)" },
		{ EBUSY, SPULSE_ERROR_IO, "exclusively" },
		{ ENOMEM, SPULSE_ERROR_NO_MEMORY, "no memory" },
		{ E2BIG, SPULSE_ERROR_IO, "no known setting" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		expect(rows[i].errnum, rows[i].kind, (const char *const[]){ rows[i].part, NULL });
		spulse_error_free(err);
		err = NULL;
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_paranoid_3_and_4_refuse_everything),
		CASE(test_every_process_needs_paranoid_0),
		CASE(test_blocked_time_needs_paranoid_1),
		CASE(test_other_users_process),
		CASE(test_process_that_is_not_dumpable),
		CASE(test_paranoid_3_that_refuses_nothing_is_no_reason),
		CASE(test_unexplained_denial_is_not_guessed_at),
		CASE(test_denial_despite_the_capability),
		CASE(test_locked_memory),
		CASE(test_unlimited_locked_memory_is_said_so),
		CASE(test_no_memory_for_a_ring),
		CASE(test_descriptors),
		CASE(test_process_that_is_gone),
		CASE(test_kernel_before_6_0),
		CASE(test_other_refused_settings_keep_their_error),
		CASE(test_no_hardware_counter),
		CASE(test_remaining_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

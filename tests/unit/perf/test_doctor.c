/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include <stackpulse/doctor.h>

#include "perf_fake.h"

static struct spulse_doctor_report *report;
static struct spulse_error *err;

static int setup(void **state)
{
	(void)state;
	perf_fake_install();
	report = NULL;
	err = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spulse_doctor_report_free(report);
	spulse_error_free(err);
	assert_int_equal(perf_fake.open_descriptors, 0);
	perf_fake_remove();
	return 0;
}

static const struct spulse_doctor_check *check(const char *name)
{
	size_t n;
	const struct spulse_doctor_check *checks = spulse_doctor_report_checks(report, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(checks[i].name, name))
			return &checks[i];
	fail_msg("no check named %s", name);
	return NULL;
}

static void expect(const char *name, uint32_t verdict, const char *value, const char *advice)
{
	const struct spulse_doctor_check *c = check(name);

	assert_int_equal(c->verdict, verdict);
	assert_non_null(strstr(c->value, value));
	assert_non_null(strstr(c->advice, advice));
	assert_true(verdict != SPULSE_VERDICT_OK || !*c->advice);
}

static void test_paranoid_without_rights(void **state)
{
	static const struct {
		int64_t value;
		uint32_t verdict;
		const char *advice;
	} rows[] = {
		{ 4, SPULSE_VERDICT_LIMITED, "perf_event_paranoid=1" },
		{ 3, SPULSE_VERDICT_LIMITED, "perf_event_paranoid=1" },
		{ 2, SPULSE_VERDICT_LIMITED, "perf_event_paranoid=1" },
		{ 1, SPULSE_VERDICT_LIMITED, "perf_event_paranoid=0" },
		{ -1, SPULSE_VERDICT_UNKNOWN, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		perf_fake.capabilities = 0;
		perf_fake.paranoid = rows[i].value;
		assert_int_equal(spulse_doctor(0, &report, &err), 0);
		expect("perf_event_paranoid", rows[i].verdict, "", rows[i].advice);
		spulse_doctor_report_free(report);
		report = NULL;
	}
}

static int refuse_all(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EPERM;
}

/* Some distributions' kernels refuse everything from 3 on, others take it for 2. */
static void test_paranoid_above_2_that_refuses(void **state)
{
	(void)state;
	for (int64_t level = 3; level <= 4; level++) {
		perf_fake.capabilities = 0;
		perf_fake.paranoid = level;
		perf_fake.open_answer = refuse_all;
		assert_int_equal(spulse_doctor(0, &report, &err), 0);
		expect("perf_event_paranoid", SPULSE_VERDICT_REFUSED, "no use without CAP_PERFMON",
		       "perf_event_paranoid=2");
		expect("perf_event_open", SPULSE_VERDICT_REFUSED, "EPERM",
		       "perf_event_paranoid below");
		assert_int_equal(spulse_doctor_report_verdict(report), SPULSE_VERDICT_REFUSED);
		spulse_doctor_report_free(report);
		report = NULL;
	}
}

static int refuse_kernel(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	if (attr->type == PERF_TYPE_HARDWARE)
		return -ENOENT;
	return attr->exclude_kernel ? 0 : -EACCES;
}

static int old_kernel(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->read_format & PERF_FORMAT_LOST ? -EINVAL : 0;
}

static void test_what_the_kernel_refuses(void **state)
{
	(void)state;
	perf_fake.open_answer = refuse_kernel;
	assert_int_equal(spulse_doctor(0, &report, &err), 0);
	expect("sampling-event", SPULSE_VERDICT_OK, "cpu-clock (cycles: ENOENT)", "");
	expect("kernel-frames", SPULSE_VERDICT_LIMITED, "EACCES", "seccomp");
	spulse_doctor_report_free(report);
	report = NULL;
	perf_fake.open_answer = refuse_all;
	assert_int_equal(spulse_doctor(0, &report, &err), 0);
	expect("perf_event_open", SPULSE_VERDICT_REFUSED, "EPERM", "seccomp");
	assert_int_equal(spulse_doctor_report_verdict(report), SPULSE_VERDICT_REFUSED);
	spulse_doctor_report_free(report);
	report = NULL;
	perf_fake.open_answer = old_kernel;
	assert_int_equal(spulse_doctor(0, &report, &err), 0);
	expect("kernel", SPULSE_VERDICT_REFUSED, "", "Linux 6.0");
}

static void test_limits_without_rights(void **state)
{
	(void)state;
	perf_fake.capabilities = 0;
	perf_fake.rate = 500;
	perf_fake.mlock_kb = 64;
	perf_fake.memlock = (struct rlimit){ 65536, 65536 };
	perf_fake.nofile = (struct rlimit){ 64, 256 };
	assert_int_equal(spulse_doctor(0, &report, &err), 0);
	expect("perf_event_max_sample_rate", SPULSE_VERDICT_LIMITED, "500 Hz", "sysctl");
	expect("perf_event_mlock_kb", SPULSE_VERDICT_LIMITED, "64 KiB", "perf_event_mlock_kb=516");
	expect("RLIMIT_MEMLOCK", SPULSE_VERDICT_LIMITED, "64 KiB", "CAP_IPC_LOCK");
	expect("RLIMIT_NOFILE", SPULSE_VERDICT_LIMITED, "64 (hard limit 256)", "hard limit");
}

static void test_process_of_another_user(void **state)
{
	(void)state;
	perf_fake.capabilities = 0;
	perf_fake.user = perf_fake.folder = geteuid() + 1;
	assert_int_equal(spulse_doctor(10, &report, &err), 0);
	expect("owner", SPULSE_VERDICT_REFUSED, "and we are user", "CAP_PERFMON");
	spulse_doctor_report_free(report);
	report = NULL;
	perf_fake.user = geteuid();
	perf_fake.folder = geteuid() + 1;
	assert_int_equal(spulse_doctor(10, &report, &err), 0);
	expect("dumpable", SPULSE_VERDICT_REFUSED, "PR_SET_DUMPABLE", "CAP_PERFMON");
}

static void test_ids_are_checked(void **state)
{
	(void)state;
	assert_int_equal(spulse_doctor(-1, &report, &err), -SPULSE_ERROR_INVALID_INPUT);
	spulse_error_free(err);
	err = NULL;
	perf_fake_remove();
	assert_int_equal(spulse_doctor(0x7fffffff, &report, &err), -SPULSE_ERROR_TARGET_GONE);
	perf_fake_install();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_paranoid_without_rights),
		CASE(test_paranoid_above_2_that_refuses),
		CASE(test_what_the_kernel_refuses),
		CASE(test_limits_without_rights),
		CASE(test_process_of_another_user),
		CASE(test_ids_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

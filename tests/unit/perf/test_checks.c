/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Each row of the table of checks: how it looks where all is well and where it is not, and the
 * text of a failure that it explains. A row without a case here fails the last test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <unistd.h>

#include "perf_fake.h"
#include "perf/checks.h"

static int no_lost_counter(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->read_format & PERF_FORMAT_LOST ? -EINVAL : 0;
}

static int refuse_all(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EACCES;
}

static int refuse_cycles(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

/* As at paranoid 2. */
static int refuse_kernel_and_everyone(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)cpu;
	return pid == -1 || !attr->exclude_kernel ? -EACCES : 0;
}

static int no_events(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -ENOSYS;
}

/* ---- how a machine that limits or refuses is made ---- */

static void make_old_kernel(void) { perf_fake.open_answer = no_lost_counter; }
static void make_no_events(void) { perf_fake.open_answer = no_events; }
static void make_no_cycles(void) { perf_fake.open_answer = refuse_cycles; }
static void make_user(void) { perf_fake.open_answer = refuse_kernel_and_everyone; }

static void make_distribution(void)
{
	perf_fake.paranoid = 4;
	perf_fake.open_answer = refuse_all;
}

static void make_filter(void)
{
	perf_fake.paranoid = 1;
	perf_fake.open_answer = refuse_all;
}

static void make_paranoid_1(void) { perf_fake.paranoid = 1; }
static void make_hidden_kernel(void) { perf_fake.kptr_restrict = 1; }
static void make_slow(void) { perf_fake.rate = 250; }
static void make_small_locks(void) { perf_fake.mlock_kb = 16; }
static void make_small_limit(void) { perf_fake.memlock.rlim_cur = 64 << 10; }
static void make_small_space(void) { perf_fake.address_space.rlim_cur = 64 << 20; }
static void make_few_descriptors(void) { perf_fake.nofile = (struct rlimit){ 64, 256 }; }
static void make_few_files(void) { perf_fake.file_max = 1000; }
static void make_yama(void) { perf_fake.ptrace_scope = 1; }
static void make_yama_forever(void) { perf_fake.ptrace_scope = 3; }
static void make_other_user(void) { perf_fake.user = perf_fake.folder = geteuid() + 1; }
static void make_undumpable(void) { perf_fake.folder = geteuid() + 1; }
static void make_no_maps(void) { perf_fake.file_answer = -EACCES; }

/* For a row that explains no failure. */
#define NOTHING 0

static const struct row {
	const char *name;
	void (*make)(void);
	enum spulse_verdict verdict;
	/* What the doctor says. */
	const char *value, *advice;
	/* The failure that it explains, if any; tid 0 stands for the process. */
	struct perf_failure failure;
	enum spulse_error_kind kind;
	const char *said, *helps;
} rows[] = {
	{ "kernel", make_old_kernel, SPULSE_VERDICT_REFUSED, "cannot count lost samples",
	  "use Linux 6.0 or later", { .errnum = EINVAL }, SPULSE_ERROR_UNSUPPORTED,
	  "cannot count lost samples", "use Linux 6.0 or later" },
	{ "perf_event_open", make_no_events, SPULSE_VERDICT_REFUSED, "missing (ENOSYS)",
	  "use a kernel that was built with perf events", { .errnum = ENOSYS },
	  SPULSE_ERROR_UNSUPPORTED, "perf_event_open is missing (ENOSYS)",
	  "use a kernel that was built with perf events" },
	{ "perf_event_open", make_filter, SPULSE_VERDICT_REFUSED, "refused (EACCES)",
	  "seccomp", { .errnum = EPERM }, SPULSE_ERROR_PERMISSION,
	  "perf_event_open is refused (EPERM) though perf_event_paranoid is 1 and the process is "
	  "ours", "allow perf_event_open in the security module or in the seccomp filter" },
	{ "perf_event_paranoid", make_distribution, SPULSE_VERDICT_REFUSED,
	  "4: no use without CAP_PERFMON", "run \"sysctl kernel.perf_event_paranoid=2\"",
	  { .errnum = EACCES }, SPULSE_ERROR_PERMISSION, "perf_event_paranoid is 4",
	  "run \"sysctl kernel.perf_event_paranoid=2\", or give CAP_PERFMON" },
	{ "perf_event_paranoid", make_user, SPULSE_VERDICT_LIMITED,
	  "2: own processes, without kernel frames and blocked time",
	  "for kernel frames and blocked time run \"sysctl kernel.perf_event_paranoid=1\"",
	  { .errnum = EACCES, .kind = PERF_KIND_SWITCH }, SPULSE_ERROR_PERMISSION,
	  "recording blocked time is refused: perf_event_paranoid is 2",
	  "to record blocked time run \"sysctl kernel.perf_event_paranoid=1\"" },
	{ "perf_event_paranoid", make_paranoid_1, SPULSE_VERDICT_LIMITED, "1: own processes",
	  "to record every process run \"sysctl kernel.perf_event_paranoid=0\"",
	  { .errnum = EACCES, .tid = -1, .pid = -1 }, SPULSE_ERROR_PERMISSION,
	  "recording every process is refused: perf_event_paranoid is 1",
	  "to record every process run \"sysctl kernel.perf_event_paranoid=0\"" },
	{ "CAP_PERFMON", make_user, SPULSE_VERDICT_LIMITED, "not held", "run as root",
	  { 0 }, NOTHING, NULL, NULL },
	{ "sampling-event", make_no_events, SPULSE_VERDICT_REFUSED, "none",
	  "see perf_event_open", { 0 }, NOTHING, NULL, NULL },
	{ "sampling-event", make_no_cycles, SPULSE_VERDICT_OK, "cpu-clock (cycles: ENOENT)", "",
	  { .errnum = ENOENT }, SPULSE_ERROR_UNSUPPORTED,
	  "the sampling event is no hardware cycle counter (ENOENT)", "CPU clock" },
	{ "kernel-frames", make_user, SPULSE_VERDICT_LIMITED, "refused (EACCES)",
	  "run \"sysctl kernel.perf_event_paranoid=1\"", { 0 }, NOTHING, NULL, NULL },
	{ "blocked-time", make_user, SPULSE_VERDICT_LIMITED, "refused (EACCES)",
	  "run \"sysctl kernel.perf_event_paranoid=1\"", { 0 }, NOTHING, NULL, NULL },
	{ "every-process", make_user, SPULSE_VERDICT_LIMITED, "refused (EACCES)",
	  "run \"sysctl kernel.perf_event_paranoid=0\"", { 0 }, NOTHING, NULL, NULL },
	{ "kptr_restrict", make_hidden_kernel, SPULSE_VERDICT_LIMITED,
	  "1: kernel addresses are hidden", "run \"sysctl kernel.kptr_restrict=0\"", { 0 },
	  NOTHING, NULL, NULL },
	{ "perf_event_max_sample_rate", make_slow, SPULSE_VERDICT_LIMITED, "250 Hz",
	  "run \"sysctl kernel.perf_event_max_sample_rate=100000\"", { 0 }, NOTHING,
	  NULL, NULL },
	{ "perf_event_mlock_kb", make_small_locks, SPULSE_VERDICT_LIMITED, "16 KiB per CPU",
	  "run \"sysctl kernel.perf_event_mlock_kb=516\"",
	  { .errnum = EPERM, .mapping = true, .bytes = 65536 }, SPULSE_ERROR_PERMISSION,
	  "not even 64 KiB of ring may be locked, in memory that every profiler of this user "
	  "shares: perf_event_mlock_kb is 16 KiB per CPU",
	  "run \"sysctl kernel.perf_event_mlock_kb=516\"" },
	{ "RLIMIT_MEMLOCK", make_small_limit, SPULSE_VERDICT_LIMITED, "64 KiB",
	  "for larger rings raise it (\"ulimit -l\"",
	  { .errnum = EPERM, .mapping = true, .bytes = 65536 }, SPULSE_ERROR_PERMISSION,
	  "RLIMIT_MEMLOCK is 64 KiB", "raise it (\"ulimit -l\", LimitMEMLOCK= of a service), or "
	  "give CAP_IPC_LOCK" },
	{ "RLIMIT_AS", make_small_space, SPULSE_VERDICT_LIMITED, "65536 KiB", "\"ulimit -v\"",
	  { .errnum = ENOMEM, .mapping = true, .bytes = 65536 }, SPULSE_ERROR_IO,
	  "RLIMIT_AS is 65536 KiB", "raise it (\"ulimit -v\")" },
	{ "RLIMIT_NOFILE", make_few_descriptors, SPULSE_VERDICT_LIMITED, "64 (hard limit 256)",
	  "raise the hard limit (\"ulimit -Hn\"", { .errnum = EMFILE, .descriptors = 200 },
	  SPULSE_ERROR_IO,
	  "RLIMIT_NOFILE is 64 (hard limit 256) and 200 events are open, one for each thread and "
	  "CPU", "raise the hard limit (\"ulimit -Hn\", LimitNOFILE= of a service)" },
	{ "file-max", make_few_files, SPULSE_VERDICT_LIMITED, "1000", "run \"sysctl fs.file-max=2000\"",
	  { .errnum = ENFILE }, SPULSE_ERROR_IO, "file-max is 1000",
	  "run \"sysctl fs.file-max=2000\"" },
	{ "ptrace_scope", make_yama, SPULSE_VERDICT_LIMITED, "1: a running process is stopped by "
	  "SIGSTOP", "run \"sysctl kernel.yama.ptrace_scope=0\", or give CAP_SYS_PTRACE", { 0 },
	  NOTHING, NULL, NULL },
	{ "ptrace_scope", make_yama_forever, SPULSE_VERDICT_LIMITED, "3: ",
	  "cannot be lowered", { 0 }, NOTHING, NULL, NULL },
	{ "owner", make_other_user, SPULSE_VERDICT_REFUSED, "and we are user",
	  "run as that user or with CAP_PERFMON", { .errnum = EACCES }, SPULSE_ERROR_PERMISSION,
	  "the owner of the process is user", "run as that user or with CAP_PERFMON" },
	{ "dumpable", make_undumpable, SPULSE_VERDICT_REFUSED, "not dumpable: it changed its user",
	  "run with CAP_PERFMON", { .errnum = EACCES }, SPULSE_ERROR_PERMISSION,
	  "the process is not dumpable: it changed its user or called prctl(PR_SET_DUMPABLE, 0)",
	  "run with CAP_PERFMON" },
	{ "maps", make_no_maps, SPULSE_VERDICT_LIMITED, "unreadable (EACCES)", "CAP_SYS_PTRACE",
	  { 0 }, NOTHING, NULL, NULL },
	{ "process", make_distribution, SPULSE_VERDICT_REFUSED, "4711 cannot be sampled (EACCES)",
	  "see the other lines", { 0 }, NOTHING, NULL, NULL },
};

static int setup(void **state)
{
	(void)state;
	perf_fake_install();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(perf_fake.open_descriptors, 0);
	perf_fake_remove();
	return 0;
}

static const struct perf_check *check_named(const char *name)
{
	for (size_t i = 0; i < perf_check_count; i++)
		if (!strcmp(perf_checks[i].name, name))
			return &perf_checks[i];
	fail_msg("no row is named %s", name);
	return NULL;
}

static void has(const char *name, const char *text, const char *part)
{
	if (!strstr(text ? text : "", part))
		fail_msg("%s: \"%s\" is not in \"%s\"", name, part, text ? text : "");
}

static void each_row_looks_as_it_stands(void **state)
{
	const struct perf_look look = { .pid = 4711 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct strbuf value = { 0 }, advice = { 0 };
		enum spulse_verdict verdict;

		perf_fake_install();
		perf_fake.capabilities = 0;
		rows[i].make();
		verdict = check_named(rows[i].name)->look(&look, &value, &advice);
		if (verdict != rows[i].verdict)
			fail_msg("%s: the verdict is %s", rows[i].name,
				 spulse_verdict_name(verdict));
		has(rows[i].name, value.data, rows[i].value);
		has(rows[i].name, advice.data, rows[i].advice);
		assert_int_equal(verdict == SPULSE_VERDICT_OK, advice.len == 0);
		strbuf_release(&value);
		strbuf_release(&advice);
		perf_fake_remove();
	}
	perf_fake_install();
}

static void with_every_right_nothing_is_limited(void **state)
{
	const struct perf_look look = { .pid = 4711 };

	(void)state;
	perf_fake.kptr_restrict = 1;
	perf_fake.ptrace_scope = 1;
	for (size_t i = 0; i < perf_check_count; i++) {
		struct strbuf value = { 0 }, advice = { 0 };

		assert_int_equal(perf_checks[i].look(&look, &value, &advice), SPULSE_VERDICT_OK);
		assert_true(value.len > 0);
		assert_int_equal(advice.len, 0);
		strbuf_release(&value);
		strbuf_release(&advice);
	}
}

/* The call, the process, the CPU, the errno, the setting with its value, and what helps. */
static void check_message(const struct row *row)
{
	struct perf_failure failure = row->failure;
	struct spulse_error *err = NULL;
	const char *message, *said, *helps;

	if (!failure.pid)
		failure.pid = failure.tid = 4711;
	failure.cpu = 3;
	assert_int_equal(perf_report_failure(&failure, &err), -(int)row->kind);
	assert_int_equal(spulse_error_errno(err), failure.errnum);
	message = spulse_error_message(err);
	has(row->name, message, failure.mapping ? "mmap of a ring failed for " :
						  "perf_event_open failed for ");
	has(row->name, message, failure.tid == -1 ? "every process" : "process 4711");
	has(row->name, message, "on CPU 3 (");
	has(row->name, message, strerrorname_np(failure.errnum));
	has(row->name, message, row->said);
	said = strstr(message, row->said);
	/* An advice that says what it is for begins with "to" itself. */
	helps = strstr(message, !strncmp(row->helps, "to ", 3) ? "; to " : "; it helps to ");
	assert_null(strstr(message, "to to "));
	assert_true(helps && helps > said);
	has(row->name, helps, row->helps);
	spulse_error_free(err);
}

static void each_row_explains_its_failure(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].said)
			continue;
		perf_fake_install();
		perf_fake.capabilities = 0;
		rows[i].make();
		check_message(&rows[i]);
		perf_fake_remove();
	}
	perf_fake_install();
}

/* Of the rows for a denied open one is the reason, not all that could be. */
static void a_denial_has_one_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct perf_failure f = rows[i].failure;
		size_t reasons = 0;

		if (!rows[i].said || f.mapping)
			continue;
		if (!f.pid)
			f.pid = f.tid = 4711;
		perf_fake_install();
		perf_fake.capabilities = 0;
		rows[i].make();
		for (size_t c = 0; c < perf_check_count; c++)
			reasons += perf_checks[c].explains && perf_checks[c].explains(&f);
		assert_int_equal(reasons, 1);
		perf_fake_remove();
	}
	perf_fake_install();
}

static void every_row_has_a_case(void **state)
{
	(void)state;
	for (size_t c = 0; c < perf_check_count; c++) {
		bool looked = false, explained = !perf_checks[c].explains;

		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if (!strcmp(rows[i].name, perf_checks[c].name)) {
				looked = true;
				explained |= rows[i].said != NULL;
			}
		if (!looked || !explained)
			fail_msg("%s has no case", perf_checks[c].name);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(each_row_looks_as_it_stands),
		CASE(with_every_right_nothing_is_limited),
		CASE(each_row_explains_its_failure),
		CASE(a_denial_has_one_reason),
		CASE(every_row_has_a_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

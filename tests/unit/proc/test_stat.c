/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/procfs.h"

static struct proc_stat stat_of(const char *text)
{
	struct proc_stat stat = { 0 };

	assert_true(proc_stat_parse(text, strlen(text), &stat));
	return stat;
}

#define TAIL "S 41 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 17 0 987654 1000 2 3\n"

static void test_fields(void **state)
{
	struct proc_stat stat = stat_of("42 (cat) " TAIL);

	(void)state;
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.ppid, 41);
	assert_int_equal(stat.threads, 17);
	assert_int_equal(stat.start_time, 987654);
}

static void test_names_may_hold_anything(void **state)
{
	(void)state;
	assert_int_equal(stat_of("42 (a) R 1 (b\xff c)) " TAIL).ppid, 41);
	assert_int_equal(stat_of("42 () " TAIL).ppid, 41);
	assert_int_equal(stat_of("42 (\n) \n) " TAIL).ppid, 41);
}

static void test_short_lines_are_refused(void **state)
{
	const char *whole = "42 (cat) " TAIL;
	struct proc_stat stat;

	(void)state;
	/* Everything up to the start time is needed. */
	for (size_t len = 0; len < strlen("42 (cat) S 41 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 17 0 ");
	     len++)
		assert_false(proc_stat_parse(whole, len, &stat));
	assert_false(proc_stat_parse("42 (cat) S x", 12, &stat));
}

static void test_own_process(void **state)
{
	struct proc_stat stat;
	pid_t tgid, tracer;

	(void)state;
	/* An emulator shows its own processes. */
	if (getenv("MESON_EXE_WRAPPER"))
		skip();
	assert_int_equal(proc_stat_read(getpid(), 0, &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.ppid, getppid());
	assert_int_equal(stat.threads, 1);
	assert_true(stat.start_time > 0);
	assert_int_equal(proc_stat_read(getpid(), getpid(), &stat), 0);
	assert_int_equal(proc_tgid_read(getpid(), &tgid), 0);
	assert_int_equal(tgid, getpid());
	assert_int_equal(proc_tracer_read(getpid(), getpid(), &tracer), 0);
}

static void test_odd_names_do_not_confuse_the_status_file(void **state)
{
	struct strbuf comm = { 0 };
	char old[16];
	pid_t tgid;

	(void)state;
	prctl(PR_GET_NAME, old);
	prctl(PR_SET_NAME, "a\nTgid:\t1 )\xff");
	assert_int_equal(proc_tgid_read(getpid(), &tgid), 0);
	assert_int_equal(tgid, getpid());
	assert_int_equal(proc_file_read(getpid(), 0, "comm", 100, &comm), 0);
	assert_string_equal(comm.data, "a\nTgid:\t1 )\xff");
	prctl(PR_SET_NAME, old);
	strbuf_release(&comm);
}

static void test_missing_process(void **state)
{
	struct proc_stat stat;
	uint64_t device, inode;
	pid_t tgid;

	(void)state;
	assert_int_equal(proc_stat_read(2147483647, 0, &stat), -ENOENT);
	assert_int_equal(proc_tgid_read(2147483647, &tgid), -ENOENT);
	assert_int_equal(proc_exe_identity(2147483647, &device, &inode), -ENOENT);
}

static void test_program_identity(void **state)
{
	uint64_t device, inode;
	struct stat st;

	(void)state;
	assert_int_equal(proc_exe_identity(getpid(), &device, &inode), 0);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_int_equal(device, st.st_dev);
	assert_int_equal(inode, st.st_ino);
}

static void test_read_errors_have_a_kind_and_a_hint(void **state)
{
	static const struct {
		int errnum;
		enum spulse_error_kind kind;
		const char *part;
	} rows[] = {
		{ ENOENT, SPULSE_ERROR_TARGET_GONE, "is gone" },
		{ ESRCH, SPULSE_ERROR_TARGET_GONE, "is gone" },
		{ EACCES, SPULSE_ERROR_PERMISSION, "CAP_SYS_PTRACE" },
		{ EPERM, SPULSE_ERROR_PERMISSION, "non-dumpable" },
		{ EIO, SPULSE_ERROR_IO, "cannot read" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct spulse_error *err = NULL;

		assert_int_equal(proc_read_error(&err, rows[i].errnum, 5, "/proc/5/maps"),
				 -(int)rows[i].kind);
		assert_non_null(strstr(spulse_error_message(err), rows[i].part));
		assert_non_null(strstr(spulse_error_message(err), "/proc/5/maps"));
		spulse_error_free(err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_names_may_hold_anything),
		cmocka_unit_test(test_short_lines_are_refused),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_odd_names_do_not_confuse_the_status_file),
		cmocka_unit_test(test_missing_process),
		cmocka_unit_test(test_program_identity),
		cmocka_unit_test(test_read_errors_have_a_kind_and_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "spoolfile.h"

static char folder[64], path[96], old[104], text[4096];

static int enter_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/stackpulse-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/x.spool", folder);
	snprintf(old, sizeof(old), "%s.old", path);
	return 0;
}

static int leave_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(old);
	return rmdir(folder);
}

static size_t files_in_folder(void)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void expect_content(const char *name, const char *wanted)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, wanted);
}

static void record(const char *content, bool started)
{
	struct spoolfile file;

	assert_true(spoolfile_open(&file, path));
	assert_true(file.regular);
	assert_int_equal(write(file.fd, content, strlen(content)), strlen(content));
	assert_int_equal(spoolfile_bytes(&file), strlen(content));
	if (started)
		assert_true(spoolfile_publish(&file));
	spoolfile_close(&file);
}

static void names_appear_when_started(void **state)
{
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	record("never", false);
	assert_int_equal(files_in_folder(), 0);
	record("one", true);
	umask(mask);
	assert_int_equal(files_in_folder(), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);

	record("two", true);
	expect_content(path, "two");
	expect_content(old, "one");
	record("never", false);
	expect_content(path, "two");
	expect_content(old, "one");
	record("three", true);
	expect_content(old, "two");
	assert_int_equal(files_in_folder(), 2);
}

static void refused(const char *name, const char *reason)
{
	struct capture capture;
	struct spoolfile file;

	capture_start(&capture, STDERR_FILENO);
	assert_false(spoolfile_open(&file, name));
	capture_end(&capture, text, sizeof(text));
	assert_non_null(strstr(text, reason));
	if (*name)
		assert_non_null(strstr(text, name));
}

static void unusable_places(void **state)
{
	(void)state;
	refused(folder, "Is a directory");
	refused("/nonexistent/x.spool", "No such file or directory");
	refused("", "No such file or directory");
}

static void devices_stay(void **state)
{
	struct spoolfile file;
	struct stat st;

	(void)state;
	assert_true(spoolfile_open(&file, "/dev/null"));
	assert_false(file.regular);
	assert_true(spoolfile_publish(&file));
	assert_int_equal(spoolfile_bytes(&file), 0);
	spoolfile_close(&file);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_appear_when_started),
		cmocka_unit_test(unusable_places),
		cmocka_unit_test(devices_stay),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "output.h"

static char folder[64];
static char path[96];
static char text[4096];

static int enter_folder(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	strcpy(folder, "/tmp/stackpulse-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int leave_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void read_file(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	assert_true(n >= 0);
	text[n] = '\0';
}

static void file_appears_when_it_is_whole(void **state)
{
	struct capture capture;
	struct out *out;

	(void)state;
	out = out_file(path, "input");
	assert_non_null(out);
	out_puts(out, "one ");
	out_printf(out, "%d", 2);
	out_flush(out);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(out_close(out, 0), 0);
	read_file();
	assert_string_equal(text, "one 2");

	/* What is read is not written. */
	capture_start(&capture, STDERR_FILENO);
	assert_null(out_file(path, path));
	capture_end(&capture, text, sizeof(text));
	assert_non_null(strstr(text, path));

	/* One that is given up leaves the older file. */
	out = out_file(path, "input");
	out_puts(out, "new");
	assert_int_equal(out_abandon(out, 1), 1);
	read_file();
	assert_string_equal(text, "one 2");
}

static void large_output(void **state)
{
	struct out *out = out_file(path, "input");
	int fd;

	(void)state;
	for (int i = 0; i < 100000; i++)
		out_printf(out, "%09d\n", i);
	assert_int_equal(out_close(out, 0), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(lseek(fd, 0, SEEK_END), 1000000);
	assert_int_equal(pread(fd, text, 10, 777770), 10);
	assert_memory_equal(text, "000077777\n", 10);
	close(fd);
}

static void names_are_escaped_across_pieces(void **state)
{
	struct out *out = out_file(path, "input");
	char name[1000];

	(void)state;
	memset(name, ';', sizeof(name));
	out_name(out, name, sizeof(name));
	assert_int_equal(out_close(out, 0), 0);
	read_file();
	assert_int_equal(strlen(text), 4000);
	assert_memory_equal(text + 3996, "\\x3b", 4);
}

static void full_disk_is_reported(void **state)
{
	struct capture capture;
	struct out *out;

	(void)state;
	capture_start(&capture, STDERR_FILENO);
	out = out_file("/dev/full", "input");
	assert_non_null(out);
	for (int i = 0; i < 100000; i++)
		out_puts(out, "0123456789");
	assert_true(out_stopped(out));
	assert_int_equal(out_close(out, 0), 1);
	capture_end(&capture, text, sizeof(text));
	assert_non_null(strstr(text, "/dev/full: No space left on device"));
}

static void closed_pipe_is_quiet(void **state)
{
	struct capture capture;
	int fds[2], saved = dup(STDOUT_FILENO);
	struct out *out;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	capture_start(&capture, STDERR_FILENO);
	out = out_stdout();
	out_puts(out, "text");
	out_flush(out);
	assert_true(out_stopped(out));
	assert_int_equal(out_close(out, 0), 0);
	capture_end(&capture, text, sizeof(text));
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_string_equal(text, "");
}

static void missing_folder_is_reported(void **state)
{
	struct capture capture;

	(void)state;
	capture_start(&capture, STDERR_FILENO);
	assert_null(out_file("/nonexistent/x", "input"));
	capture_end(&capture, text, sizeof(text));
	assert_string_equal(text, "stackpulse: cannot create /nonexistent/x: "
				  "No such file or directory\n");
}

static void colours(void **state)
{
	struct out *out = out_file(path, "input");

	(void)state;
	assert_false(out_color(out));
	out_style(out, "1");
	out_set_color(out, OUT_COLOR_ALWAYS);
	out_style(out, "1");
	out_puts(out, "x");
	out_style(out, NULL);
	assert_int_equal(out_columns(out), 0);
	assert_int_equal(out_close(out, 0), 0);
	read_file();
	assert_string_equal(text, "\x1b[1mx\x1b[0m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_appears_when_it_is_whole),
		cmocka_unit_test(large_output),
		cmocka_unit_test(names_are_escaped_across_pieces),
		cmocka_unit_test(full_disk_is_reported),
		cmocka_unit_test(closed_pipe_is_quiet),
		cmocka_unit_test(missing_folder_is_reported),
		cmocka_unit_test(colours),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/procfs.h"

/* ---- a made-up /proc ---- */

static char root[] = "/tmp/spulse-children-XXXXXX";

static int setup(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	assert_non_null(mkdtemp(root));
	proc_root = root;
	return 0;
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	proc_root = "/proc";
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_process(int pid, int ppid, const char *children)
{
	char path[64], text[200];

	snprintf(text, sizeof(text), "%d (x) y) S %d 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 55 0\n", pid,
		 ppid);
	snprintf(path, sizeof(path), "%d/stat", pid);
	put(path, text);
	snprintf(path, sizeof(path), "%d/task/%d/stat", pid, pid);
	put(path, text);
	if (!children)
		return;
	snprintf(path, sizeof(path), "%d/task/%d/children", pid, pid);
	put(path, children);
}

static void expect(pid_t of, size_t n, const int (*edges)[2])
{
	struct spulse_process_edge *found = NULL;
	size_t count;
	pid_t *pids;

	assert_int_equal(spulse_children_discover_edges(of, &found, &count, NULL), 0);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(found[i].parent, edges[i][0]);
		assert_int_equal(found[i].child, edges[i][1]);
	}
	spulse_array_free(found);
	assert_int_equal(spulse_children_discover(of, &pids, &count, NULL), 0);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pids[i], edges[i][1]);
	spulse_array_free(pids);
}

static void test_children_files(void **state)
{
	(void)state;
	put_process(10, 1, "20 30 ");
	put_process(20, 10, "");
	put_process(30, 10, "40 ");
	put_process(40, 30, "");
	/* A second thread has a child of its own. */
	put("10/task/11/children", "50 20 ");
	put_process(50, 10, "");
	expect(10, 4, (const int[][2]){ { 10, 20 }, { 10, 30 }, { 10, 50 }, { 30, 40 } });
	expect(40, 0, NULL);
}

static void test_bad_tokens_and_loops_are_skipped(void **state)
{
	(void)state;
	put_process(10, 1, "x 20 -5 0 99999999999999999999 2147483648 20 10 7q ");
	put_process(20, 10, "10 20 ");
	expect(10, 1, (const int[][2]){ { 10, 20 } });
}

static void test_parent_numbers_where_children_files_are_missing(void **state)
{
	(void)state;
	put_process(10, 1, NULL);
	put_process(40, 30, NULL);
	put_process(30, 10, NULL);
	put_process(20, 10, NULL);
	put_process(60, 1, NULL);
	expect(10, 3, (const int[][2]){ { 10, 20 }, { 10, 30 }, { 30, 40 } });
}

static void test_process_that_vanishes_is_skipped(void **state)
{
	(void)state;
	put_process(10, 1, "20 30 ");
	put_process(30, 10, "40 ");
	put_process(40, 30, "");
	expect(10, 3, (const int[][2]){ { 10, 20 }, { 10, 30 }, { 30, 40 } });
}

static void test_ids_are_checked(void **state)
{
	struct spulse_process_edge *edges;
	pid_t *pids;
	size_t count;

	(void)state;
	assert_int_equal(spulse_children_discover(0, &pids, &count, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(spulse_children_discover_edges(-1, &edges, &count, NULL),
			 -SPULSE_ERROR_INVALID_INPUT);
}

/* ---- the real one ---- */

static void test_real_grandchildren(void **state)
{
	int ready[2];
	pid_t child, *pids;
	size_t count;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (fork() == 0) {
			(void)!write(ready[1], "x", 1);
			pause();
		}
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(spulse_children_discover(getpid(), &pids, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_int_equal(pids[0], child);
	kill(pids[1], SIGKILL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	spulse_array_free(pids);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_children_files),
		CASE(test_bad_tokens_and_loops_are_skipped),
		CASE(test_parent_numbers_where_children_files_are_missing),
		CASE(test_process_that_vanishes_is_skipped),
		CASE(test_ids_are_checked),
		cmocka_unit_test(test_real_grandchildren),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Code bytes of the target: of a live one only, whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/recorder.h"

static struct spulse_recorder *rec;
static struct rec_process process;
static uint8_t *page; /* the page behind it is not there */
static long page_size;

/* A child with the same memory; it waits until it is killed. */
static int setup(void **state)
{
	(void)state;
	page_size = sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 2 * (size_t)page_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	for (long i = 0; i < page_size; i++)
		page[i] = (uint8_t)i;
	munmap(page + page_size, (size_t)page_size);
	process = (struct rec_process){.pid = fork()};
	if (process.pid == 0)
		for (;;)
			pause();
	assert_true(process.pid > 0);
	assert_int_equal(proc_handle_open(process.pid, &process.handle, NULL), 0);
	memset(page, 0, (size_t)page_size); /* ours is no longer the child's */
	rec = calloc(1, sizeof(*rec));
	assert_non_null(rec);
	rec->walking = &process;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!process.exited) {
		kill(process.pid, SIGKILL);
		waitpid(process.pid, NULL, 0);
	}
	proc_handle_free(process.handle);
	munmap(page, (size_t)page_size);
	free(rec);
	return 0;
}

static bool read_at(const uint8_t *address, void *buf, size_t len)
{
	return code_read(rec, NULL, (uint64_t)(uintptr_t)address, buf, len);
}

static void the_targets_own_bytes_are_read(void **state)
{
	uint8_t buf[64];

	(void)state;
	if (!read_at(page + 16, buf, sizeof(buf)))
		skip(); /* a kernel that denies it */
	for (size_t i = 0; i < sizeof(buf); i++)
		assert_int_equal(buf[i], 16 + i);
	/* Up to the end of its memory, and not one byte beyond. */
	assert_true(read_at(page + page_size - sizeof(buf), buf, sizeof(buf)));
	assert_false(read_at(page + page_size - sizeof(buf) + 1, buf, sizeof(buf)));
	assert_false(read_at(page + page_size, buf, 1));
	assert_false(read_at(NULL, buf, 1));
	assert_false(code_read(rec, NULL, UINT64_MAX - 7, buf, sizeof(buf)));
}

static void nothing_is_read_of_other_times(void **state)
{
	uint8_t buf[8];
	struct proc_handle *handle = process.handle;

	(void)state;
	rec->offline = true; /* another process may have the number now */
	assert_false(read_at(page, buf, sizeof(buf)));
	rec->offline = false;
	process.handle = NULL; /* gone when it was first heard of */
	assert_false(read_at(page, buf, sizeof(buf)));
	process.handle = handle;
	process.exited = true;
	assert_false(read_at(page, buf, sizeof(buf)));
	process.exited = false;
	rec->walking = NULL;
	assert_false(read_at(page, buf, sizeof(buf)));
	rec->walking = &process;
}

static void nothing_is_read_of_the_dead(void **state)
{
	uint8_t buf[8];

	(void)state;
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	assert_false(read_at(page, buf, sizeof(buf)));
	process.exited = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_targets_own_bytes_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_read_of_other_times, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_read_of_the_dead, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

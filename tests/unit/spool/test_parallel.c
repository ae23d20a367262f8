/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Calls that take a const source may come from several threads at once, also the first ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/util.h"
#include "spool_bytes.h"
#include "spool_output.h"

enum { PIDS = 50000, THREADS = 3, ROUNDS = 60 };

struct reader {
	pthread_t thread;
	atomic_int *missing;
	const struct spulse_source *source;
	bool right;
};

static bool is_right(const struct spulse_source *source)
{
	size_t count;
	const pid_t *pids = spulse_source_processes(source, &count);

	for (size_t i = 0; i < count; i++)
		if (pids[i] != (pid_t)i + 1)
			return false;
	return count == PIDS;
}

static void *read_source(void *data)
{
	struct reader *reader = data;

	/* Not asleep: who has to wake up comes too late. */
	for (atomic_fetch_sub(reader->missing, 1); atomic_load(reader->missing);)
		sched_yield();
	reader->right = is_right(reader->source);
	return NULL;
}

static void read_at_once(const struct spulse_source *source)
{
	struct reader readers[THREADS];
	atomic_int missing = THREADS;

	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){ .missing = &missing, .source = source };
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_source, &readers[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
		assert_true(readers[i].right);
	}
}

/* Process ids from PIDS down to 1. */
static void test_processes(void **state)
{
	struct strbuf bytes = { 0 };
	struct spool_file file;

	(void)state;
	bytes_header(&bytes, 4);
	for (int i = 0; i < PIDS; i++)
		bytes_numbers(&bytes, 2, 7, 2 * (uint64_t)(PIDS - i));
	spool_file_make(&file, bytes.data, bytes.len);
	for (int round = 0; round < ROUNDS; round++) {
		SPULSE_CLEANUP(snapshot) snapshot = NULL;

		assert_int_equal(spulse_snapshot_open(file.path, &snapshot, NULL), 0);
		read_at_once(spulse_snapshot_source(snapshot));
	}
	spool_file_close(&file);
	strbuf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stackpulse/error.h>

#include "base/util.h"
#include "random.h"

static void test_read_fd_within_limit(void **state)
{
	struct strbuf sb = { 0 };
	int fd = memfd_create("t", MFD_CLOEXEC);
	char bytes[50000];

	(void)state;
	memset(bytes, 'b', sizeof(bytes));
	assert_int_equal(write_full(fd, bytes, sizeof(bytes)), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(read_fd(fd, 50000, &sb), 0);
	assert_int_equal(sb.len, 50000);
	assert_memory_equal(sb.data, bytes, 50000);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(read_fd(fd, 49999, &sb), -EFBIG);
	lseek(fd, 0, SEEK_END);
	assert_int_equal(read_fd(fd, 10, &sb), 0);
	assert_int_equal(sb.len, 0);
	assert_string_equal(sb.data, "");
	strbuf_release(&sb);
	close(fd);
}

static void test_read_file_errors(void **state)
{
	struct strbuf sb = { 0 };

	(void)state;
	assert_int_equal(read_file("/nonexistent/file", 10, &sb), -ENOENT);
	assert_int_equal(read_file("/", 10, &sb), -EISDIR);
	assert_int_equal(read_file("/proc/self/stat", 100000, &sb), 0);
	assert_true(sb.len > 10);
	strbuf_release(&sb);
}

static void test_pread_stops_at_the_end(void **state)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	char buf[16];

	(void)state;
	assert_int_equal(write_full(fd, "0123456789", 10), 0);
	assert_int_equal(pread_full(fd, buf, 16, 4), 6);
	assert_memory_equal(buf, "456789", 6);
	assert_int_equal(pread_full(fd, buf, 16, 100), 0);
	assert_int_equal(pread_full(-1, buf, 16, 0), -EBADF);
	assert_int_equal(read_full(-1, buf, 16), -EBADF);
	assert_int_equal(write_full(-1, buf, 16), -EBADF);
	close(fd);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void *feed(void *arg)
{
	int *ends = arg;
	struct random rng = { .state = 5 };

	for (int i = 0; i < 100; i++) {
		char byte = i;

		if (random_below(&rng, 3) == 0)
			kill(getpid(), SIGUSR1);
		if (write(ends[1], &byte, 1) != 1)
			break;
	}
	close(ends[1]);
	return NULL;
}

/* A pipe gives single bytes and signals interrupt the reads: read_full() still gets them all. */
static void test_short_and_interrupted_reads(void **state)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;
	char buf[200];
	int ends[2];

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, feed, ends), 0);
	assert_int_equal(read_full(ends[0], buf, sizeof(buf)), 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf[i], i);
	pthread_join(thread, NULL);
	close(ends[0]);
}

struct known {
	size_t size;
	uint64_t field;
};

struct newer {
	struct known known;
	uint64_t later;
};

static void test_option_sizes(void **state)
{
	static const struct {
		size_t size, later;
		int r;
		uint64_t field;
	} cases[] = {
		{ 0, 0, -SPULSE_ERROR_INVALID_INPUT, 0 },
		{ 7, 0, -SPULSE_ERROR_INVALID_INPUT, 0 },
		{ 8, 1, 0, 0 },
		{ 12, 1, 0, 0x55667788 },
		{ 16, 1, 0, 0x1122334455667788 },
		{ 24, 0, 0, 0x1122334455667788 },
		{ 24, 1, -SPULSE_ERROR_UNSUPPORTED, 0 },
		{ 23, UINT64_C(1) << 56, 0, 0x1122334455667788 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct newer given = { { cases[i].size, 0x1122334455667788 }, cases[i].later };
		struct known known = { 3, 3 };
		struct spulse_error *err = NULL;

		assert_int_equal(options_read(&known, sizeof(known), &given, "odds", &err),
				 cases[i].r);
		if (cases[i].r == 0) {
			assert_int_equal(known.size, sizeof(known));
			assert_true(known.field == cases[i].field);
		} else {
			assert_non_null(strstr(spulse_error_message(err), "odds"));
		}
		spulse_error_free(err);
	}
}

static void test_prefixes_and_loads(void **state)
{
	const unsigned char bytes[] = { 0xff, 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	assert_true(has_prefix("abc", "ab"));
	assert_true(has_prefix("abc", ""));
	assert_false(has_prefix("a", "ab"));
	assert_int_equal(load_u16(bytes + 1), 0x0201);
	assert_int_equal(load_u32(bytes + 1), 0x04030201);
	assert_true(load_u64(bytes + 1) == 0x0807060504030201u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_fd_within_limit),
		cmocka_unit_test(test_read_file_errors),
		cmocka_unit_test(test_pread_stops_at_the_end),
		cmocka_unit_test(test_short_and_interrupted_reads),
		cmocka_unit_test(test_option_sizes),
		cmocka_unit_test(test_prefixes_and_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

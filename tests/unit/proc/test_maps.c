/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "proc/procfs.h"
#include "random.h"

static struct proc_maps maps;

static int teardown(void **state)
{
	(void)state;
	proc_maps_release(&maps);
	return 0;
}

static void parse(const char *text)
{
	assert_true(proc_maps_parse(&maps, text, strlen(text)));
}

static void test_fields(void **state)
{
	const struct proc_map *m;

	(void)state;
	parse("7f00deadb000-7f00deadc000 r-xp 00012000 fd:1a 4294967297   /usr/lib/x.so\n"
	      "7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n");
	assert_int_equal(maps.maps.len, 2);
	m = &maps.maps.data[0];
	assert_int_equal(m->start, 0x7f00deadb000);
	assert_int_equal(m->end, 0x7f00deadc000);
	assert_int_equal(m->offset, 0x12000);
	assert_int_equal(m->dev_major, 0xfd);
	assert_int_equal(m->dev_minor, 0x1a);
	assert_int_equal(m->inode, 4294967297);
	assert_true(m->exec);
	assert_string_equal(m->path, "/usr/lib/x.so");
	assert_false(maps.maps.data[1].exec);
	assert_string_equal(maps.maps.data[1].path, "[stack]");
}

static void test_paths_are_kept_byte_for_byte(void **state)
{
	(void)state;
	parse("1000-2000 r-xp 0 0:1 5 \t /a b\tc  \n"
	      "2000-3000 r-xp 0 0:1 5 /gone (deleted)\n"
	      "3000-4000 r-xp 0 0:1 5 /\xff\xfe\n"
	      "4000-5000 r-xp 0 0:0 0\n"
	      "5000-6000 r-xp 0 0:0 0 ");
	assert_int_equal(maps.maps.len, 5);
	assert_string_equal(maps.maps.data[0].path, "/a b\tc  ");
	assert_int_equal(maps.maps.data[0].path_len, 8);
	assert_string_equal(maps.maps.data[1].path, "/gone (deleted)");
	assert_string_equal(maps.maps.data[2].path, "/\xff\xfe");
	assert_string_equal(maps.maps.data[3].path, "");
	assert_string_equal(maps.maps.data[4].path, "");
}

static void test_malformed_lines_are_skipped(void **state)
{
	(void)state;
	parse("\n"
	      "nonsense\n"
	      "2000-1000 r-xp 0 0:0 0 /backwards\n"
	      "1000-1000 r-xp 0 0:0 0 /empty\n"
	      "1000-2000 r-x\n"
	      "1000-2000 r-xp 0 0:0 x /inode\n"
	      "1000-2000 r-xp 0 0:0 5x /inode\n"
	      "10000000000000000-2 r-xp 0 0:0 0 /overflow\n"
	      "1000-2000 r-xp 0 100000000:0 0 /device\n"
	      "1000-2000 r-xp 0 0:0 0 /good");
	assert_int_equal(maps.maps.len, 1);
	assert_string_equal(maps.maps.data[0].path, "/good");
}

static void test_kernel_addresses_are_read(void **state)
{
	(void)state;
	parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n");
	assert_int_equal(maps.maps.len, 1);
	assert_int_equal(maps.maps.data[0].start, 0xffffffffff600000);
}

static void test_own_maps_hold_this_function(void **state)
{
	uint64_t here = (uintptr_t)&test_own_maps_hold_this_function;
	bool found = false;

	(void)state;
	assert_int_equal(proc_maps_read(&maps, getpid(), NULL), 0);
	for (size_t i = 0; i < maps.maps.len; i++) {
		const struct proc_map *m = &maps.maps.data[i];

		if (i)
			assert_true(m->start >= maps.maps.data[i - 1].end);
		found |= m->exec && m->start <= here && here < m->end && m->path_len &&
			 m->inode != 0;
	}
	assert_true(found);
}

static void test_missing_process_is_gone(void **state)
{
	struct spulse_error *err = NULL;

	(void)state;
	assert_int_equal(proc_maps_read(&maps, 2147483647, &err), -SPULSE_ERROR_TARGET_GONE);
	assert_int_equal(spulse_error_errno(err), ESRCH);
	spulse_error_free(err);
}

static void test_any_bytes_are_survived(void **state)
{
	static const char alphabet[] = "0123456789abcdef-: rxp/\n\t\0[";
	struct random rng = { .state = 5 };
	char text[300];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t len = random_below(&rng, sizeof(text));

		for (size_t j = 0; j < len; j++)
			text[j] = alphabet[random_below(&rng, sizeof(alphabet) - 1)];
		assert_true(proc_maps_parse(&maps, text, len));
		for (size_t j = 0; j < maps.maps.len; j++)
			assert_true(maps.maps.data[j].start < maps.maps.data[j].end);
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_teardown(test, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_fields),
		CASE(test_paths_are_kept_byte_for_byte),
		CASE(test_malformed_lines_are_skipped),
		CASE(test_kernel_addresses_are_read),
		CASE(test_own_maps_hold_this_function),
		CASE(test_missing_process_is_gone),
		CASE(test_any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

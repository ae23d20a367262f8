/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codemap/codemap.h"

enum { PID = 1999999999 }; /* no process has it */

static char dir[] = "/tmp/spulse-maps-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/perf-%d.map", dir, PID);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static int remove_map(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void put(const char *mode, const char *text)
{
	FILE *f = fopen(path, mode);

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static void assert_name(const struct perfmap *map, uint64_t address, const char *name)
{
	struct perfmap_entry entry;

	if (perfmap_find(map, address, &entry) != (name != NULL))
		fail_msg("%#lx: %s", (unsigned long)address, name ? "missing" : "present");
	if (!name)
		return;
	assert_int_equal(entry.name.len, strlen(name));
	assert_memory_equal(entry.name.bytes, name, entry.name.len);
}

static struct perfmap *parsed(const char *text)
{
	struct perfmap *map;

	assert_int_equal(perfmap_parse(text, strlen(text), &map, NULL), 0);
	return map;
}

static void test_lookup(void **state)
{
	struct perfmap *map = parsed("1000 100 outer\n1040 10 inner\nbad line\n3000 10 far\r\n"
				     "2000 20 first\n2000 10 second\n4000 10 py::f:/a.py:3\n"
				     "5000 10 last without end\r");
	struct perfmap_entry entry;
	(void)state;

	assert_int_equal(perfmap_count(map), 7);
	assert_name(map, 0xfff, NULL);
	assert_name(map, 0x1000, "outer");
	assert_name(map, 0x1040, "inner");
	assert_name(map, 0x1050, "outer");
	assert_name(map, 0x10ff, "outer");
	assert_name(map, 0x1100, NULL);
	assert_name(map, 0x2000, "second");
	assert_name(map, 0x2010, "first");
	assert_name(map, 0x2020, NULL);
	assert_name(map, 0x3001, "far");
	assert_name(map, 0x5000, "last without end\r");
	assert_name(map, UINT64_MAX, NULL);
	assert_true(perfmap_find(map, 0x4001, &entry));
	assert_true(entry.python);
	assert_int_equal(entry.start, 0x4000);
	assert_int_equal(entry.end, 0x4010);
	assert_memory_equal(entry.function.bytes, "f", 1);
	assert_memory_equal(entry.file.bytes, "/a.py", 5);
	assert_int_equal(entry.file.len, 5);
	assert_true(perfmap_find(map, 0x1000, &entry));
	assert_false(entry.python);
	assert_string_equal(perfmap_path(map), "");
	perfmap_free(map);
	map = parsed("");
	assert_int_equal(perfmap_count(map), 0);
	assert_name(map, 0, NULL);
	perfmap_free(map);
}

/* One name that is no UTF-8 does not lose the file. */
static void test_raw_bytes(void **state)
{
	struct perfmap *map = parsed("1000 10 \xff\xfe\n2000 10 fine\n");
	(void)state;

	assert_name(map, 0x1000, "\xff\xfe");
	assert_name(map, 0x2000, "fine");
	perfmap_free(map);
}

static struct perfmap *loaded(void)
{
	const char *reason = "unset";
	struct perfmap *map;

	assert_int_equal(perfmap_load(dir, PID, &map, &reason, NULL), 0);
	if (!map)
		fail_msg("%s", reason);
	assert_null(reason);
	return map;
}

static void assert_unusable(const char *text)
{
	struct perfmap *map = (void *)1;
	const char *reason = NULL;

	assert_int_equal(perfmap_load(dir, PID, &map, &reason, NULL), 0);
	assert_null(map);
	if (!reason || !strstr(reason, text))
		fail_msg("\"%s\", not \"%s\"", reason ? reason : "(none)", text);
}

static void test_load(void **state)
{
	struct perfmap *map;
	(void)state;

	put("w", "1000 10 one\n");
	map = loaded();
	assert_name(map, 0x1000, "one");
	assert_string_equal(perfmap_path(map), path);
	assert_true(perfmap_exists(map));
	unlink(path);
	assert_false(perfmap_exists(map));
	assert_name(map, 0x1000, "one");
	perfmap_free(map);
}

static void test_unusable_files(void **state)
{
	(void)state;
	assert_unusable("no such file");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_unusable("not a regular file");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_unusable("not a regular file");
	rmdir(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_unusable("symbolic link");
	unlink(path);
	put("w", "1000 10 one\n");
	assert_int_equal(truncate(path, (64 << 20) + 1), 0);
	assert_unusable("64 MiB");
}

/* Anybody may plant a file where everybody may create one. */
static void test_foreign_owner(void **state)
{
	struct perfmap *map;
	(void)state;

	if (geteuid() != 0)
		skip();
	unsetenv("SUDO_UID");
	put("w", "1000 10 one\n");
	assert_int_equal(chown(path, 12345, 12345), 0);
	/* In a folder of our own it must have been put by us. */
	perfmap_free(loaded());
	assert_int_equal(chmod(dir, 01777), 0);
	assert_unusable("owned by");
	setenv("SUDO_UID", "12345", 1);
	perfmap_free(loaded());
	setenv("SUDO_UID", "12345x", 1);
	assert_unusable("owned by");
	unsetenv("SUDO_UID");
	put("a", "");
	assert_int_equal(chown(path, 0, 0), 0);
	map = loaded();
	perfmap_free(map);
	assert_int_equal(chmod(dir, 0700), 0);
}

static bool refreshed(struct perfmap *map)
{
	bool changed;

	assert_int_equal(perfmap_refresh(map, &changed, NULL), 0);
	return changed;
}

static void test_growing(void **state)
{
	struct perfmap *map;
	(void)state;

	put("w", "2000 10 two\n");
	map = loaded();
	assert_false(refreshed(map));
	put("a", "1000 10 one\n3000 10 three\n");
	assert_true(refreshed(map));
	assert_int_equal(perfmap_count(map), 3);
	assert_name(map, 0x1000, "one");
	assert_name(map, 0x2000, "two");
	assert_name(map, 0x3000, "three");
	/* A later line of the same start wins. */
	put("a", "2000 8 new two\n");
	assert_true(refreshed(map));
	assert_name(map, 0x2000, "new two");
	assert_name(map, 0x2008, "two");
	/* What is no entry changes nothing. */
	put("a", "garbage\n");
	assert_false(refreshed(map));
	perfmap_free(map);
}

static void test_unterminated_line(void **state)
{
	struct perfmap *map;
	(void)state;

	put("w", "1000 10 one\n2000 10 tw");
	map = loaded();
	assert_name(map, 0x2000, "tw");
	put("a", "o\n");
	assert_true(refreshed(map));
	assert_int_equal(perfmap_count(map), 2);
	assert_name(map, 0x2000, "two");
	put("a", "3000 1");
	assert_false(refreshed(map));
	put("a", "0 three");
	assert_true(refreshed(map));
	assert_name(map, 0x300f, "three");
	put("a", "\n");
	assert_true(refreshed(map));
	assert_int_equal(perfmap_count(map), 3);
	perfmap_free(map);
}

static void test_rewritten(void **state)
{
	struct perfmap *map;
	(void)state;

	put("w", "1000 10 one\n2000 10 two\n");
	map = loaded();
	put("w", "1000 10 ONE\n2000 10 two\n3000 10 three\n");
	assert_true(refreshed(map));
	assert_name(map, 0x1000, "ONE");
	assert_int_equal(perfmap_count(map), 3);
	put("w", "5000 10 five\n");
	assert_true(refreshed(map));
	assert_int_equal(perfmap_count(map), 1);
	assert_name(map, 0x1000, NULL);
	/* Another file of the same content. */
	unlink(path);
	put("w", "5000 10 five\n");
	assert_false(refreshed(map));
	perfmap_free(map);
}

static void test_vanished_and_back(void **state)
{
	struct perfmap *map;
	(void)state;

	put("w", "1000 10 one\n");
	map = loaded();
	unlink(path);
	assert_true(refreshed(map));
	assert_name(map, 0x1000, NULL);
	assert_false(refreshed(map));
	put("w", "1000 10 again\n");
	assert_true(refreshed(map));
	assert_name(map, 0x1000, "again");
	assert_false(refreshed(map));
	perfmap_free(map);
}

/* The default folder; a process like us in all namespaces has no second place. */
static void test_default_folder(void **state)
{
	char own[64];
	struct perfmap *map;
	FILE *f;
	(void)state;

	snprintf(own, sizeof(own), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(own, "w");
	assert_non_null(f);
	fputs("1000 10 mine\n", f);
	fclose(f);
	assert_int_equal(perfmap_load(NULL, getpid(), &map, NULL, NULL), 0);
	unlink(own);
	assert_non_null(map);
	assert_string_equal(perfmap_path(map), own);
	assert_name(map, 0x1000, "mine");
	perfmap_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_raw_bytes),
		cmocka_unit_test_teardown(test_load, remove_map),
		cmocka_unit_test_teardown(test_unusable_files, remove_map),
		cmocka_unit_test_teardown(test_foreign_owner, remove_map),
		cmocka_unit_test_teardown(test_growing, remove_map),
		cmocka_unit_test_teardown(test_unterminated_line, remove_map),
		cmocka_unit_test_teardown(test_rewritten, remove_map),
		cmocka_unit_test_teardown(test_vanished_and_back, remove_map),
		cmocka_unit_test(test_default_folder),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

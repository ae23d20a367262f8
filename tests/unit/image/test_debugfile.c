/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "config.h"
#include "elf_builder.h"
#include "image/image.h"
#if SPULSE_HAVE_LZMA
#include <lzma.h>
#endif

static const uint8_t id[8] = {0xaa, 0xbb, 0xcc, 1, 2, 3, 4, 5};
static const uint8_t other_id[8] = {0xaa, 0xbb, 0xcc, 1, 2, 3, 4, 6};
static char dir[] = "/tmp/spulse-debug-XXXXXX";
static char root[64], second_root[64];

enum {
	WITH_ID = 1, WITH_OTHER_ID = 2, WITH_SYMBOLS = 4, WITH_DWARF = 8, WITH_ADDR = 16,
	WITH_DWO = 32,
};

static const char *in_dir(const char *format, ...)
{
	static char paths[8][160];
	static unsigned int next;
	char *path = paths[next++ % 8];
	va_list args;
	int n = snprintf(path, sizeof(paths[0]), "%s/", dir);

	va_start(args, format);
	vsnprintf(path + n, sizeof(paths[0]) - n, format, args);
	va_end(args);
	return path;
}

static void builder_of(struct elf_builder *b, unsigned int what)
{
	static const struct elf_builder_symbol symbol = {"f", 0x1000, 4, STT_FUNC, STB_GLOBAL, 0, 1};

	elf_builder_init(b, ET_DYN, EM_X86_64);
	elf_builder_section(b, &(struct elf_builder_section){.name = ".text", .data = "\xc3\x90",
							      .len = 2});
	if (what & (WITH_ID | WITH_OTHER_ID))
		elf_builder_build_id(b, what & WITH_ID ? id : other_id, sizeof(id));
	if (what & WITH_SYMBOLS)
		elf_builder_symbols(b, false, &symbol, 1);
	if (what & WITH_DWARF)
		elf_builder_section(b, &(struct elf_builder_section){
			.name = ".debug_info", .data = "x", .len = 1});
	if (what & WITH_ADDR)
		elf_builder_section(b, &(struct elf_builder_section){
			.name = ".debug_addr", .data = "x", .len = 1});
	if (what & WITH_DWO)
		elf_builder_section(b, &(struct elf_builder_section){
			.name = ".debug_info.dwo", .data = "x", .len = 1});
}

static void write_plain(const char *path, unsigned int what)
{
	struct elf_builder b;

	builder_of(&b, what);
	assert_true(elf_builder_write(&b, path));
}

static void make_dirs(const char *path)
{
	char copy[160];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = 0;
		mkdir(copy, 0755);
		*p = '/';
	}
}

/* A clean folder with two roots in it. */
static int set_up(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(second_root, sizeof(second_root), "%s/second", dir);
	mkdir(root, 0755);
	mkdir(second_root, 0755);
	return 0;
}

static int tear_down(void **state)
{
	char command[80];
	(void)state;

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void find(const char *path, struct image_debug *debug)
{
	struct image_roots roots = {0};
	struct image_debug_options options = {.roots = &roots};
	char list[160];
	struct image *image;

	snprintf(list, sizeof(list), ":%s::%s:", root, second_root);
	assert_int_equal(image_roots_add(&roots, list, NULL), 0);
	assert_int_equal(roots.paths.len, 2);
	assert_int_equal(image_open_path(path, &image, NULL), 0);
	assert_int_equal(image_debug_find(image, &options, debug, NULL), 0);
	image_unref(image);
	image_roots_release(&roots);
}

/* The debug file that is found, by path. NULL: none; then the last try of it must say `reason`. */
static void assert_file(const char *image, const char *file, const char *tried, const char *reason)
{
	struct image_debug debug;
	bool seen = !tried;

	find(image, &debug);
	if (file) {
		assert_non_null(debug.file);
		assert_string_equal(image_path(debug.file), file);
	} else {
		assert_null(debug.file);
	}
	for (size_t i = 0; i < debug.tries.len; i++) {
		const struct image_debug_try *t = &debug.tries.data[i];

		if (tried && strcmp(t->path, tried) == 0) {
			seen = true;
			if (!t->reason || !strstr(t->reason, reason))
				fail_msg("%s: %s", t->path, t->reason ? t->reason : "used");
		}
	}
	if (!seen)
		fail_msg("%s was not tried", tried);
	image_debug_release(&debug);
}

static void test_build_id_folders(void **state)
{
	const char *image = in_dir("a.so");
	const char *first = in_dir("root/.build-id/aa/bbcc0102030405.debug");
	const char *second = in_dir("second/.build-id/aa/bbcc0102030405.debug");
	(void)state;

	make_dirs(first);
	make_dirs(second);
	write_plain(image, WITH_ID);
	assert_file(image, NULL, second, "No such file");
	write_plain(second, WITH_ID | WITH_SYMBOLS);
	assert_file(image, second, first, "No such file");
	assert_true(write_test_file(first, "", 0));
	assert_file(image, second, first, "not an ELF file");
	write_plain(first, WITH_OTHER_ID | WITH_SYMBOLS);
	assert_file(image, second, first, "another build ID");
	write_plain(first, WITH_SYMBOLS);
	assert_file(image, second, first, "no build ID");
	write_plain(first, WITH_ID);
	assert_file(image, second, first, "neither symbols");
	write_plain(first, WITH_ID | WITH_DWARF);
	assert_file(image, first, NULL, NULL);
	/* One that has DWARF itself needs none. */
	write_plain(image, WITH_ID | WITH_DWARF);
	assert_file(image, NULL, NULL, NULL);
}

static uint32_t checksum(const char *path)
{
	uint8_t buf[65536];
	FILE *f = fopen(path, "r");
	size_t n = fread(buf, 1, sizeof(buf), f);

	fclose(f);
	return crc32(crc32(0, NULL, 0), buf, n);
}

static void write_linked(const char *path, unsigned int what, const char *name, uint32_t crc)
{
	uint8_t link[64] = {0};
	size_t len = (strlen(name) + 4) & ~(size_t)3;
	struct elf_builder b;

	memcpy(link, name, strlen(name));
	memcpy(link + len, &crc, 4);
	builder_of(&b, what);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".gnu_debuglink", .data = link, .len = len + 4, .align = 4});
	assert_true(elf_builder_write(&b, path));
}

static void test_debug_link(void **state)
{
	const char *image = in_dir("b.so"), *beside = in_dir("b.debug");
	const char *hidden = in_dir(".debug/b.debug"), *below = in_dir("root%s/b.debug", dir);
	(void)state;

	make_dirs(hidden);
	make_dirs(below);
	write_plain(below, WITH_SYMBOLS);
	write_linked(image, 0, "b.debug", checksum(below));
	assert_file(image, below, beside, "No such file");
	assert_int_equal(link(below, hidden), 0);
	assert_file(image, hidden, NULL, NULL);
	/* Another checksum, nothing else to prove it by. */
	write_plain(beside, WITH_SYMBOLS | WITH_DWARF);
	assert_file(image, hidden, beside, "another checksum");
	/* Build IDs prove more than a checksum. */
	write_plain(beside, WITH_SYMBOLS | WITH_ID);
	write_linked(image, WITH_ID, "b.debug", 12345);
	assert_file(image, beside, NULL, NULL);
	write_plain(beside, WITH_SYMBOLS | WITH_OTHER_ID);
	write_linked(image, WITH_ID, "b.debug", checksum(beside));
	assert_file(image, NULL, beside, "another build ID");
}

static void test_neighbours_by_name(void **state)
{
	const char *image = in_dir("c.so"), *dbg = in_dir("c.so.dbg"), *in_root = in_dir("root/c.so");
	(void)state;

	write_plain(image, WITH_ID);
	write_plain(in_root, WITH_ID | WITH_SYMBOLS);
	assert_file(image, in_root, dbg, "No such file");
	write_plain(dbg, WITH_ID | WITH_SYMBOLS);
	assert_file(image, dbg, NULL, NULL);
	/* A name alone proves nothing... */
	unlink(dbg);
	write_plain(in_root, WITH_SYMBOLS);
	assert_file(image, NULL, in_root, "it has no build ID");
	/* ... but the same code does. */
	write_plain(image, 0);
	assert_file(image, in_root, NULL, NULL);
	unlink(in_root);
	assert_int_equal(link(image, in_root), 0);
	assert_file(image, NULL, in_root, "the image itself");
}

static void test_mini_debug_information(void **state)
{
#if SPULSE_HAVE_LZMA
	const char *path = in_dir("mini.so");
	struct elf_builder b;
	struct image_debug debug;
	uint8_t packed[65536], *plain;
	size_t len, packed_len = 0;

	builder_of(&b, WITH_SYMBOLS);
	plain = elf_builder_finish(&b, &len);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, plain, len, packed,
						 &packed_len, sizeof(packed)), LZMA_OK);
	free(plain);
	for (int damaged = 0; damaged < 2; damaged++) {
		packed[packed_len / 2] ^= damaged;
		builder_of(&b, WITH_ID);
		elf_builder_section(&b, &(struct elf_builder_section){
			.name = ".gnu_debugdata", .data = packed, .len = packed_len});
		assert_true(elf_builder_write(&b, path));
		find(path, &debug);
		assert_int_equal(debug.mini != NULL, !damaged);
		if (!damaged)
			assert_non_null(image_section_by_name(debug.mini, ".symtab"));
		else
			assert_non_null(strstr(vec_last(&debug.tries).reason, "damaged"));
		image_debug_release(&debug);
	}
	(void)state;
#else
	(void)state;
	skip();
#endif
}

static void test_shared_debug_file(void **state)
{
	const char *image = in_dir("d.so"), *alt = in_dir("shared.alt");
	const char *by_id = in_dir("root/.build-id/aa/bbcc0102030406.debug");
	uint8_t link[32] = "./shared.alt";
	struct elf_builder b;
	struct image_debug debug;
	(void)state;

	make_dirs(by_id);
	memcpy(link + 13, other_id, sizeof(other_id));
	builder_of(&b, WITH_ID | WITH_DWARF);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".gnu_debugaltlink", .data = link, .len = 13 + sizeof(other_id)});
	assert_true(elf_builder_write(&b, image));
	find(image, &debug);
	assert_null(debug.alt);
	image_debug_release(&debug);

	write_plain(by_id, WITH_OTHER_ID | WITH_DWARF);
	find(image, &debug);
	assert_string_equal(image_path(debug.alt), by_id);
	image_debug_release(&debug);

	write_plain(alt, WITH_OTHER_ID | WITH_DWARF);
	find(image, &debug);
	assert_non_null(debug.alt);
	assert_non_null(strstr(image_path(debug.alt), "/./shared.alt"));
	image_debug_release(&debug);

	write_plain(alt, WITH_ID | WITH_DWARF);
	find(image, &debug);
	assert_string_equal(image_path(debug.alt), by_id);
	image_debug_release(&debug);
}

static void test_package(void **state)
{
	const char *image = in_dir("e"), *package = in_dir("e.dwp");
	struct image_debug debug;
	(void)state;

	write_plain(package, WITH_DWO);
	write_plain(image, WITH_DWARF);
	find(image, &debug);
	assert_null(debug.package);
	image_debug_release(&debug);
	write_plain(image, WITH_DWARF | WITH_ADDR);
	find(image, &debug);
	assert_string_equal(image_path(debug.package), package);
	image_debug_release(&debug);
	write_plain(package, WITH_DWARF);
	find(image, &debug);
	assert_null(debug.package);
	assert_non_null(strstr(vec_last(&debug.tries).reason, "split DWARF"));
	image_debug_release(&debug);
}

/* Files of another host: neighbours of the recorded path below the sysroot. */
static void test_recorded_path_and_sysroot(void **state)
{
	const char *image = in_dir("f.so"), *debug_path = in_dir("sys/usr/bin/f.debug");
	struct image_debug_options options = {.path = "/usr/bin/f (deleted)"};
	struct image_debug debug;
	struct image *opened;
	char sysroot[64];
	(void)state;

	snprintf(sysroot, sizeof(sysroot), "%s/sys", dir);
	options.sysroot = sysroot;
	make_dirs(debug_path);
	write_plain(debug_path, WITH_ID | WITH_SYMBOLS);
	write_linked(image, WITH_ID, "f.debug", 0);
	assert_int_equal(image_open_path(image, &opened, NULL), 0);
	assert_int_equal(image_debug_find(opened, &options, &debug, NULL), 0);
	assert_string_equal(image_path(debug.file), debug_path);
	image_debug_release(&debug);
	image_unref(opened);
}

static void test_default_roots(void **state)
{
	const char *usual = access("/usr/lib/debug", X_OK) == 0 ? "/usr/lib/debug" : "";
	const char *built_in = *SPULSE_DEFAULT_DEBUG_DIRS ? SPULSE_DEFAULT_DEBUG_DIRS : usual;
	const struct {
		const char *set, *roots; /* joined again */
	} cases[] = {
		{NULL, built_in}, {"/one::/two", "/one:/two"}, {"", usual}, {":", ""},
		{":/one:", "/one"}, {"/a\xff", "/a\xff"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image_roots roots = {0};
		struct strbuf joined = {0};

		if (cases[i].set)
			setenv("STACKPULSE_DEBUG_DIRS", cases[i].set, 1);
		else
			unsetenv("STACKPULSE_DEBUG_DIRS");
		assert_int_equal(image_roots_default(&roots, NULL), 0);
		for (size_t k = 0; k < roots.paths.len; k++)
			strbuf_printf(&joined, "%s%s", k ? ":" : "", roots.paths.data[k]);
		assert_string_equal(joined.len ? joined.data : "", cases[i].roots);
		strbuf_release(&joined);
		image_roots_release(&roots);
	}
	unsetenv("STACKPULSE_DEBUG_DIRS");
}

static void test_servers_only_when_named(void **state)
{
	struct image_debug_options options = {.debuginfod = true};
	struct strbuf reason = {0};
	struct image *image = NULL;
	(void)state;

	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(image_debuginfod_fetch(id, sizeof(id), false, &options, &image, &reason),
			 0);
	assert_null(image);
	assert_true(reason.len > 0);
	strbuf_release(&reason);
}

#if SPULSE_HAVE_DEBUGINFOD
static const uint8_t short_id[3] = {1, 2, 3};

/* A server that takes connections and says nothing; its URL is in the environment. */
static int silent_server(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	char url[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", in_dir("cache"), 1);
	return fd;
}

static bool count_calls(void *data, const char *what, long done, long total)
{
	(void)done, (void)total;
	assert_string_equal(what, "0102");
	return ++*(int *)data < 2;
}

/* Neither a timeout nor a caller who lost patience is waited out file by file. */
static void test_silent_server(void **state)
{
	bool silent = false;
	int calls = 0, fd = silent_server();
	struct image_debug_options options = {
		.debuginfod = true, .timeout_s = 1, .servers_silent = &silent};
	struct strbuf reason = {0};
	struct image *image = NULL;
	(void)state;

	options.progress = count_calls;
	options.progress_data = &calls;
	if (image_debuginfod_fetch(short_id, 2, false, &options, &image, &reason) == 0 &&
	    strstr(reason.data, "not installed"))
		skip();
	assert_int_equal(calls, 2);
	assert_false(silent);
	strbuf_reset(&reason);
	options.progress = NULL;
	/* The library remembers that it did not get the first. */
	assert_int_equal(image_debuginfod_fetch(short_id, 3, false, &options, &image, &reason), 0);
	assert_string_equal(reason.data, "no answer in time");
	assert_true(silent);
	strbuf_reset(&reason);
	assert_int_equal(image_debuginfod_fetch(id, sizeof(id), false, &options, &image, &reason),
			 0);
	assert_non_null(strstr(reason.data, "before"));
	assert_null(image);
	strbuf_release(&reason);
	close(fd);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
}
#endif

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_build_id_folders),
		TEST(test_debug_link),
		TEST(test_neighbours_by_name),
		TEST(test_mini_debug_information),
		TEST(test_shared_debug_file),
		TEST(test_package),
		TEST(test_recorded_path_and_sysroot),
		TEST(test_default_roots),
		TEST(test_servers_only_when_named),
#if SPULSE_HAVE_DEBUGINFOD
		TEST(test_silent_server),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

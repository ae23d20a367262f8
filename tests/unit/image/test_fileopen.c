/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "elf_builder.h"
#include "image/image.h"

static char dir[] = "/tmp/spulse-open-XXXXXX";

static const char *in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* A small ELF file whose entry tells it from others. */
static void write_elf(const char *path, uint64_t entry)
{
	struct elf_builder b;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	b.header.e_entry = entry;
	elf_builder_section(&b, &(struct elf_builder_section){.name = ".text", .data = "\xc3",
							       .len = 1});
	assert_true(elf_builder_write(&b, path));
}

static struct image_request request_of(const char *path)
{
	struct image_request request = {.path = path};
	struct stat st;

	if (stat(path, &st) == 0) {
		request.inode = st.st_ino;
		request.dev_major = major(st.st_dev);
		request.dev_minor = minor(st.st_dev);
	}
	return request;
}

static void assert_opens(const struct image_request *request, uint64_t entry)
{
	struct image *image = NULL;
	struct spulse_error *error = NULL;

	if (image_open(NULL, request, &image, &error) != IMAGE_OK)
		fail_msg("%s", spulse_error_message(error));
	assert_int_equal(image_entry(image), entry);
	assert_true(image_fd(image) >= 0);
	assert_true(fcntl(image_fd(image), F_GETFD) & FD_CLOEXEC);
	image_unref(image);
}

static void assert_fails(const struct image_request *request, enum image_failure failure,
			 const char *text)
{
	struct image *image = NULL;
	struct spulse_error *error = NULL;

	assert_int_equal(image_open(NULL, request, &image, &error), failure);
	assert_null(image);
	if (!strstr(spulse_error_message(error), text))
		fail_msg("\"%s\" does not say \"%s\"", spulse_error_message(error), text);
	spulse_error_free(error);
}

static void test_by_path(void **state)
{
	const char *path = in_dir("lib with blanks; and more.so");
	struct image_request request;
	(void)state;

	write_elf(path, 7);
	request = request_of(path);
	assert_opens(&request, 7);
	/* Without an identity a path is believed. */
	assert_opens(&(struct image_request){.path = path}, 7);
	request.inode++;
	assert_fails(&request, IMAGE_UNSUPPORTED, "another file: inode");
	request.inode = 0;
	assert_opens(&request, 7);
	request.dev_minor++;
	assert_fails(&request, IMAGE_UNSUPPORTED, "on device");
}

static void test_missing_at_first(void **state)
{
	const char *path = in_dir("later.so");
	(void)state;

	assert_fails(&(struct image_request){.path = path}, IMAGE_RETRY, "No such file");
	assert_fails(&(struct image_request){.path = path}, IMAGE_RETRY, path);
	write_elf(path, 8);
	assert_opens(&(struct image_request){.path = path}, 8);
}

static void test_what_is_no_file(void **state)
{
	const char *fifo = in_dir("fifo"), *link = in_dir("link"), *text = in_dir("text");
	static const char *const names[] = {"", "[heap]", "[stack]", "[uprobes]", "//anon",
					    "[anon:x]"};
	(void)state;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_fails(&(struct image_request){.path = fifo}, IMAGE_UNSUPPORTED,
		     "not a regular file");
	assert_fails(&(struct image_request){.path = dir}, IMAGE_UNSUPPORTED,
		     "not a regular file");
	write_elf(in_dir("target.so"), 1);
	assert_int_equal(symlink(in_dir("target.so"), link), 0);
	assert_fails(&(struct image_request){.path = link}, IMAGE_UNSUPPORTED, "symbolic link");
	assert_true(write_test_file(text, "just text, but long enough to hold a whole ELF header, "
				    "which it does not", 72));
	assert_fails(&(struct image_request){.path = text}, IMAGE_UNSUPPORTED, "not an ELF file");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_fails(&(struct image_request){.path = names[i]}, IMAGE_UNSUPPORTED,
			     "is no file");
}

/* Maps a file and fills in the mapping's range. */
static void *map_file(const char *path, struct image_request *request)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_true(at != MAP_FAILED);
	close(fd);
	*request = request_of(path);
	request->pid = getpid();
	request->start = (uintptr_t)at;
	request->end = request->start + 4096;
	return at;
}

static bool may_follow_map_files(const struct image_request *request)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)request->start, (unsigned long long)request->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A mapping leads to its file when the path leads nowhere or elsewhere. */
static void test_mapping_beats_path(void **state)
{
	const char *path = in_dir("mapped.so");
	struct image_request request;
	void *at;
	(void)state;

	write_elf(path, 21);
	at = map_file(path, &request);
	unlink(path);
	write_elf(path, 22);
	if (may_follow_map_files(&request)) {
		assert_opens(&request, 21);
		unlink(path);
		assert_opens(&request, 21);
	} else {
		assert_fails(&request, IMAGE_UNSUPPORTED, "another file");
	}
	munmap(at, 4096);
}

static void test_root_and_exe_of_the_process(void **state)
{
	struct image_request request = request_of("/proc/self/exe");
	struct image *image = NULL;
	(void)state;

	/* An emulator shows its own processes. */
	if (getenv("MESON_EXE_WRAPPER"))
		skip();
	request.pid = getpid();
	request.path = "/nowhere/at/all";
	assert_int_equal(image_open(NULL, &request, &image, NULL), IMAGE_OK);
	assert_non_null(strstr(image_path(image), "/exe"));
	image_unref(image);
	/* Only where it is known what file is wanted. */
	request.inode = 0;
	assert_fails(&request, IMAGE_RETRY, "/nowhere/at/all");
}

static void test_error_names_every_candidate(void **state)
{
	struct image_request request = {.pid = getpid(), .start = 0x1000, .end = 0x2000,
					.path = "/nowhere.so", .inode = 5, .dev_major = 9};
	struct spulse_error *error = NULL;
	struct image *image;
	(void)state;

	image_open(NULL, &request, &image, &error);
	assert_non_null(strstr(spulse_error_message(error), "map_files/1000-2000: "));
	assert_non_null(strstr(spulse_error_message(error), "/root/nowhere.so: "));
	assert_non_null(strstr(spulse_error_message(error), "; /nowhere.so: No such"));
	assert_non_null(strstr(spulse_error_message(error), "/exe: another file"));
	spulse_error_free(error);
}

static void test_sysroot(void **state)
{
	struct image_request request = {.path = "/usr/lib/x.so", .inode = 77, .dev_major = 77,
					.sysroot = dir};
	(void)state;

	/* qemu-user knows no openat2(). */
	if (getenv("MESON_EXE_WRAPPER"))
		skip();
	mkdir(in_dir("real"), 0755);
	mkdir(in_dir("real/lib"), 0755);
	write_elf(in_dir("real/lib/x.so"), 33);
	/* An absolute link stays below the root. */
	assert_int_equal(symlink("/real", in_dir("usr")), 0);
	assert_opens(&request, 33);
	request.path = "/usr/lib/y.so";
	assert_fails(&request, IMAGE_RETRY, "No such file");
	/* Never this host's own file. */
	request.path = "/proc/self/exe";
	assert_fails(&request, IMAGE_RETRY, dir);
}

static int clear_dir(void **state)
{
	char command[64];
	(void)state;

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_path),
		cmocka_unit_test(test_missing_at_first),
		cmocka_unit_test(test_what_is_no_file),
		cmocka_unit_test(test_mapping_beats_path),
		cmocka_unit_test(test_root_and_exe_of_the_process),
		cmocka_unit_test(test_error_names_every_candidate),
		cmocka_unit_test(test_sysroot),
	};

	return cmocka_run_group_tests(tests, make_dir, clear_dir);
}

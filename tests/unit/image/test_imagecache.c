/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_builder.h"
#include "image/image.h"

enum { FILES = 6, BIG = 1 << 20 };

static char dir[] = "/tmp/spulse-cache-XXXXXX";
static char paths[FILES][64];

static int make_files(void **state)
{
	uint8_t *big = calloc(1, BIG);
	(void)state;

	if (!mkdtemp(dir))
		return -1;
	for (int i = 0; i < FILES; i++) {
		struct elf_builder b;

		snprintf(paths[i], sizeof(paths[i]), "%s/%d.so", dir, i);
		elf_builder_init(&b, ET_DYN, EM_X86_64);
		elf_builder_section(&b, &(struct elf_builder_section){
			.name = ".text", .data = big, .len = BIG});
		if (!elf_builder_write(&b, paths[i]))
			return -1;
	}
	free(big);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++)
		unlink(paths[i]);
	return rmdir(dir);
}

/* Token of a file's image. */
static uint64_t token_of(struct image_cache *cache, int file)
{
	struct image *image;
	uint64_t token;

	assert_int_equal(image_open(cache, &(struct image_request){.path = paths[file]}, &image,
				    NULL), IMAGE_OK);
	token = image_token(image);
	image_unref(image);
	return token;
}

static void read_text(struct image_cache *cache, int file)
{
	struct image *image;
	const uint8_t *bytes;
	size_t len;

	assert_int_equal(image_open(cache, &(struct image_request){.path = paths[file]}, &image,
				    NULL), IMAGE_OK);
	assert_int_equal(image_section_bytes(image, image_section_by_name(image, ".text"), &bytes,
					     &len, NULL), 0);
	image_unref(image);
}

static struct image_cache *new_cache(size_t images, size_t bytes)
{
	struct image_cache *cache;

	assert_int_equal(image_cache_new(images, bytes, &cache, NULL), 0);
	return cache;
}

static void test_shares_by_identity(void **state)
{
	struct image_cache *cache = new_cache(4, 8 << 20);
	char other[80];
	uint64_t token;
	(void)state;

	token = token_of(cache, 0);
	assert_int_equal(token_of(cache, 0), token);
	assert_int_not_equal(token_of(cache, 1), token);
	/* The same file under another name. (A link changes ctime, so the first look is anew.) */
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(link(paths[0], other), 0);
	token = token_of(cache, 0);
	{
		struct image *image;

		assert_int_equal(image_open(cache, &(struct image_request){.path = other}, &image,
					    NULL), IMAGE_OK);
		assert_int_equal(image_token(image), token);
		image_unref(image);
	}
	unlink(other);
	image_cache_unref(cache);
}

/* Same size and same mtime, but written to. */
static void test_rewritten_file_is_another(void **state)
{
	struct image_cache *cache = new_cache(4, 8 << 20);
	uint64_t token = token_of(cache, 2);
	struct stat st;
	int fd = open(paths[2], O_RDWR | O_CLOEXEC);
	(void)state;

	assert_int_equal(fstat(fd, &st), 0);
	usleep(20000);
	assert_int_equal(pwrite(fd, "\x90", 1, 5000), 1);
	assert_int_equal(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
	close(fd);
	assert_int_not_equal(token_of(cache, 2), token);
	image_cache_unref(cache);
}

static void test_bounded_by_count(void **state)
{
	struct image_cache *cache = new_cache(3, 8 << 20);
	uint64_t tokens[FILES];
	(void)state;

	for (int i = 0; i < 3; i++)
		tokens[i] = token_of(cache, i);
	assert_int_equal(token_of(cache, 0), tokens[0]);
	token_of(cache, 3);
	/* 0 was used recently, 1 was not. */
	assert_int_equal(token_of(cache, 0), tokens[0]);
	assert_int_equal(token_of(cache, 2), tokens[2]);
	assert_int_not_equal(token_of(cache, 1), tokens[1]);
	image_cache_unref(cache);
}

static void test_bounded_by_bytes(void **state)
{
	struct image_cache *cache = new_cache(100, 3 * BIG);
	uint64_t first = token_of(cache, 0), last;
	(void)state;

	for (int i = 0; i < 4; i++)
		read_text(cache, i);
	last = token_of(cache, 3);
	assert_int_not_equal(token_of(cache, 0), first);
	assert_int_equal(token_of(cache, 3), last);
	image_cache_unref(cache);
}

static void test_oversize_is_not_kept(void **state)
{
	struct image_cache *cache = new_cache(100, BIG / 2);
	uint64_t small = token_of(cache, 0), big = token_of(cache, 1);
	(void)state;

	assert_int_equal(token_of(cache, 1), big);
	read_text(cache, 1);
	/* Its growth is noticed at the next look. */
	token_of(cache, 1);
	assert_int_not_equal(token_of(cache, 1), big);
	/* It did not drive the others out. */
	assert_int_equal(token_of(cache, 0), small);
	image_cache_unref(cache);
}

static void test_images_outlive_the_cache(void **state)
{
	struct image_cache *cache = new_cache(1, 8 << 20);
	struct image *image;
	const uint8_t *bytes;
	size_t len;
	(void)state;

	assert_int_equal(image_open(cache, &(struct image_request){.path = paths[0]}, &image,
				    NULL), IMAGE_OK);
	token_of(cache, 1);
	image_cache_unref(image_cache_ref(cache));
	image_cache_unref(cache);
	assert_int_equal(image_section_bytes(image, image_section_by_name(image, ".text"), &bytes,
					     &len, NULL), 0);
	assert_int_equal(len, BIG);
	image_unref(image);
}

static void *open_many(void *data)
{
	struct image_cache *cache = data;

	for (int i = 0; i < 50; i++)
		read_text(cache, i % FILES);
	return NULL;
}

static void test_two_threads(void **state)
{
	struct image_cache *cache = new_cache(3, 8 << 20);
	pthread_t thread;
	(void)state;

	assert_int_equal(pthread_create(&thread, NULL, open_many, cache), 0);
	open_many(cache);
	pthread_join(thread, NULL);
	image_cache_unref(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_by_identity),
		cmocka_unit_test(test_rewritten_file_is_another),
		cmocka_unit_test(test_bounded_by_count),
		cmocka_unit_test(test_bounded_by_bytes),
		cmocka_unit_test(test_oversize_is_not_kept),
		cmocka_unit_test(test_images_outlive_the_cache),
		cmocka_unit_test(test_two_threads),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}

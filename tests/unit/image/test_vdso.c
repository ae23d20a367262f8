/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/auxv.h>
#include <unistd.h>

#include "image/image.h"

static bool find_clock(void *data, const struct image_symbol *symbol)
{
	if (strstr(symbol->name, "clock_gettime"))
		*(bool *)data = true;
	return true;
}

static void test_own_vdso(void **state)
{
	struct image_request request = {.pid = getppid(), .path = "[vdso]"};
	uint64_t start = getauxval(AT_SYSINFO_EHDR), bias, size;
	struct image_cache *cache;
	struct image *image, *again;
	bool found = false;
	(void)state;

	if (!start)
		skip();
	assert_int_equal(image_cache_new(4, 1 << 20, &cache, NULL), 0);
	assert_int_equal(image_open(cache, &request, &image, NULL), IMAGE_OK);
	assert_int_equal(image_open(cache, &request, &again, NULL), IMAGE_OK);
	assert_ptr_equal(image, again);
	image_unref(again);
	assert_true(image_is_vdso(image));
	assert_int_equal(image_fd(image), -1);
	assert_int_equal(image_symbols(image, true, find_clock, &found, NULL), 0);
	assert_true(found);

	size = image_size(image);
	assert_true(image_bias(image, start, start + size, 0, &bias));
	assert_int_equal(bias + image_first_vaddr(image), start);
	assert_true(image_equals_memory(image, getpid(), start, start + size));
	assert_false(image_equals_memory(image, getpid(), start, start + size - 4096));
	assert_false(image_equals_memory(image, getpid(), 0, size));
	image_unref(image);
	image_cache_unref(cache);
}

static void test_without_a_cache(void **state)
{
	struct image *image;
	(void)state;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(image_open(NULL, &(struct image_request){.path = "[vdso]"}, &image, NULL),
			 IMAGE_OK);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_vdso),
		cmocka_unit_test(test_without_a_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/image.h"

static struct image *any_image(void)
{
	struct image *image = NULL;

	assert_int_equal(image_open_path("/proc/self/exe", &image, NULL), 0);
	return image;
}

static void finds_what_was_added(void **state)
{
	struct image_handover *handover = image_handover_new();
	struct image *image = any_image(), *found;

	(void)state;
	image_handover_add(handover, 7, image);
	image_handover_add(handover, 8, image);
	found = image_handover_get(handover, 7);
	assert_ptr_equal(found, image);
	image_unref(found);
	assert_null(image_handover_get(handover, 9));
	image_handover_remove(handover, 7);
	assert_null(image_handover_get(handover, 7));
	found = image_handover_get(handover, 8);
	assert_ptr_equal(found, image);
	image_unref(found);
	image_unref(image);
	image_handover_unref(handover);
}

static void survives_its_maker(void **state)
{
	struct image_handover *handover = image_handover_new(), *reader;
	struct image *image = any_image(), *found;

	(void)state;
	reader = image_handover_ref(handover);
	image_handover_add(handover, 1, image);
	image_unref(image);
	image_handover_unref(handover);
	found = image_handover_get(reader, 1);
	assert_non_null(found);
	assert_true(image_size(found) > 0);
	image_unref(found);
	image_handover_unref(reader);
}

static void gives_up_the_oldest_modules(void **state)
{
	struct image_handover *handover = image_handover_new();
	struct image *image = any_image(), *found;

	(void)state;
	for (uint32_t id = 0; id < 20000; id++)
		image_handover_add(handover, id, image);
	assert_null(image_handover_get(handover, 0));
	assert_null(image_handover_get(handover, 20000 - 4097));
	for (uint32_t id = 20000 - 4096; id < 20000; id++) {
		found = image_handover_get(handover, id);
		assert_ptr_equal(found, image);
		image_unref(found);
	}
	image_unref(image);
	image_handover_unref(handover);
}

static void gives_up_the_oldest_images(void **state)
{
	struct image_handover *handover = image_handover_new();
	struct image *images[300], *found;

	(void)state;
	for (uint32_t id = 0; id < 300; id++) {
		images[id] = any_image();
		image_handover_add(handover, id, images[id]);
	}
	assert_null(image_handover_get(handover, 43));
	found = image_handover_get(handover, 44);
	assert_ptr_equal(found, images[44]);
	image_unref(found);
	for (uint32_t id = 0; id < 300; id++)
		image_unref(images[id]);
	image_handover_unref(handover);
}

static void removal_does_not_pile_up(void **state)
{
	struct image_handover *handover = image_handover_new();
	struct image *image = any_image(), *found;

	(void)state;
	image_handover_add(handover, 1u << 31, image);
	for (uint32_t id = 0; id < 5000; id++) {
		image_handover_add(handover, id, image);
		image_handover_remove(handover, id);
	}
	found = image_handover_get(handover, 1u << 31);
	assert_ptr_equal(found, image);
	image_unref(found);
	image_unref(image);
	image_handover_unref(handover);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_added),
		cmocka_unit_test(survives_its_maker),
		cmocka_unit_test(gives_up_the_oldest_modules),
		cmocka_unit_test(gives_up_the_oldest_images),
		cmocka_unit_test(removal_does_not_pile_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

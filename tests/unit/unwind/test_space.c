/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Address spaces: mappings that overlap, forks, and when what was known of a space is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "random.h"
#include "unwind/space.h"

static struct unw_space *new_space(void)
{
	struct unw_space *space = NULL;

	assert_int_equal(unw_space_new(&space, NULL), 0);
	return space;
}

static void map(struct unw_space *space, uint64_t start, uint64_t end, uint32_t module)
{
	struct unw_map m = {.start = start, .end = end, .module = module};

	assert_int_equal(unw_space_map(space, &m, NULL), 0);
}

static uint32_t module_at(const struct unw_space *space, uint64_t address)
{
	const struct unw_map *m = unw_space_find(space, address);

	return m ? m->module : 0;
}

static void test_lookup(void **state)
{
	struct unw_space *space = new_space();
	size_t count;

	(void)state;
	assert_null(unw_space_find(space, 0));
	assert_null(unw_space_maps(space, &count));
	assert_int_equal(count, 0);
	map(space, 0x3000, 0x4000, 3);
	map(space, 0x1000, 0x2000, 1);
	map(space, 0x2000, 0x3000, 2);
	map(space, 0x5000, 0x5000, 9); /* empty */
	assert_int_equal(module_at(space, 0xfff), 0);
	assert_int_equal(module_at(space, 0x1000), 1);
	assert_int_equal(module_at(space, 0x1fff), 1);
	assert_int_equal(module_at(space, 0x2000), 2);
	assert_int_equal(module_at(space, 0x3fff), 3);
	assert_int_equal(module_at(space, 0x4000), 0);
	assert_int_equal(module_at(space, UINT64_MAX), 0);
	assert_non_null(unw_space_maps(space, &count));
	assert_int_equal(count, 3);
	unw_space_free(space);
	unw_space_free(NULL);
}

/* What retires addresses gives the space a new name; what only adds does not. */
static void test_names_of_states(void **state)
{
	struct unw_space *space = new_space();
	uint32_t tag = space->tag;

	(void)state;
	map(space, 0x1000, 0x2000, 1);
	map(space, 0x5000, 0x6000, 2);
	assert_int_equal(space->tag, tag);
	unw_space_unmap(space, 0x3000, 0x4000); /* nothing there */
	assert_int_equal(space->tag, tag);
	map(space, 0x5800, 0x7000, 3);
	assert_int_not_equal(space->tag, tag);
	tag = space->tag;
	unw_space_unmap(space, 0x1800, 0x1900);
	assert_int_not_equal(space->tag, tag);
	tag = space->tag;
	unw_space_clear(space);
	assert_int_not_equal(space->tag, tag);
	unw_space_free(space);
}

static void test_overlaps(void **state)
{
	struct unw_space *space = new_space();
	size_t count;

	(void)state;
	map(space, 0x1000, 0x9000, 1);
	map(space, 0x3000, 0x5000, 2); /* in its middle */
	assert_int_equal(module_at(space, 0x2fff), 1);
	assert_int_equal(module_at(space, 0x3000), 2);
	assert_int_equal(module_at(space, 0x5000), 1);
	unw_space_maps(space, &count);
	assert_int_equal(count, 3);
	map(space, 0x2000, 0x6000, 3); /* over the ends of two */
	assert_int_equal(module_at(space, 0x1fff), 1);
	assert_int_equal(module_at(space, 0x3000), 3);
	assert_int_equal(module_at(space, 0x6000), 1);
	map(space, 0, UINT64_MAX, 4); /* over everything */
	unw_space_maps(space, &count);
	assert_int_equal(count, 1);
	unw_space_unmap(space, 0x8000, 0x9000);
	assert_int_equal(module_at(space, 0x7fff), 4);
	assert_int_equal(module_at(space, 0x8000), 0);
	assert_int_equal(module_at(space, 0x9000), 4);
	unw_space_free(space);
}

static void test_forks(void **state)
{
	struct unw_space *parent = new_space(), *child, *grandchild;

	(void)state;
	map(parent, 0x1000, 0x2000, 1);
	child = unw_space_fork(parent);
	grandchild = unw_space_fork(child);
	assert_non_null(grandchild);
	assert_true(child->tag != parent->tag && grandchild->tag != child->tag);
	assert_ptr_equal(child->table, parent->table); /* until somebody changes it */
	map(parent, 0x3000, 0x4000, 2);
	assert_int_equal(module_at(child, 0x3000), 0);
	unw_space_unmap(child, 0x1000, 0x2000);
	assert_int_equal(module_at(child, 0x1000), 0);
	assert_int_equal(module_at(grandchild, 0x1000), 1);
	assert_int_equal(module_at(parent, 0x1000), 1);
	unw_space_free(parent);
	assert_int_equal(module_at(grandchild, 0x1000), 1);
	unw_space_free(child);
	unw_space_free(grandchild);
	/* An empty one. */
	parent = new_space();
	child = unw_space_fork(parent);
	map(child, 0x1000, 0x2000, 1);
	assert_int_equal(module_at(parent, 0x1000), 0);
	unw_space_free(child);
	unw_space_free(parent);
}

/* Against an array of pages. */
static void test_many_changes(void **state)
{
	struct random rng = {.state = 7};
	struct unw_space *space = new_space();
	uint32_t pages[64] = {0};

	(void)state;
	for (uint32_t n = 1; n < 20000; n++) {
		uint64_t start = random_below(&rng, 64),
			 end = start + random_below(&rng, 65 - start);
		bool add = random_below(&rng, 3);

		if (add)
			map(space, start << 12, end << 12, n);
		else
			unw_space_unmap(space, start << 12, end << 12);
		for (uint64_t i = start; i < end; i++)
			pages[i] = add ? n : 0;
		for (uint64_t i = 0; i < 64; i++)
			assert_int_equal(module_at(space, (i << 12) + 0x123), pages[i]);
	}
	unw_space_free(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),	     cmocka_unit_test(test_names_of_states),
		cmocka_unit_test(test_overlaps),     cmocka_unit_test(test_forks),
		cmocka_unit_test(test_many_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calltree.h"
#include "cuts.h"
#include "spoolmaker.h"

static void generated_code(void **state)
{
	(void)state;
	assert_true(cuts_is_generated(NULL));
	assert_true(cuts_is_generated("//anon"));
	assert_true(cuts_is_generated("[heap]"));
	assert_true(cuts_is_generated("/memfd:jit (deleted)"));
	assert_false(cuts_is_generated("/usr/lib/libc.so.6"));
	assert_false(cuts_is_generated("[vdso]"));
}

/* 3 samples cut in a file's code, 2 in code of no file, 4 complete ones. */
static void counts(void **state)
{
	const uint64_t in_file[] = {0x2010, 0x1010, 0}, whole[] = {0x2020, 0x1010};
	const struct calltree_options options = {.symopts.no_native = true};
	struct spoolmaker maker;
	struct calltree tree = {0};
	struct cuts cuts;
	uint32_t program, anonymous;

	(void)state;
	spoolmaker_start(&maker);
	program = spoolmaker_module(&maker, 10, 0x1000, "/nonexistent/program");
	anonymous = spoolmaker_module(&maker, 10, 0x2000, "//anon");
	for (uint64_t i = 0; i < 3; i++)
		spoolmaker_sample(&maker, 100 + i, 10, 10, program, in_file + 1, 2);
	for (uint64_t i = 0; i < 2; i++) {
		const uint64_t jit[] = {0x2010, 0};

		spoolmaker_sample(&maker, 200 + i, 10, 10, anonymous, jit, 2);
	}
	for (uint64_t i = 0; i < 4; i++)
		spoolmaker_sample(&maker, 300 + i, 10, 10, anonymous, whole, 1);
	spoolmaker_finish(&maker);
	assert_int_equal(cuts_count(&cuts, maker.path, NULL), 0);
	assert_int_equal(cuts.truncated, 5);
	assert_int_equal(cuts.generated, 2);
	/* What names are found later says the same. */
	assert_int_equal(calltree_read(&tree, maker.path, &options, NULL), 0);
	assert_int_equal(tree.truncated_samples, 5);
	assert_int_equal(tree.generated_cuts, 2);
	calltree_release(&tree);
	unlink(maker.path);
	assert_true(cuts_count(&cuts, maker.path, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_code),
		cmocka_unit_test(counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Functions of this very program as its unwind tables know them, against its symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "symbolize/native/fdestarts.h"

struct tally {
	const struct fde_starts *starts;
	struct image *image;
	size_t functions, right, padded, lent;
};

static bool check_symbol(void *data, const struct image_symbol *symbol)
{
	struct tally *tally = data;
	uint64_t start, end, behind = symbol->value + symbol->size;

	if (symbol->type != STT_FUNC || symbol->size < 2 || symbol->shndx == SHN_UNDEF)
		return true;
	tally->functions++;
	if (fde_starts_find(tally->starts, tally->image, symbol->value + symbol->size / 2, &start,
			    &end) &&
	    start == symbol->value && end == behind)
		tally->right++;
	/* What fills the gap before the next function is no part of either. */
	if (behind % 16 && fde_starts_after(tally->starts, behind - 1) > behind) {
		tally->padded++;
		tally->lent += fde_starts_find(tally->starts, tally->image, behind, &start, &end);
	}
	return true;
}

static void functions_of_this_program(void **state)
{
	struct fde_starts starts;
	struct tally tally = { .starts = &starts };

	(void)state;
	assert_int_equal(image_open_path("/proc/self/exe", &tally.image, NULL), 0);
	fde_starts_read(&starts, tally.image);
	assert_true(starts.len > 10);
	assert_int_equal(image_symbols(tally.image, false, check_symbol, &tally, NULL), 0);
	/* Assembly may have no entry, or one for several labels. */
	assert_true(tally.functions > 100);
	assert_true(tally.right * 100 >= tally.functions * 95);
	assert_true(tally.lent * 100 <= tally.padded);
	fde_starts_release(&starts);
	image_unref(tally.image);
}

static void outside_of_all(void **state)
{
	struct image *image = NULL;
	struct fde_starts starts;
	uint64_t start, end;

	(void)state;
	assert_int_equal(image_open_path("/proc/self/exe", &image, NULL), 0);
	fde_starts_read(&starts, image);
	assert_false(fde_starts_find(&starts, image, 0, &start, &end));
	assert_false(fde_starts_find(&starts, image, UINT64_MAX, &start, &end));
	assert_int_equal(fde_starts_after(&starts, UINT64_MAX), UINT64_MAX);
	/* An entry that lies nowhere. */
	for (size_t i = 0; i < starts.len; i++)
		starts.data[i].entry = INT32_MIN;
	assert_false(fde_starts_find(&starts, image, starts.base + starts.data[0].start, &start,
				     &end));
	fde_starts_release(&starts);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_this_program),
		cmocka_unit_test(outside_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

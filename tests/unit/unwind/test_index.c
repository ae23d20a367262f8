/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Entries by address: through the header's table, and without it when it is missing or lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "unwind/index.h"
#include "unwind_world.h"

enum { EH = 0x20000, HDR = 0x40000, FIRST = 0x1000, STEP = 0x100, SIZE = 0x80, COUNT = 100 };

struct tables {
	struct cfi_builder eh;
	uint8_t hdr[12 + 8 * COUNT];
	size_t hdr_len;
	struct cfi_index index;
};

/* COUNT functions of SIZE bytes, STEP apart; written in an order of their own. */
static struct tables *tables_new(void)
{
	struct tables *t = calloc(1, sizeof(*t));
	struct cfi_builder_cie cie = {.ra = 16};
	uint64_t at;

	assert_non_null(t);
	t->eh.addr = EH;
	at = cfi_build_cie(&t->eh, &cie);
	for (uint64_t i = 0; i < COUNT; i++)
		cfi_build_fde(&t->eh, at, FIRST + STEP * (i * 37 % COUNT), SIZE, NO_CFI);
	cfi_build_terminator(&t->eh);
	t->hdr_len = cfi_build_hdr(&t->eh, HDR, t->hdr);
	return t;
}

static void start(struct tables *t, bool with_hdr)
{
	struct cfi_section section = {.bytes = t->eh.bytes, .len = t->eh.len, .addr = EH};

	index_release(&t->index);
	index_init(&t->index, &section, with_hdr ? t->hdr : NULL, t->hdr_len, HDR);
}

static void tables_free(struct tables *t)
{
	index_release(&t->index);
	free(t);
}

static void expect_all(struct tables *t, enum index_result below)
{
	struct cfi_fde fde;

	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t first = FIRST + STEP * i;

		assert_int_equal(index_find(&t->index, first, &fde), INDEX_FOUND);
		assert_true(fde.start == first && fde.end == first + SIZE);
		assert_int_equal(index_find(&t->index, first + SIZE - 1, &fde), INDEX_FOUND);
		assert_true(fde.start == first);
		assert_int_equal(index_find(&t->index, first + SIZE, &fde), INDEX_GAP);
	}
	assert_int_equal(index_find(&t->index, FIRST - 1, &fde), below);
	assert_int_equal(index_find(&t->index, 0, &fde), below);
	assert_int_equal(index_find(&t->index, FIRST + 10 * STEP * COUNT, &fde), INDEX_GAP);
}

static void test_with_and_without_header(void **state)
{
	struct tables *t = tables_new();

	(void)state;
	start(t, true);
	expect_all(t, INDEX_BELOW_TABLE);
	assert_false(t->index.has_own); /* the table sufficed */
	start(t, false);
	expect_all(t, INDEX_ABSENT);
	assert_true(t->index.has_own);
	tables_free(t);
}

/* Whatever is wrong with the header: the section itself has the answer. */
static void test_damaged_headers(void **state)
{
	(void)state;
	for (int kind = 0; kind < 10; kind++) {
		struct tables *t = tables_new();
		uint32_t number = kind == 4 ? 0 : kind == 5 ? COUNT + 1 : UINT32_MAX;
		uint8_t row[8];

		switch (kind) {
		case 0: /* an unknown version */
			t->hdr[0] = 2;
			break;
		case 1: /* absolute pointers in the table */
			t->hdr[3] = 0x00;
			break;
		case 2: /* no table */
			t->hdr[3] = 0xff;
			break;
		case 3:
			t->hdr_len = 11;
			break;
		case 4: /* counts: none, one too many, far too many */
		case 5:
		case 6:
			memcpy(t->hdr + 8, &number, 4);
			break;
		case 7: /* out of order */
			memcpy(row, t->hdr + 12 + 8 * 20, 8);
			memcpy(t->hdr + 12 + 8 * 20, t->hdr + 12 + 8 * 70, 8);
			memcpy(t->hdr + 12 + 8 * 70, row, 8);
			break;
		case 8: /* entries elsewhere */
			for (size_t i = 0; i < COUNT; i++)
				memset(t->hdr + 12 + 8 * i + 4, 0x11, 4);
			break;
		default: /* entries of other functions */
			for (size_t i = 0; i + 1 < COUNT; i++)
				memcpy(t->hdr + 12 + 8 * i + 4, t->hdr + 12 + 8 * i + 12, 4);
		}
		start(t, true);
		/* One in order decides, whichever is asked for first. */
		for (uint64_t i = 0; i < COUNT; i++) {
			struct cfi_fde fde;
			uint64_t first = FIRST + STEP * i;

			assert_int_equal(index_find(&t->index, first, &fde), INDEX_FOUND);
			assert_true(fde.start == first && fde.end == first + SIZE);
		}
		assert_true(t->index.has_own);
		tables_free(t);
	}
}

/* Zero-length entries, and those of code that the linker threw away. */
static void test_dead_entries(void **state)
{
	struct tables *t = tables_new();
	struct cfi_fde fde;

	(void)state;
	t->eh.len -= 4;
	cfi_build_fde(&t->eh, 0, FIRST + STEP, 0, NO_CFI);
	cfi_build_fde(&t->eh, 0, 0, 0x1100, NO_CFI);
	start(t, false);
	t->index.code_start = FIRST;
	t->index.code_end = FIRST + STEP * COUNT;
	assert_int_equal(index_find(&t->index, FIRST + STEP, &fde), INDEX_FOUND);
	assert_true(fde.end == FIRST + STEP + SIZE);
	assert_int_equal(index_find(&t->index, 0x10, &fde), INDEX_ABSENT);
	tables_free(t);
}

/* One bad entry costs its function; three in a row cost the rest. */
static void test_bad_entries(void **state)
{
	struct cfi_fde fde;

	(void)state;
	for (unsigned int bad = 1; bad <= 4; bad++) {
		struct tables *t = tables_new();
		uint64_t last = FIRST + STEP * (99 * 37 % COUNT);
		uint64_t last_at = t->eh.fdes[COUNT - 1].offset;
		uint32_t number = 0x7777;

		for (unsigned int i = 0; i < bad; i++)
			memcpy(t->eh.bytes + t->eh.fdes[50 + i].offset + 4, &number, 4);
		start(t, false);
		assert_int_equal(index_find(&t->index, last, &fde),
				 bad < 3 ? INDEX_FOUND : INDEX_GAP);
		assert_int_not_equal(index_find(&t->index, t->eh.fdes[50].start, &fde),
				     INDEX_FOUND);
		assert_int_equal(index_find(&t->index, t->eh.fdes[49].start, &fde), INDEX_FOUND);
		assert_true(last_at > 0);
		tables_free(t);
	}
}

/* A length that leads nowhere ends the section there. */
static void test_broken_length(void **state)
{
	static const uint32_t lengths[] = {UINT32_MAX - 1, 0x7fffffff, 100000};
	struct cfi_fde fde;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct tables *t = tables_new();

		memcpy(t->eh.bytes + t->eh.fdes[50].offset, &lengths[i], 4);
		start(t, false);
		assert_int_equal(index_find(&t->index, t->eh.fdes[49].start, &fde), INDEX_FOUND);
		assert_int_not_equal(index_find(&t->index, t->eh.fdes[51].start, &fde),
				     INDEX_FOUND);
		tables_free(t);
	}
}

/* Terminators stand between what several linkers' inputs gave. */
static void test_terminators_inside(void **state)
{
	struct tables *t = tables_new();
	struct cfi_builder_cie cie = {.ra = 16};
	struct cfi_fde fde;

	(void)state;
	cfi_build_terminator(&t->eh);
	cfi_build_fde(&t->eh, cfi_build_cie(&t->eh, &cie), 0x90000, SIZE, NO_CFI);
	start(t, false);
	assert_int_equal(index_find(&t->index, 0x90000, &fde), INDEX_FOUND);
	tables_free(t);
}

static void test_empty_section(void **state)
{
	struct tables *t = tables_new();
	struct cfi_fde fde;

	(void)state;
	t->eh.len = 0;
	start(t, false);
	assert_int_equal(index_find(&t->index, FIRST, &fde), INDEX_ABSENT);
	start(t, true); /* and a table that points into nothing */
	assert_int_equal(index_find(&t->index, FIRST, &fde), INDEX_ABSENT);
	tables_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_and_without_header),
		cmocka_unit_test(test_damaged_headers),
		cmocka_unit_test(test_dead_entries),
		cmocka_unit_test(test_bad_entries),
		cmocka_unit_test(test_broken_length),
		cmocka_unit_test(test_terminators_inside),
		cmocka_unit_test(test_empty_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

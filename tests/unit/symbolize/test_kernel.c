/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/kernel.h"
#include "symkit.h"

static struct kernel_table *parse(const char *text)
{
	struct kernel_table *table = kernel_table_parse(text, strlen(text));

	assert_non_null(table);
	return table;
}

static struct kernel_table *scan(const char *text, const uint64_t *addresses, size_t count)
{
	struct kernel_table *table = NULL;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(kernel_table_scan(fd, addresses, count, &table), 0);
	close(fd);
	return table;
}

static void assert_hit(const struct kernel_table *table, uint64_t address, const char *name,
		       const char *module, uint64_t offset)
{
	struct kernel_hit hit;

	assert_true(kernel_table_find(table, address, &hit));
	assert_string_equal(hit.name, name);
	assert_string_equal(hit.module, module);
	assert_int_equal(hit.offset, offset);
}

static void assert_miss(const struct kernel_table *table, uint64_t address)
{
	struct kernel_hit hit;

	assert_false(kernel_table_find(table, address, &hit));
}

static void hidden_addresses_give_no_symbols(void **state)
{
	struct kernel_table *table = parse("0000000000000000 T _text\n"
					   "0000000000000000 T startup_64\n"
					   "ffffffff81000000 T late\n");

	(void)state;
	assert_int_equal(table->count, 0);
	assert_miss(table, 0xffffffff81000000);
	kernel_table_unref(table);
}

static void lines_that_do_not_parse_are_skipped(void **state)
{
	struct kernel_table *table = parse("\n"
					   "garbage\n"
					   "11112222333344445 T too_long\n"
					   "1000 T _text\n"
					   "1100 T\n"
					   "1100 \n"
					   "12G0 T bad_digit\n"
					   "1200 T good\r\n"
					   "1300 t last");

	(void)state;
	assert_hit(table, 0x1150, "_text", "[kernel]", 0x150);
	assert_hit(table, 0x1234, "good", "[kernel]", 0x34);
	assert_hit(table, 0x1300, "last", "[kernel]", 0);
	kernel_table_unref(table);
}

static void sixteen_digits_are_digits(void **state)
{
	struct kernel_table *table = parse("ffffffff00001000 T _text\n"
					   "FFFFFFFF00002000 T capitals\n"
					   "fffffFff0000aBc0 T mixed\n"
					   "ffffffff0000b00g T beyond_f\n"
					   "ffffffff0000b00j T further\n"
					   "ffffffff0000b00\xaf T no_ascii\n"
					   "ffffffff0000b00/ T below_0\n"
					   "ffffffff0000b00: T above_9\n"
					   "ffffffff0000b00` T below_a\n"
					   "ffffffff0000b0001 T too_long\n"
					   "ffffffff0000c000\n"
					   "89abcdefffffffff t last [m]\n");

	(void)state;
	assert_int_equal(table->count, 4);
	assert_hit(table, 0xffffffff00002001, "capitals", "[kernel]", 1);
	assert_hit(table, 0xffffffff0000f000, "mixed", "[kernel]", 0x4440);
	assert_hit(table, 0x89abcdefffffffff, "last", "[m]", 0);
	kernel_table_unref(table);
}

static void labels_never_replace_a_function(void **state)
{
	struct kernel_table *table = parse("1000 T _text\n"
					   "2000 T function\n"
					   "2000 t $x\n"
					   "2004 t $d\n"
					   "2008 t .Ltmp1\n"
					   "200c t L01\n");

	(void)state;
	assert_hit(table, 0x2010, "function", "[kernel]", 0x10);
	kernel_table_unref(table);
}

static void only_code_and_data_types_are_kept(void **state)
{
	struct kernel_table *table = parse("1000 T _text\n"
					   "1010 w weak\n"
					   "1020 D data\n"
					   "1030 b bss\n"
					   "1040 A absolute\n"
					   "1050 R rodata\n"
					   "1060 V object\n");

	(void)state;
	assert_int_equal(table->count, 4);
	assert_hit(table, 0x1060, "bss", "[kernel]", 0x30);
	kernel_table_unref(table);
}

static void later_of_two_at_one_address_wins_with_its_module(void **state)
{
	struct kernel_table *table = parse("1000 T _text\n"
					   "5000 t first\t[one]\n"
					   "5000 t second [two]\n");

	(void)state;
	assert_hit(table, 0x5001, "second", "[two]", 1);
	kernel_table_unref(table);
}

static void symbols_count_from_the_anchor_on(void **state)
{
	struct kernel_table *table = parse("0500 t module_code [early]\n"
					   "0900 D per_cpu\n"
					   "1000 T before_anchor\n"
					   "1000 T _stext\n"
					   "0800 t below\n"
					   "0600 t module_low [late]\n");

	(void)state;
	assert_hit(table, 0x580, "module_code", "[early]", 0x80);
	assert_hit(table, 0x1000, "_stext", "[kernel]", 0);
	assert_hit(table, 0x950, "module_low", "[late]", 0x350);
	kernel_table_unref(table);
}

static const char unsorted[] = "1000 T _text\n"
			       "3000 T third\n"
			       "2000 T second\n"
			       "9000 t in_module [m]\n"
			       "2800 T between\n"
			       "2000 T second_alias\n";

static void sparse_answers_what_was_asked(void **state)
{
	const uint64_t asked[] = { 0x0fff, 0x1001, 0x2000, 0x2fff, 0x3000, 0xa000 };
	struct kernel_table *table = scan(unsorted, asked, 6);
	struct kernel_table *full = parse(unsorted);

	(void)state;
	assert_miss(table, 0x0fff);
	for (size_t i = 1; i < 6; i++) {
		struct kernel_hit a, b;

		assert_true(kernel_table_find(table, asked[i], &a));
		assert_true(kernel_table_find(full, asked[i], &b));
		assert_string_equal(a.name, b.name);
		assert_string_equal(a.module, b.module);
		assert_int_equal(a.offset, b.offset);
	}
	assert_hit(table, 0x2000, "second_alias", "[kernel]", 0);
	assert_hit(table, 0xa000, "in_module", "[m]", 0x1000);
	assert_miss(table, 0x2001);
	kernel_table_unref(table);
	kernel_table_unref(full);
}

static void a_line_may_lack_its_end_and_names_may_be_long(void **state)
{
	static char text[3 << 20];
	const uint64_t asked[] = { 0x1500, 0x2500 };
	struct kernel_table *table;
	size_t at;

	(void)state;
	at = (size_t)sprintf(text, "1000 T _text\n1100 T ");
	memset(text + at, 'x', 2 << 20);
	at += 2 << 20;
	sprintf(text + at, "\n2000 T last");
	table = scan(text, asked, 2);
	assert_hit(table, 0x2500, "last", "[kernel]", 0x500);
	kernel_table_unref(table);
}

/* ---- files ---- */

static void assert_load_fails(const char *path, enum spulse_error_kind kind)
{
	struct kernel_table *table = NULL;
	struct spulse_error *error = NULL;

	assert_int_equal(kernel_table_load(path, &table, &error), -(int)kind);
	assert_int_equal(spulse_error_kind(error), kind);
	assert_non_null(strstr(spulse_error_message(error), path));
	assert_null(table);
	spulse_error_free(error);
}

static void only_a_small_regular_file_is_loaded(void **state)
{
	static const char text[] = "1000 T _text\n1010 T entry\n";
	const char *path, *link, *fifo;
	struct kernel_table *table = NULL;
	struct kit kit;

	(void)state;
	kit_open(&kit);
	path = kit_path(&kit, "kallsyms");
	link = kit_path(&kit, "link");
	fifo = kit_path(&kit, "fifo");
	assert_load_fails(path, SPULSE_ERROR_IO);
	kit_file(&kit, "kallsyms", text, strlen(text));
	assert_int_equal(kernel_table_load(path, &table, NULL), 0);
	assert_hit(table, 0x1011, "entry", "[kernel]", 1);
	kernel_table_unref(table);
	assert_int_equal(symlink(path, link), 0);
	assert_load_fails(link, SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_load_fails(fifo, SPULSE_ERROR_INVALID_INPUT);
	assert_load_fails(kit.dir, SPULSE_ERROR_INVALID_INPUT);
	assert_int_equal(truncate(path, KERNEL_FILE_MAX + 1l), 0);
	assert_load_fails(path, SPULSE_ERROR_IO);
	kit_close(&kit);
}

/* A table for a set of addresses is kept for the next who asks the same; 16 sets, oldest first. */
static void asked_sets_are_remembered(void **state)
{
	uint64_t asked = 0xffffffff81000000, moved = 0xffffffff80000000;
	struct kernel_table *first = kernel_host_sparse(&asked, 1, NULL, 0), *again;

	(void)state;
	if (!first)
		skip();
	again = kernel_host_sparse(&asked, 1, NULL, 0);
	assert_ptr_equal(again, first);
	kernel_table_unref(again);
	/* The same addresses, but text seen elsewhere: another question. */
	again = kernel_host_sparse(&asked, 1, &moved, 1);
	assert_ptr_not_equal(again, first);
	kernel_table_unref(again);
	for (uint64_t i = 1; i < 16; i++) {
		uint64_t other = asked + i;

		again = kernel_host_sparse(&asked, 1, NULL, 0);
		assert_ptr_equal(again, first);
		kernel_table_unref(again);
		kernel_table_unref(kernel_host_sparse(&other, 1, NULL, 0));
	}
	again = kernel_host_sparse(&asked, 1, NULL, 0);
	assert_ptr_not_equal(again, first);
	kernel_table_unref(again);
	kernel_table_unref(first);
	assert_null(kernel_host_sparse(&asked, 0, NULL, 0));
}

/* ---- System.map ---- */

static struct kernel_table *match(struct kernel_table *const *maps, size_t map_count,
				  const uint64_t *addresses, size_t count, uint64_t anchor)
{
	return sysmap_match(maps, map_count, addresses, count, &anchor, anchor ? 1 : 0);
}

static void a_map_is_moved_to_where_the_text_was_seen(void **state)
{
	struct kernel_table *map = parse("1000000 T _text\n1000100 T one\n1000200 T two\n");
	struct kernel_table *stext = parse("1000000 T _stext\n1000100 T one\n");
	const uint64_t asked[] = { 0x5000110, 0x5000210 };
	struct kernel_table *found = match(&map, 1, asked, 2, 0x5000000);

	(void)state;
	assert_hit(found, 0x5000110, "one", "[kernel]", 0x10);
	assert_hit(found, 0x5000210, "two", "[kernel]", 0x10);
	kernel_table_unref(found);
	found = match(&stext, 1, asked, 1, 0x5000000);
	assert_hit(found, 0x5000110, "one", "[kernel]", 0x10);
	kernel_table_unref(found);
	assert_null(match(&map, 1, asked, 2, 0));
	kernel_table_unref(map);
	kernel_table_unref(stext);
}

static void the_tighter_of_two_maps_is_chosen(void **state)
{
	struct kernel_table *maps[2] = {
		parse("1000000 T _text\n1000100 T loose\n"),
		parse("1000000 T _text\n1000100 T near\n1000108 T nearest\n"),
	};
	const uint64_t asked[] = { 0x1000110 };
	struct kernel_table *found = match(maps, 2, asked, 1, 0x1000000);

	(void)state;
	assert_hit(found, 0x1000110, "nearest", "[kernel]", 8);
	kernel_table_unref(found);
	kernel_table_unref(maps[0]);
	kernel_table_unref(maps[1]);
}

static void a_guess_needs_eight_matches_and_nothing_far_counts(void **state)
{
	struct kernel_table *map = parse("200000 T _text\n200010 T one\n");
	const uint64_t asked[] = { 0x40000011, 0x40000012, 0x40000013, 0x40000014,
				   0x40000015, 0x40000016, 0x40000017, 0x40000018 };
	const uint64_t far[] = { 0x200010 + (1 << 20) + 1 };
	struct kernel_table *found;

	(void)state;
	assert_null(match(&map, 1, asked, 7, 0));
	found = match(&map, 1, asked, 8, 0);
	assert_hit(found, 0x40000018, "one", "[kernel]", 8);
	kernel_table_unref(found);
	assert_null(match(&map, 1, far, 1, 0));
	kernel_table_unref(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hidden_addresses_give_no_symbols),
		cmocka_unit_test(lines_that_do_not_parse_are_skipped),
		cmocka_unit_test(sixteen_digits_are_digits),
		cmocka_unit_test(labels_never_replace_a_function),
		cmocka_unit_test(only_code_and_data_types_are_kept),
		cmocka_unit_test(later_of_two_at_one_address_wins_with_its_module),
		cmocka_unit_test(symbols_count_from_the_anchor_on),
		cmocka_unit_test(sparse_answers_what_was_asked),
		cmocka_unit_test(a_line_may_lack_its_end_and_names_may_be_long),
		cmocka_unit_test(only_a_small_regular_file_is_loaded),
		cmocka_unit_test(asked_sets_are_remembered),
		cmocka_unit_test(a_map_is_moved_to_where_the_text_was_seen),
		cmocka_unit_test(the_tighter_of_two_maps_is_chosen),
		cmocka_unit_test(a_guess_needs_eight_matches_and_nothing_far_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

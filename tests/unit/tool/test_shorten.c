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

#include "shorten.h"

#define DOTS "\xe2\x80\xa6"

static void expect(const char *name, size_t columns, const char *wanted)
{
	/* Exactly as big as promised, so that a sanitizer sees what is too much. */
	char *buf = malloc(SHORTEN_SIZE(columns));
	size_t len = shorten_name(buf, SHORTEN_SIZE(columns), name, strlen(name), columns);

	if (len != strlen(wanted) || memcmp(buf, wanted, len))
		fail_msg("%s became %.*s, not %s", name, (int)len, buf, wanted);
	free(buf);
}

static void names_that_fit_stay(void **state)
{
	(void)state;
	expect("", 8, "");
	expect("main", 8, "main");
	expect("map<vector<pair<int, char>>>::f(int)", 36, "map<vector<pair<int, char>>>::f(int)");
	expect("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 8,
	       "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6");
}

static void inner_arguments_go_first(void **state)
{
	static const char name[] =
		"ns::map<key_type, vector<pair<first_type, second_type>>>::insert(pair<key_type, "
		"int>, bool)";

	(void)state;
	expect(name, 80, "ns::map<key_type, vector<pair<" DOTS ">>>::insert(pair<key_type, int>, bool)");
	expect(name, 67, "ns::map<key_type, vector<" DOTS ">>::insert(pair<key_type, int>, bool)");
	expect(name, 40, "ns::map<" DOTS ">::insert(pair<" DOTS ">, bool)");
	expect(name, 24, "ns::map<" DOTS ">::insert(" DOTS ")");
	expect(name, 12, "ns::" DOTS "sert(" DOTS ")");
}

static void operators_are_no_brackets(void **state)
{
	(void)state;
	expect("std::less<a_long_type>::operator<(other<a_long_type>)", 40,
	       "std::less<" DOTS ">::operator<(other<" DOTS ">)");
	expect("box<a_long_type>::operator->(int) const", 30, "box<" DOTS ">::operator->(int) const");
	expect("box<a_long_type>::operator()(int) const", 30, "box<" DOTS ">::operator()(int) const");
	expect("stream& operator<< <traits<char> >(stream&, char)", 40,
	       "stream& operator<< <" DOTS ">(stream&, char)");
	expect("my_operator<a_long_type_name>::go()", 20, "my_operator<" DOTS ">::go()");
}

static void other_parts_stay(void **state)
{
	(void)state;
	expect("a::(anonymous namespace)::f(some_type, some_other_type)", 32,
	       "a::(anonymous namespace)::f(" DOTS ")");
	expect("<alloc::vec::Vec<T> as core::clone::Clone>::clone", 20, "<" DOTS ">::clone");
	expect("f<int>(char, signed char)", 20, "f<int>(" DOTS ")");
}

/* Text that only looks like such a name loses its middle. */
static void anything_else_is_cut(void **state)
{
	(void)state;
	expect("JS:*function /home/user/project/file.js:12:3", 24, "JS:*func" DOTS "ct/file.js:12:3");
	expect("a<b<c<d and no end of it all", 16, "a<b<c" DOTS " of it all");
	expect("a>b>c)))((( and no end of it all", 16, "a>b>c" DOTS " of it all");
	expect("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6", 9, "\xff\xfe\xfd" DOTS "\xfa\xf9\xf8\xf7\xf6");
	/* Fewer columns than are of use. */
	expect("a_function_name", 1, "a_" DOTS "_name");
}

static void any_length_is_fine(void **state)
{
	enum { LEN = 3000, COLUMNS = 50 };
	char *name = malloc(LEN + 1), buf[SHORTEN_SIZE(COLUMNS)];
	static const char parts[] = "a<>(), :\xc3\xa4";

	(void)state;
	srand(1);
	for (int round = 0; round < 2000; round++) {
		size_t len = (size_t)rand() % (round % 10 ? 80 : LEN);

		for (size_t i = 0; i < len; i++)
			name[i] = parts[(size_t)rand() % (sizeof(parts) - 1)];
		assert_true(shorten_name(buf, sizeof(buf), name, len, COLUMNS) <= sizeof(buf));
	}
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_fit_stay),
		cmocka_unit_test(inner_arguments_go_first),
		cmocka_unit_test(operators_are_no_brackets),
		cmocka_unit_test(other_parts_stay),
		cmocka_unit_test(anything_else_is_cut),
		cmocka_unit_test(any_length_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

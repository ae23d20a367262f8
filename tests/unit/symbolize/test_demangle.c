/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/native/demangle.h"

static const struct {
	const char *mangled, *name, *suffix;
} cases[] = {
	/* C stays, underscores and all. */
	{ "main", "main", "" },
	{ "_init", "_init", "" },
	{ "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault", "" },
	{ "__libc_start_main", "__libc_start_main", "" },
	/* C++: parameters, and the return type where it is part of the name. */
	{ "_ZN3foo3barEi", "foo::bar(int)", "" },
	{ "_Z3addIiET_S0_S0_", "int add<int>(int, int)", "" },
	{ "_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size() const",
	  "" },
	/* Rust legacy without its hash, and v0. */
	{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt", "" },
	{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar", "" },
	/* D. */
	{ "_D8demangle4testFiZv", "demangle.test(int)", "" },
	/* Clone suffixes. */
	{ "work.cold", "work", ".cold" },
	{ "work.constprop.0", "work", ".constprop.0" },
	{ "work.constprop.0.isra.0.cold", "work", ".constprop.0.isra.0.cold" },
	{ "_ZL6helperi.part.3", "helper(int)", ".part.3" },
	{ "_ZN3foo3barEi.llvm.1234567890ABCDEF", "foo::bar(int)", ".llvm.1234567890ABCDEF" },
	{ "_ZN4core3ptr4drop17h0123456789abcdefE.llvm.42", "core::ptr::drop", ".llvm.42" },
	/* Dots that are part of a name. */
	{ "runtime.mallocgc", "runtime.mallocgc", "" },
	{ "main.main.func1", "main.main.func1", "" },
	{ "main.hot", "main.hot", "" },
	{ "main.exit.func1", "main.exit.func1", "" },
	{ "_ZN3foo3barEi.hot", "foo::bar(int)", ".hot" },
	{ "helper.0", "helper.0", "" },
	{ ".hidden", ".hidden", "" },
	/* What no scheme recognises. */
	{ "_Zgarbage", "_Zgarbage", "" },
	{ "_R", "_R", "" },
	{ "", "", "" },
};

static void names_are_as_people_write_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct demangled d = demangle(cases[i].mangled);

		assert_string_equal(d.name, cases[i].name);
		assert_string_equal(d.suffix, cases[i].suffix);
		free(d.name);
	}
}

static void endless_names_are_left_alone(void **state)
{
	enum { LEN = 200000 };
	char *name = malloc(LEN + 1);
	struct demangled d;

	(void)state;
	memset(name, 'P', LEN);
	memcpy(name, "_Z1fP", 5);
	name[LEN] = 0;
	d = demangle(name);
	assert_non_null(d.name);
	free(d.name);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_as_people_write_them),
		cmocka_unit_test(endless_names_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_DEMANGLE_H
#define SPULSE_SYMBOLIZE_DEMANGLE_H

#include <stddef.h>

/*
 * A linker name as people write it: Rust (legacy and v0), C++ (Itanium) and D; any other name
 * stays as it is. A compiler's clone suffix (".cold", ".constprop.0") is split off first.
 */
struct demangled {
	char *name;	/* to be freed; NULL when memory ran out */
	const char *suffix; /* part of the given name; "" without one */
};

struct demangled demangle(const char *mangled);
/* Length of a name without its clone suffix. */
size_t clone_suffix_start(const char *name);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A library whose outer function is exported and whose inner one is not: stripped, only the first
 * has a name. */
#include "partly.h"

static __attribute__((noinline)) unsigned long partly_hidden(unsigned long x)
{
	for (int i = 0; i < 3000000; i++)
		x = x * 6364136223846793005ul + (x >> 7);
	return x;
}

__attribute__((noinline)) unsigned long partly_shown(unsigned long x)
{
	for (int i = 0; i < 3000000; i++)
		x = x * 2862933555777941757ul + (x >> 9);
	return x;
}

unsigned long partly_entry(unsigned long x)
{
	return partly_hidden(x) + partly_shown(x) + 1;
}

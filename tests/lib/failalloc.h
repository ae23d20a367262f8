/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_FAILALLOC_H
#define TESTS_LIB_FAILALLOC_H

#include <stdbool.h>

/*
 * Makes allocations fail on purpose. A program that uses it is linked with failalloc_link_args:
 * malloc, calloc, realloc and strdup called from the linked objects come here first.
 */

/* The nth allocation from now on fails (1 = the next one), and all after it when `all`; 0: none. */
void failalloc_set(long nth, bool all);
/* Whether an allocation failed since failalloc_set(). */
bool failalloc_hit(void);
/* Allocations tried since failalloc_set(). */
long failalloc_count(void);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_LIVEMEM_H
#define TESTS_LIB_LIVEMEM_H

#include <stddef.h>

/*
 * Counts the memory that is allocated. A program that uses it is linked with livemem_link_args:
 * what the linked objects allocate and free comes here first. For one thread.
 */

/* From here on the peak is counted anew, from what is live now. */
void livemem_reset(void);
/* The most that was live at once since then, beyond what was live before. */
size_t livemem_peak(void);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_SPOOL_SEED_H
#define TESTS_FUZZ_SPOOL_SEED_H

#include <stddef.h>
#include <stdint.h>

/* The i-th valid spool to begin with, from malloc(); even ones are of version 4. */
uint8_t *spool_seed(unsigned int i, size_t *len);

#endif

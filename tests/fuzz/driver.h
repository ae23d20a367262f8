/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_DRIVER_H
#define TESTS_FUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/*
 * A fuzz entry is one file with these two functions. Linked with driver.c it is a program that runs
 * the seeds, random changes of them, and files that once crashed:
 *	fuzz_X [-s SECONDS] [-r SEED] [FILE or FOLDER]...
 * Built by clang with -fsanitize=fuzzer and without driver.c it is a libFuzzer target.
 */

/* Takes any input; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The i-th seed, from malloc(); NULL behind the last. */
uint8_t *fuzz_seed(unsigned int i, size_t *len);

#endif

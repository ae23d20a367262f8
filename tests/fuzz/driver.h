/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_DRIVER_H
#define TESTS_FUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/*
 * A fuzz entry is one file with these two functions. Linked with driver.c it is a program that runs
 * the seeds, random changes of them, and files that once crashed:
 *	fuzz_X [-s SECONDS] [-r SEED] [-f] [FILE or FOLDER]...	-f: the files alone, no seeds
 *	fuzz_X -w FOLDER					writes the seeds as files
 * With `-Dlibfuzzer=true` it is a libFuzzer target instead. tests/fuzz/run builds it for libFuzzer
 * or for AFL and runs it.
 */

/* Takes any input; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The i-th seed, from malloc(); NULL behind the last. */
uint8_t *fuzz_seed(unsigned int i, size_t *len);

#endif

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Exactly DEPTH calls deep at every moment that matters: leaf < level x DEPTH < run < main. Frames
 * differ in size and the compiler keeps no frame pointer.
 * usage: deep SECONDS (of CPU time)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef DEPTH
#define DEPTH 200
#endif
#define NOINLINE __attribute__((noinline, noclone))

static uint64_t deadline_ns;
uint64_t deep_result;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

NOINLINE uint64_t leaf(uint64_t x)
{
	do {
		for (int i = 0; i < 4000000; i++)
			x = x * 6364136223846793005u + (x >> 7) + 1;
	} while (now_ns() < deadline_ns);
	return x;
}

NOINLINE uint64_t level_b(uint64_t x, int depth);

NOINLINE uint64_t level_a(uint64_t x, int depth)
{
	volatile char pad[120];
	uint64_t r;

	pad[x & 63] = (char)depth;
	r = depth <= 1 ? leaf(x) : level_b(x ^ 5, depth - 1);
	return r + (uint64_t)pad[x & 63];
}

NOINLINE uint64_t level_b(uint64_t x, int depth)
{
	uint64_t r = depth <= 1 ? leaf(x + 1) : level_a(x * 3, depth - 1);

	return r ^ x;
}

NOINLINE uint64_t run(uint64_t x)
{
	return level_a(x, DEPTH) + 1;
}

int main(int argc, char **argv)
{
	deadline_ns = now_ns() + (uint64_t)((argc > 1 ? atof(argv[1]) : 2.0) * 1e9);
	deep_result = run(argc);
	printf("%llx\n", (unsigned long long)deep_result);
	return 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Moves its own code into anonymous memory, as programs do that want it in huge pages, and runs on:
 *	moved SECONDS
 * Prints READY when that is done.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void moved_hot(double end)
{
	do {
		for (unsigned long i = 0; i < 400000; i++)
			sink += i * i;
	} while (now() < end);
	sink++;
}

__attribute__((noinline)) void moved_middle(double end)
{
	moved_hot(end);
	sink++;
}

/* The mapping that holds our code; false when it is not to be found. */
static int find_code(unsigned long *start, unsigned long *end)
{
	unsigned long code = (unsigned long)moved_hot;
	char line[512], mode[8];
	FILE *f = fopen("/proc/self/maps", "r");
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %4s", start, end, mode) == 3 && mode[2] == 'x' &&
			*start <= code && code < *end;
	if (f)
		fclose(f);
	return found;
}

static int move_code(void)
{
	unsigned long start, end;
	void *copy;

	if (!find_code(&start, &end))
		return 0;
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return 0;
	memcpy(copy, (void *)start, end - start);
	return !mprotect(copy, end - start, PROT_READ | PROT_EXEC) &&
	       mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED,
		      (void *)start) == (void *)start;
}

int main(int argc, char **argv)
{
	if (!move_code())
		return 1;
	printf("READY\n");
	fflush(stdout);
	moved_middle(now() + (argc > 1 ? atof(argv[1]) : 1));
	sink++;
	return 0;
}

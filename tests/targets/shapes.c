/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Stacks of a known shape. usage: shapes SHAPE SECONDS (of CPU time); the shapes are in main().
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static double seconds;
volatile uint64_t shapes_sink;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

NOINLINE uint64_t leaf(uint64_t x)
{
	do {
		for (int i = 0; i < 3000000; i++)
			x = x * 6364136223846793005u + (x >> 7) + 1;
	} while (used() < seconds);
	return x;
}

NOINLINE uint64_t middle(uint64_t x)
{
	return leaf(x + 1) + 1;
}

NOINLINE uint64_t entry(uint64_t x)
{
	return middle(x + 1) + 1;
}

NOINLINE uint64_t recurse(uint64_t x, int depth)
{
	return depth ? recurse(x + 1, depth - 1) + (x >> 3) : leaf(x);
}

/* More than a stack copy holds lies between the leaf and its caller's caller. */
NOINLINE uint64_t huge(uint64_t x)
{
	volatile char room[100 << 10];

	room[0] = room[sizeof(room) - 1] = (char)x;
	return leaf(x) + (uint64_t)room[sizeof(room) - 1];
}

/* Its call is its last instruction: what is behind it is another function. */
NOINLINE __attribute__((noreturn)) void never_back(uint64_t x)
{
	shapes_sink = leaf(x);
	exit(0);
}

NOINLINE __attribute__((noreturn)) void calls_last(uint64_t x)
{
	never_back(x + 1);
}

NOINLINE uint64_t behind_calls_last(uint64_t x)
{
	return x * 3;
}

NOINLINE uint64_t asks_kernel(uint64_t x)
{
	do {
		for (int i = 0; i < 10000; i++)
			x += syscall(SYS_getppid);
	} while (used() < seconds);
	return x;
}

NOINLINE void *thread_body(void *arg)
{
	shapes_sink += entry((uint64_t)(uintptr_t)arg);
	return NULL;
}

static void run_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_body, NULL) == 0)
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";

	seconds = argc > 2 ? atof(argv[2]) : 1;
	if (!strcmp(shape, "chain"))
		shapes_sink += entry(1);
	else if (!strcmp(shape, "recurse"))
		shapes_sink += recurse(1, 6);
	else if (!strcmp(shape, "deep"))
		shapes_sink += recurse(1, 3000);
	else if (!strcmp(shape, "huge"))
		shapes_sink += huge(1);
	else if (!strcmp(shape, "last"))
		calls_last(behind_calls_last(1));
	else if (!strcmp(shape, "kernel"))
		shapes_sink += asks_kernel(1);
	else if (!strcmp(shape, "thread"))
		run_thread();
	else
		return 2;
	return 0;
}

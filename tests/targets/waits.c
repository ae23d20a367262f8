/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Four ways to spend time, one after the other in the first thread: it sleeps, waits for a lock
 * that another thread holds, reads a pipe that another thread writes late, and computes. Prints
 * how long each took by the clock, and how much CPU time the thread had. usage: waits [SCALE]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEP __attribute__((noinline))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;
static int ends[2];
static volatile unsigned long sink;
static double scale = 1;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *holder(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	held = 1;
	usleep(400000 * scale);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *late_writer(void *unused)
{
	(void)unused;
	usleep(200000 * scale);
	return write(ends[1], "x", 1) == 1 ? NULL : NULL;
}

STEP void step_sleep(void)
{
	usleep(600000 * scale);
	sink++;
}

STEP void step_lock(void)
{
	pthread_mutex_lock(&lock);
	sink++;
	pthread_mutex_unlock(&lock);
}

STEP void step_read(void)
{
	char byte;

	if (read(ends[0], &byte, 1) == 1)
		sink++;
}

STEP void step_compute(void)
{
	double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.3 * scale;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 10000; i++)
			sink += i;
}

static double timed(void (*step)(void))
{
	double before = now(CLOCK_MONOTONIC);

	step();
	return now(CLOCK_MONOTONIC) - before;
}

int main(int argc, char **argv)
{
	double start = now(CLOCK_MONOTONIC), sleeping, locking, reading, computing;
	pthread_t thread;

	if (argc > 1)
		scale = atof(argv[1]);
	if (pipe(ends) < 0)
		return 1;
	sleeping = timed(step_sleep);
	if (pthread_create(&thread, NULL, holder, NULL))
		return 1;
	while (!held)
		usleep(100);
	locking = timed(step_lock);
	pthread_join(thread, NULL);
	if (pthread_create(&thread, NULL, late_writer, NULL))
		return 1;
	reading = timed(step_read);
	pthread_join(thread, NULL);
	computing = timed(step_compute);
	printf("{\"step_sleep\": %.6f, \"step_lock\": %.6f, \"step_read\": %.6f, "
	       "\"step_compute\": %.6f, \"cpu\": %.6f, \"wall\": %.6f}\n", sleeping, locking,
	       reading, computing, now(CLOCK_THREAD_CPUTIME_ID), now(CLOCK_MONOTONIC) - start);
	return 0;
}

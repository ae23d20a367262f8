/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Hot threads, each busy in its own function's recursion until the time is over; says "READY" once
 * all run. usage: threads COUNT SECONDS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int stop, running;
static atomic_ulong total;

__attribute__((noinline)) unsigned long spin(unsigned long x)
{
	for (int i = 0; i < 5000; i++)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}

__attribute__((noinline)) unsigned long down(unsigned long x, int depth)
{
	unsigned long r = depth ? down(x * 3, depth - 1) : spin(x);

	return r + (x >> 3);
}

static void *body(void *arg)
{
	long id = (long)arg;
	unsigned long x = id;

	atomic_fetch_add(&running, 1);
	while (!stop)
		x += down(x, 4 + id % 40);
	total += x;
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 8;
	double seconds = argc > 2 ? atof(argv[2]) : 5;
	pthread_t threads[256];

	if (count < 1 || count > 256)
		return 2;
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, body, (void *)i))
			return 1;
	while (running < count)
		usleep(1000);
	puts("READY");
	fflush(stdout);
	usleep(seconds * 1e6);
	stop = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return total == 1;
}

// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// How long a process was held up: 63 threads sleep, one looks at the clock without a pause. Prints the longest gap in
// milliseconds, less what the thread waited for a CPU, once its input ends. usage: gap [threads]
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop;

static long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

// How long this thread was ready to run and had no CPU.
static long waited_ns(int fd)
{
	char text[96] = { 0 };
	unsigned long ran, waited = 0;
	if (pread(fd, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%lu %lu", &ran, &waited);
	return (long)waited;
}

static void *look(void *data)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
	int fd = open(path, O_RDONLY);
	long *longest = data, before = now_ns(), waited = waited_ns(fd), read_at = before;
	while (!stop) {
		long now = now_ns();
		if (now - before > 50000) {
			long all = waited_ns(fd), gap = now - before - (all - waited);
			if (gap > *longest)
				*longest = gap;
			waited = all;
			now = read_at = now_ns();
		} else if (now - read_at > 1000000) {
			waited = waited_ns(fd);
			now = read_at = now_ns();
		}
		before = now;
	}
	return NULL;
}

static void *rest(void *data)
{
	while (!stop)
		usleep(100000);
	return data;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 64;
	long longest = 0;
	pthread_t thread, looking;
	char byte;
	for (int i = 2; i < n; i++)
		pthread_create(&thread, NULL, rest, NULL);
	pthread_create(&looking, NULL, look, &longest);
	while (read(0, &byte, 1) > 0)
		;
	stop = 1;
	pthread_join(looking, NULL);
	printf("gap_ms=%.3f\n", (double)longest * 1e-6);
	return 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Many processes that share 50 libraries. usage: kin FOLDER PROCESSES MILLISECONDS
 *
 * After a second, in which a recorder attaches, it starts PROCESSES copies of itself by exec. Each
 * loads kin0.so to kin49.so of FOLDER, runs MILLISECONDS of CPU time in all of them and waits until
 * the last one is done.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIBRARIES = 50 };

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int member(const char *folder, double ms)
{
	uint64_t (*run[LIBRARIES])(uint64_t, int);
	volatile uint64_t sum = 0;
	char byte;

	for (int i = 0; i < LIBRARIES; i++) {
		char path[4096];
		void *library;

		snprintf(path, sizeof(path), "%s/kin%d.so", folder, i);
		library = dlopen(path, RTLD_NOW);
		run[i] = library ? (uint64_t(*)(uint64_t, int))dlsym(library, "kin_run") : NULL;
		if (!run[i])
			return 1;
	}
	while (cpu_ms() < ms)
		for (int i = 0; i < LIBRARIES; i++)
			sum += run[i](sum, 4 + i % 8);
	return read(0, &byte, 1) != 0;
}

int main(int argc, char **argv)
{
	int gate[2], failed = 0, status;
	int count = argc > 2 ? atoi(argv[2]) : 0;

	if (argc == 5)
		return member(argv[1], atof(argv[3]));
	if (argc != 4 || pipe(gate) < 0)
		return 2;
	sleep(1);
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			dup2(gate[0], 0);
			close(gate[0]);
			close(gate[1]);
			execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], "member", NULL);
			_exit(127);
		}
		failed += pid < 0;
		/* Sixteen at a time: the machine should not drown in them. */
		if (i % 16 == 15)
			usleep((useconds_t)(atof(argv[3]) * 8000));
	}
	/* Closing the pipe lets those go that are done; the others follow. */
	sleep(1);
	close(gate[1]);
	while (wait(&status) > 0)
		failed += status != 0;
	return failed != 0;
}

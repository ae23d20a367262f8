/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads with unusual lives. usage: lives LIFE [ARGUMENT]; the lives are in main().
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* Built several times with other names: the code stays where it is. */
#ifndef HOT
#define HOT chain_hot
#endif

volatile uint64_t lives_sink;
static char *program;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline __attribute__((always_inline)) uint64_t burn(double seconds)
{
	double end = used() + seconds;
	uint64_t x = 1;

	do {
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005u + (x >> 7) + 1;
	} while (used() < end);
	return x;
}

/* ---- a thread that is not the leader executes ---- */

NOINLINE void before_exec(void)
{
	lives_sink += burn(0.06);
}

NOINLINE void after_exec(void)
{
	lives_sink += burn(0.3);
}

static void *exec_thread(void *round)
{
	char next[16];

	before_exec();
	snprintf(next, sizeof(next), "%d", atoi(round) - 1);
	execl(program, program, "exec-thread", next, (char *)NULL);
	_exit(1);
}

static void live_exec_thread(char *round)
{
	pthread_t thread;

	if (atoi(round) == 0) {
		after_exec();
		return;
	}
	pthread_create(&thread, NULL, exec_thread, round);
	for (;;)
		pause();
}

/* ---- a child in its parent's memory ---- */

NOINLINE void vfork_child(void)
{
	lives_sink += burn(0.03);
}

NOINLINE void vfork_parent(void)
{
	lives_sink += burn(0.02);
}

static void live_vfork(void)
{
	for (int i = 0; i < 12; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			vfork_child();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		vfork_parent();
	}
}

/* ---- many short ones ---- */

NOINLINE void fork_child(void)
{
	lives_sink += burn(0.004);
}

static void live_forks(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			fork_child();
			_exit(0);
		}
		if (i % 4 == 3)
			while (wait(NULL) > 0)
				;
	}
	while (wait(NULL) > 0)
		;
}

NOINLINE void *short_thread(void *arg)
{
	lives_sink += burn(0.004);
	return arg;
}

static void live_threads(int count)
{
	for (int i = 0; i < count; i += 4) {
		pthread_t threads[4];

		for (int t = 0; t < 4; t++)
			pthread_create(&threads[t], NULL, short_thread, NULL);
		for (int t = 0; t < 4; t++)
			pthread_join(threads[t], NULL);
	}
}

/* ---- the same address, other code ---- */

NOINLINE void HOT(void)
{
	lives_sink += burn(0.2);
}

static void live_chain(void)
{
	HOT();
#ifdef NEXT
	execl(NEXT, NEXT, "chain", (char *)NULL);
	exit(1);
#endif
}

static void live_reload(char *folder)
{
	static const char *const names[] = { "one", "two" };
	void *last = NULL;
	int same = 0;

	for (int i = 0; i < 10; i++) {
		const char *name = names[i % 2];
		char path[4096], symbol[16];
		unsigned long (*spin)(unsigned long);
		void *library;

		snprintf(path, sizeof(path), "%s/libreload_%s.so", folder, name);
		snprintf(symbol, sizeof(symbol), "%s_spin", name);
		library = dlopen(path, RTLD_NOW);
		if (!library)
			exit(1);
		spin = (unsigned long (*)(unsigned long))(uintptr_t)dlsym(library, symbol);
		same += (void *)(uintptr_t)spin == last;
		last = (void *)(uintptr_t)spin;
		for (double end = used() + 0.04; used() < end;)
			lives_sink += spin(1000000);
		dlclose(library);
	}
	printf("the same address %d times\n", same);
}

/* ---- the first thread goes ---- */

NOINLINE void *outlive(void *arg)
{
	usleep(50000);
	lives_sink += burn(0.3);
	exit(0);
	return arg;
}

static void live_leader(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlive, NULL);
	syscall(SYS_exit, 0);
}

/* ---- children that were there before ---- */

NOINLINE void old_child(void)
{
	lives_sink += burn(30);
}

static void live_family(int count)
{
	for (int i = 0; i < count; i++)
		if (fork() == 0) {
			old_child();
			_exit(0);
		}
	puts("READY");
	fflush(stdout);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *life = argc > 1 ? argv[1] : "";
	char *argument = argc > 2 ? argv[2] : "0";

	program = argv[0];
	if (!strcmp(life, "exec-thread"))
		live_exec_thread(argument);
	else if (!strcmp(life, "vfork"))
		live_vfork();
	else if (!strcmp(life, "forks"))
		live_forks(atoi(argument));
	else if (!strcmp(life, "threads"))
		live_threads(atoi(argument));
	else if (!strcmp(life, "chain"))
		live_chain();
	else if (!strcmp(life, "reload"))
		live_reload(argument);
	else if (!strcmp(life, "leader"))
		live_leader();
	else if (!strcmp(life, "family"))
		live_family(atoi(argument));
	else if (!strcmp(life, "execute"))
		execvp(argument, argv + 2);
	else
		return 2;
	return 0;
}

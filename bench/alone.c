/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and writes its pid, then its CPU time and its own peak memory, to a file. What
 * the kernel says of a child's peak begins with the memory of the program that forked it: this
 * one is small, a script's interpreter is not.
 * usage: alone RESULT COMMAND [ARGUMENT...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	FILE *file;
	pid_t pid;

	if (argc < 3 || !(file = fopen(argv[1], "we"))) {
		fprintf(stderr, "usage: alone RESULT COMMAND [ARGUMENT...]\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	fprintf(file, "pid=%d\n", (int)pid);
	fflush(file);
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0)
		return 1;
	fprintf(file, "cpu_seconds=%.6f\npeak_kib=%ld\n",
		seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss);
	fclose(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

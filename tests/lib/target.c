/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void target_tell(struct target *t)
{
	if (write(t->to, "x", 1) != 1)
		abort();
}

void target_listen(struct target *t)
{
	char c;

	if (read(t->from, &c, 1) != 1)
		_exit(3);
}

void target_ready(struct target *self)
{
	target_tell(self);
}

struct target target_start(void (*body)(struct target *self))
{
	struct target t = { 0 };
	int down[2], up[2];

	if (pipe(down) < 0 || pipe(up) < 0)
		abort();
	t.pid = fork();
	if (t.pid == 0) {
		struct target self = { .pid = getpid(), .to = up[1], .from = down[0] };

		/* The test's own handlers would go on with the tests. */
		for (int i = 1; i < NSIG; i++)
			signal(i, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		close(down[1]);
		close(up[0]);
		body(&self);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	t.to = down[1];
	t.from = up[0];
	target_listen(&t);
	return t;
}

void target_end(struct target *t)
{
	/* Its children too. */
	kill(-t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	close(t->to);
	close(t->from);
}

char target_state(pid_t pid)
{
	char path[64], text[512] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void burn(long milliseconds)
{
	struct timespec start, now;
	volatile unsigned long sink = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 20000; i++)
			sink = sink * 31 + i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
		 milliseconds);
}

bool can_sample(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .exclude_kernel = 1, .disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

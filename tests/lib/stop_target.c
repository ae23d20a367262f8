/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "stop_target.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct stop_target_page *page;
static uint32_t vfork_time_ms;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
		  NULL);
}

/* ---- in the target ---- */

static void *idle(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&page->threads, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

static void *watch_clock(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&page->threads, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint64_t last = now_ns();

		if (!__atomic_load_n(&page->watch, __ATOMIC_SEQ_CST)) {
			sleep_us(1000);
			continue;
		}
		while (__atomic_load_n(&page->watch, __ATOMIC_RELAXED)) {
			uint64_t now = now_ns();

			if (now - last > page->longest_gap_ns)
				page->longest_gap_ns = now - last;
			last = now;
		}
	}
	return NULL;
}

static void *wait_in_vfork(void *arg)
{
	pid_t pid;

	(void)arg;
	__atomic_add_fetch(&page->threads, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&page->watch, __ATOMIC_SEQ_CST))
		sleep_us(1000);
	pid = vfork();
	if (pid == 0) {
		nanosleep(&(struct timespec){ .tv_sec = vfork_time_ms / 1000,
					      .tv_nsec = vfork_time_ms % 1000 * 1000000l }, NULL);
		_exit(0);
	}
	return NULL;
}

static _Noreturn void target_main(uint32_t threads)
{
	pthread_t thread;
	pthread_attr_t attr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (uint32_t i = 1; i < threads; i++)
		if (pthread_create(&thread, &attr, i == 1 ? watch_clock : idle, NULL))
			_exit(1);
	if (vfork_time_ms && pthread_create(&thread, &attr, wait_in_vfork, NULL))
		_exit(1);
	for (;;) {
		__atomic_add_fetch(&page->beats, 1, __ATOMIC_SEQ_CST);
		sleep_us(200);
	}
}

/* ---- in the test ---- */

bool stop_target_start(struct stop_target *target, uint32_t threads, uint32_t vfork_ms)
{
	uint32_t wanted = threads - 1 + (vfork_ms != 0);

	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (page == MAP_FAILED)
		return false;
	vfork_time_ms = vfork_ms;
	target->page = page;
	target->pid = fork();
	if (target->pid == 0)
		target_main(threads);
	for (int i = 0; i < 10000 && target->pid > 0; i++) {
		if (__atomic_load_n(&page->threads, __ATOMIC_SEQ_CST) == wanted)
			return true;
		sleep_us(1000);
	}
	return false;
}

/* Calls for the status text of each thread; true when it is true of all. */
static bool all_threads(pid_t pid, bool (*holds)(const char *status))
{
	char path[64], text[4096];
	struct dirent *entry;
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && all && (entry = readdir(dir))) {
		FILE *file;
		size_t n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", pid, entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		n = fread(text, 1, sizeof(text) - 1, file);
		text[n] = '\0';
		fclose(file);
		all = holds(text);
	}
	if (dir)
		closedir(dir);
	return dir && all;
}

static bool is_free(const char *status)
{
	return !strstr(status, "\nState:\tT") && !strstr(status, "\nState:\tt") &&
	       strstr(status, "\nTracerPid:\t0\n");
}

static bool is_stopped(const char *status)
{
	return strstr(status, "\nState:\tT");
}

bool stop_target_runs(const struct stop_target *target)
{
	uint64_t beats = __atomic_load_n(&target->page->beats, __ATOMIC_SEQ_CST);

	for (int i = 0; i < 20000; i++) {
		if (__atomic_load_n(&target->page->beats, __ATOMIC_SEQ_CST) > beats &&
		    all_threads(target->pid, is_free))
			return true;
		sleep_us(100);
	}
	return false;
}

bool stop_target_is_stopped(const struct stop_target *target)
{
	return all_threads(target->pid, is_stopped);
}

void stop_target_end(struct stop_target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	munmap(target->page, sizeof(*target->page));
}

void forbid_call(unsigned int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(99);
}

void forbid_ptrace(void)
{
	forbid_call(SYS_ptrace);
}

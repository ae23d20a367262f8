/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PERF_FAKE_H
#define TESTS_PERF_FAKE_H

#include "perf/live.h"

/*
 * A kernel that answers perf's system calls as a test says, and remembers them. Descriptors are
 * real ones (eventfds), so that they can be waited on and leaks show in /proc/self/fd.
 */
struct perf_fake_open {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	unsigned long flags;
	int result;
};

struct perf_fake_ioctl {
	int fd;
	unsigned long request, argument;
};

struct perf_fake_map {
	int fd;
	size_t bytes;
	int result;
	struct perf_event_mmap_page *page;
};

struct perf_fake {
	/* What a test sets. NULL: everything works. 0 or -errno. */
	int (*open_answer)(const struct perf_event_attr *attr, pid_t pid, int cpu);
	int (*map_answer)(size_t bytes, int cpu);
	int (*ioctl_answer)(int fd, unsigned long request);
	struct rlimit nofile, memlock, address_space;
	/* -1: the file is missing */
	int64_t paranoid, mlock_kb, rate, ptrace_scope, kptr_restrict, file_max;
	int file_answer;		  /* of opening a file: 0 or -errno */
	uint64_t capabilities;		  /* bits */
	uid_t user, folder;		  /* of every process */
	uint64_t lost;			  /* what every loss counter says */
	/* NULL, or what the loss counter of a thread on a CPU says. */
	uint64_t (*lost_answer)(pid_t tid, int cpu);
	ssize_t read_bytes;		  /* of a loss counter; 0 = 16 */
	/* What it saw. */
	VEC(struct perf_fake_open) opens;
	VEC(struct perf_fake_ioctl) ioctls;
	VEC(struct perf_fake_map) maps;
	size_t rate_reads, open_descriptors;
};

extern struct perf_fake perf_fake;

/* Starts afresh: root's rights, paranoid 2, everything works. */
void perf_fake_install(void);
/* Back to the real kernel; forgets what it saw. */
void perf_fake_remove(void);
/* Puts records into a ring as the kernel would; they may wrap. */
void perf_fake_produce(struct perf_event_mmap_page *page, const void *bytes, size_t len);

#endif

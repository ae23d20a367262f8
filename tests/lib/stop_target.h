/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_STOP_TARGET_H
#define TESTS_STOP_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A child process with many threads that tells, through shared memory, how it fares while it is
 * stopped and let go.
 */
struct stop_target_page {
	uint64_t beats;		   /* counted by one thread, about 5,000 a second */
	uint64_t longest_gap_ns;   /* between two looks at the clock by a busy thread */
	bool watch;		   /* the busy thread runs while this is set */
	uint32_t threads;	   /* that are ready */
};

struct stop_target {
	pid_t pid;
	struct stop_target_page *page;
};

/* With vfork_ms one further thread waits so long in vfork(), once, when told by watch. */
bool stop_target_start(struct stop_target *target, uint32_t threads, uint32_t vfork_ms);
/* Whether no thread is stopped or traced, and the target does its work; waits up to 2 s. */
bool stop_target_runs(const struct stop_target *target);
/* Whether every thread is in state T. */
bool stop_target_is_stopped(const struct stop_target *target);
void stop_target_end(struct stop_target *target);
/* From here on this process is refused a system call, as a container's policy does. */
void forbid_call(unsigned int number);
void forbid_ptrace(void);

#endif

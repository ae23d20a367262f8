/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_PROC_STOPPER_H
#define SPULSE_PROC_STOPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The process that stops a target for us. It shares our memory but nothing else, and so works in
 * this one block, with system calls only.
 */

enum stopper_message_kind {
	STOPPER_LIST,	 /* a list of threads begins (again) */
	STOPPER_TID,	 /* value: a stopped thread */
	STOPPER_READY,	 /* all threads are stopped */
	STOPPER_TIMEOUT, /* value: a thread that did not stop */
	STOPPER_DENIED,	 /* value: errno; tid: the thread */
	STOPPER_GONE,	 /* no such process */
};

struct stopper_message {
	int32_t kind, value, tid;
};

enum {
	STOPPER_STACK_BYTES = 64 << 10,
	/* PID_MAX_LIMIT of 64-bit kernels: no thread id reaches it. */
	STOPPER_TIDS = 4 << 20,
	STOPPER_BATCH = 256,
	/* Threads that are seized before the first of them is interrupted. */
	STOPPER_SEIZED_FIRST = 1024,
	/* Exit statuses. */
	STOPPER_EXIT_RELEASED = 0,
	STOPPER_EXIT_HELD_TOO_LONG = 2,
	STOPPER_EXIT_NOT_RESUMED = 3,
};

struct stopper {
	unsigned char stack[STOPPER_STACK_BYTES] __attribute__((aligned(64)));
	/* Set by the parent. */
	pid_t target, parent;
	int pidfd, sock;
	bool by_signal;
	int64_t limit_ns; /* from the first interrupt until all threads are stopped */
	int64_t hold_ns;  /* the longest stop, whatever the parent does */
	/* The stopper's own. */
	int dir;
	uint32_t pending; /* seized threads that have not stopped yet */
	uint32_t fresh;	  /* threads first seen by the last listing */
	int32_t last_pending;
	int64_t deadline;
	uint32_t listed; /* threads that are seized but not interrupted yet */
	uint32_t list[STOPPER_SEIZED_FIRST];
	uint32_t queued;
	struct stopper_message queue[STOPPER_BATCH];
	char text[4096];
	char entries[32 << 10] __attribute__((aligned(8)));
	/* Bit per thread id; the kernel gives pages only to what is touched. */
	uint64_t seized[STOPPER_TIDS / 64], stopped[STOPPER_TIDS / 64];
};

/* Entry point for clone(2). */
int stopper_main(void *arg);

#endif

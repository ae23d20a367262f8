/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_OFFLINE_H
#define TESTS_OFFLINE_H

#include "fake_source.h"

#include <stackpulse/stackpulse.h>

/* A recorder that is fed by a test, and the spool that it wrote. */
struct offline {
	struct fake_source fake;
	struct spulse_recorder_options options;
	struct spulse_recorder *recorder;
	struct spulse_recording_summary summary;
	struct spulse_snapshot *snapshot;
	const struct spulse_source *source;
	struct spulse_stacks *stacks;
	char path[64];
};

/* Options may be changed before the first event is taken. */
void offline_init(struct offline *o, size_t streams);
/* Makes the recorder. */
void offline_start(struct offline *o);
/* Takes everything that was put, finishes and opens what was written. */
void offline_finish(struct offline *o);
void offline_release(struct offline *o);

/* The next stack in file order, as text: "user:1000 kernel:2000 [cut]", innermost first. */
const char *offline_next_stack(struct offline *o);

/* Events that tests put often. */
struct perf_event offline_event(uint32_t type, int32_t pid, int32_t tid, uint64_t time);
struct perf_event offline_mmap(int32_t pid, uint64_t time, uint64_t start, uint64_t len,
			       uint64_t offset, const char *path);
struct perf_event offline_fork(int32_t ppid, int32_t pid, int32_t tid, uint64_t time);
struct perf_event offline_comm(int32_t pid, int32_t tid, uint64_t time, bool exec,
			       const char *name);
/* A user-mode sample without registers. */
struct perf_event offline_sample(int32_t pid, int32_t tid, uint64_t time, uint64_t ip);

#endif

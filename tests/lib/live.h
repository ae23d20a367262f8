/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIVE_H
#define TESTS_LIVE_H

#include "target.h"

#include <stackpulse/stackpulse.h>

/*
 * One recording of a real process, and what came of it. For cmocka: setup skips where the kernel
 * does not permit sampling, and a call of the library that fails ends the test with its message.
 */
struct live {
	char path[64];
	struct target target;
	struct spulse_recorder *recorder;
	struct spulse_recording_summary summary;
	struct spulse_snapshot *snapshot;
	const struct spulse_source *source;
	uint64_t wanted_samples; /* by live_try(); 0 = 20 */
};
extern struct live live;

int live_setup(void **state);
int live_teardown(void **state);

#define LIVE_OPTIONS(...) \
	(&(struct spulse_recorder_options){ \
		.size = sizeof(struct spulse_recorder_options), .frequency = 997, __VA_ARGS__})

void live_succeed(int r, struct spulse_error **err);
void live_attach(enum spulse_attach_mode mode, const struct spulse_recorder_options *options);
/* Polls for a time, or until so many samples are written (at most 20 s). */
void live_poll_for(int milliseconds);
void live_poll_until(uint64_t samples);
/* Finishes and opens what was written; every sample event must be accounted for. */
void live_finish(void);
/* Ends the recording, for another one of the same target. */
void live_forget(void);
/* Samples of a process (0: any) and a thread (0: any). */
size_t live_samples_of(pid_t pid, pid_t tid);
/* Samples, of a process or any, that have an innermost frame in a module of that path's end. */
size_t live_samples_in(pid_t pid, const char *path_end);

/* What a process without our privileges reports of an attempt to record. */
struct live_report {
	int result;
	int errnum;
	char message[2048];
	char warning[512]; /* the last one that was logged */
	uint64_t samples, smallest_ring, largest_ring, soft_descriptors;
	size_t frames; /* of the deepest stack */
	size_t kernel_frames;
	size_t without_module; /* samples whose innermost frame is in none */
	bool kernel_enabled;
	int error; /* of the preparation: errno */
};

/*
 * Runs `body` in a child process, whose report comes back. Which user it is the body decides:
 * live_become() leaves root for a user of no one else, as locked memory is counted per user.
 */
struct live_report live_in_child(void (*body)(struct live_report *report));
#define LIVE_USER 61000
/* Drops all privileges but those capabilities (bits); false when that is not possible. */
bool live_become(uid_t user, uint64_t capabilities);
/* Records live.target for a while and reports how it went. */
void live_try(struct live_report *report, enum spulse_attach_mode mode,
	      const struct spulse_recorder_options *options);

#endif

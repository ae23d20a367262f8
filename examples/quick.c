/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Samples a running process for ten seconds and prints every frame of every stack. */
#include <stackpulse/stackpulse.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int record(pid_t pid, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(recorder) recorder = NULL;
	time_t end = time(NULL) + 10;
	int r;

	r = spulse_recorder_attach(pid, path, SPULSE_ATTACH_STOP,
				   SPULSE_OPTS(recorder_options, .frequency = 99,
					       .stack_size = 60 * 1024),
				   &recorder, err);
	if (r < 0)
		return r;
	while (time(NULL) < end) {
		r = spulse_recorder_process_is_active(recorder, pid, err);
		if (r <= 0)
			break;
		r = spulse_recorder_poll(recorder, 100000000, NULL, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : spulse_recorder_finish(recorder, NULL, err);
}

static int show(const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_resolved *frames;
	const struct spulse_stack *stack;
	char name[512];
	int r;

	r = spulse_snapshot_open(path, &snapshot, err);
	if (r < 0)
		return r;
	r = spulse_symbolizer_new(spulse_snapshot_source(snapshot), NULL, &symbolizer, err);
	if (r < 0)
		return r;
	r = spulse_snapshot_stacks(snapshot, &stacks, err);
	if (r < 0)
		return r;
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &frames, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < spulse_resolved_count(frames); i++)
			puts(spulse_resolved_frame_display_name(spulse_resolved_at(frames, i), name,
								sizeof(name)));
	}
	return r;
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	long pid = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

	if (!spulse_pid_valid(pid)) {
		fprintf(stderr, "usage: quick PID\n");
		return 2;
	}
	if (record((pid_t)pid, "profile.spool", &err) < 0 || show("profile.spool", &err) < 0) {
		fprintf(stderr, "quick: %s\n", spulse_error_message(err));
		return 1;
	}
	return 0;
}

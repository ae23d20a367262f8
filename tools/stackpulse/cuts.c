/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cuts.h"

bool cuts_is_generated(const char *path)
{
	if (!path)
		return true;
	/* Mapped for code that is written at run time, although it looks like a file. */
	if (!strncmp(path, "//", 2) || !strncmp(path, "/memfd:", 7) ||
	    !strncmp(path, "/dev/zero", 9))
		return true;
	return path[0] != '/' && strcmp(path, "[vdso]") != 0 && strcmp(path, "[kernel]") != 0;
}

static void count_stack(struct cuts *cuts, const struct spulse_stack *stack)
{
	struct spulse_frame_iter frames = spulse_stack_frames(stack);
	struct spulse_frame_context context, outermost = {0};

	while (spulse_frame_iter_next_context(&frames, &context)) {
		if (!spulse_frame_is_truncated_marker(context.frame)) {
			outermost = context;
			continue;
		}
		cuts->truncated++;
		if (!outermost.frame || outermost.frame->mode == SPULSE_FRAME_USER)
			cuts->generated += cuts_is_generated(
				outermost.module ? spulse_module_path(outermost.module) : NULL);
		return;
	}
}

int cuts_count(struct cuts *cuts, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_replay_open(path, &replay, err);

	*cuts = (struct cuts){0};
	if (r < 0 || (r = spulse_replay_stacks(replay, &stacks, err)) < 0)
		return r;
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0)
		count_stack(cuts, stack);
	return r;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "marks.h"
#include "mem.h"

static unsigned int marks_of_frames(const struct spulse_resolved *resolved)
{
	unsigned int found = MARK_KNOWN;

	for (size_t i = 0; i < spulse_resolved_count(resolved); i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(resolved, i);

		if (spulse_resolved_frame_kind(frame) == SPULSE_FRAME_KIND_PYTHON)
			found |= MARK_PYTHON;
		if (spulse_resolved_frame_is_python_runtime(frame))
			found |= MARK_INTERPRETER;
	}
	return found;
}

int marks_of_stack(struct marks *marks, const struct spulse_source *source,
		   struct spulse_symbolizer *symbolizer, struct spulse_stack_key key,
		   unsigned int *marks_out, struct spulse_error **err)
{
	size_t count, depth = 0;
	const struct spulse_stack_node *nodes = spulse_source_stack_nodes(source, &count);
	const struct spulse_resolved *resolved;
	unsigned int found;
	uint32_t at;
	int r;

	while (marks->count < count)
		MEM_PUSH(marks->of, marks->count, marks->cap) = 0;
	for (at = key.node; at < count && !marks->of[at]; at = nodes[at].prefix)
		MEM_PUSH(marks->path, depth, marks->path_cap) = at;
	found = at < count ? marks->of[at] : MARK_KNOWN;
	while (depth--) {
		at = marks->path[depth];
		r = spulse_symbolizer_resolve_frame(symbolizer, key.pid, nodes[at].frame, &resolved,
						    err);
		if (r < 0)
			return r;
		found |= marks_of_frames(resolved);
		marks->of[at] = (unsigned char)found;
	}
	*marks_out = found;
	return 0;
}

void marks_release(struct marks *marks)
{
	free(marks->of);
	free(marks->path);
	*marks = (struct marks){0};
}

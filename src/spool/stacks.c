/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include "paths.h"
#include "stream.h"

enum { BLOCK_SAMPLES = 256 };

struct spulse_stacks {
	struct spulse_stack stack;
	struct paths paths;
	const struct raw_sample *next, *end; /* decoded already */
	struct stream *stream; /* where more comes from, or NULL */
	struct raw_sample block[];
};

static int stacks_new(const struct spulse_source *source, size_t block,
		      struct spulse_stacks **stacks_out, struct spulse_error **err)
{
	struct spulse_stacks *stacks = malloc(sizeof(*stacks) + block * sizeof(*stacks->block));

	if (!stacks)
		return err_no_memory(err);
	*stacks = (struct spulse_stacks){
		.stack = { .source = source, .node = NODE_ROOT },
	};
	*stacks_out = stacks;
	return 0;
}

int stacks_over_array(const struct spulse_source *source, const struct raw_sample *samples,
		      size_t count, struct spulse_stacks **stacks_out, struct spulse_error **err)
{
	int r = stacks_new(source, 0, stacks_out, err);

	if (r == 0 && count) {
		(*stacks_out)->next = samples;
		(*stacks_out)->end = samples + count;
	}
	return r;
}

int stacks_over_stream(struct stream *stream, struct spulse_stacks **stacks_out,
		       struct spulse_error **err)
{
	int r = stacks_new(stream->source, BLOCK_SAMPLES, stacks_out, err);

	if (r == 0)
		(*stacks_out)->stream = stream;
	return r;
}

/* Decodes further samples: 1, 0 at the end. */
static int refill(struct spulse_stacks *stacks, struct spulse_error **err)
{
	ssize_t count;

	if (!stacks->stream)
		return 0;
	count = stream_take(stacks->stream, stacks->block, NULL, BLOCK_SAMPLES, err);
	if (count <= 0)
		return count;
	stacks->next = stacks->block;
	stacks->end = stacks->block + count;
	return 1;
}

int spulse_stacks_next(struct spulse_stacks *stacks, const struct spulse_stack **stack_out,
		       struct spulse_error **err)
{
	const struct raw_sample *raw;
	int r;

	if (stacks->next == stacks->end) {
		r = refill(stacks, err);
		if (r <= 0)
			return r;
	}
	raw = stacks->next++;
	stacks->stack.sample = sample_from_raw(stacks->stack.source, raw);
	stacks->stack.node = raw->node;
	*stack_out = &stacks->stack;
	return 1;
}

int spulse_stacks_frame_ids(struct spulse_stacks *stacks, const uint32_t **ids_out,
			    size_t *count_out, struct spulse_error **err)
{
	const struct spulse_source *source = stacks->stack.source;
	uint32_t node = stacks->stack.node;

	if (node >= source->nodes.len)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no stack yet");
	*ids_out = paths_get(&stacks->paths, source, node);
	if (!*ids_out)
		return err_no_memory(err);
	*count_out = source_depth(source, node);
	return 0;
}

uint64_t spulse_stacks_remaining(const struct spulse_stacks *stacks)
{
	return (stacks->stream ? stacks->stream->remaining : 0) + (stacks->end - stacks->next);
}

void spulse_stacks_free(struct spulse_stacks *stacks)
{
	if (!stacks)
		return;
	stream_free(stacks->stream);
	paths_release(&stacks->paths);
	free(stacks);
}

const struct spulse_sample *spulse_stack_sample(const struct spulse_stack *stack)
{
	return &stack->sample;
}

pid_t spulse_stack_pid(const struct spulse_stack *stack)
{
	return stack->sample.pid;
}

pid_t spulse_stack_tid(const struct spulse_stack *stack)
{
	return stack->sample.tid;
}

uint64_t spulse_stack_timestamp_ns(const struct spulse_stack *stack)
{
	return stack->sample.timestamp_ns;
}

struct spulse_stack_key spulse_stack_key(const struct spulse_stack *stack)
{
	return (struct spulse_stack_key){ stack->source->number, stack->sample.pid, stack->node };
}

uint32_t spulse_stack_depth(const struct spulse_stack *stack)
{
	return source_depth(stack->source, stack->node);
}

const struct spulse_source *spulse_stack_source(const struct spulse_stack *stack)
{
	return stack->source;
}

struct spulse_frame_iter spulse_stack_frames(const struct spulse_stack *stack)
{
	return (struct spulse_frame_iter){
		.source = stack->source,
		.nodes = stack->source->nodes.data,
		.frames = stack->source->frames.data,
		.pid = stack->sample.pid,
		.node = stack->node,
	};
}

const struct spulse_frame *spulse_frame_iter_next(struct spulse_frame_iter *iter)
{
	const struct spulse_stack_node *node;

	if (iter->node == NODE_ROOT)
		return NULL;
	node = &iter->nodes[iter->node];
	iter->node = node->prefix;
	return &iter->frames[node->frame];
}

uint32_t spool_frame_iter_next_id(struct spulse_frame_iter *iter)
{
	const struct spulse_stack_node *node;

	if (iter->node == NODE_ROOT)
		return UINT32_MAX;
	node = &iter->nodes[iter->node];
	iter->node = node->prefix;
	return node->frame;
}

/* Fills the context of a frame that is there; returns whether it has a module. */
static bool bind(const struct spulse_source *source, pid_t pid, uint32_t id,
		 struct spulse_frame_context *context)
{
	const struct spulse_frame *frame = &source->frames.data[id];
	const struct spulse_module *module = NULL;

	*context = (struct spulse_frame_context){ frame, NULL, frame->file_relative_ip };
	if (frame->module_id != SPULSE_NO_MODULE) {
		context->module = source->modules.data[frame->module_id];
		return true;
	}
	if (frame->mode != SPULSE_FRAME_TRUNCATED)
		module = bind_find(source, pid, id);
	if (!module)
		return false;
	context->module = module;
	context->file_relative_ip = frame->abs_ip - module->start + module->file_offset;
	return true;
}

bool spulse_frame_iter_next_context(struct spulse_frame_iter *iter,
				    struct spulse_frame_context *context_out)
{
	uint32_t id = spool_frame_iter_next_id(iter);

	if (id == UINT32_MAX)
		return false;
	bind(iter->source, iter->pid, id, context_out);
	return true;
}

bool spulse_source_bind(const struct spulse_source *source, pid_t pid, uint32_t frame_id,
			struct spulse_frame_context *context_out)
{
	return frame_id < source->frames.len && bind(source, pid, frame_id, context_out);
}

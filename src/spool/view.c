/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "source.h"

/* What a source shows: thin accessors. */

bool spulse_source_recovered_from_truncated_tail(const struct spulse_source *source)
{
	return source->recovered;
}

enum spulse_spool_format spulse_source_format(const struct spulse_source *source)
{
	return source->header.format;
}

const char *spulse_source_path(const struct spulse_source *source)
{
	return source->path;
}

size_t spulse_source_module_count(const struct spulse_source *source)
{
	return source->annotations.len ? source->plain.len : source->modules.len;
}

const struct spulse_module *spulse_source_module(const struct spulse_source *source, size_t index)
{
	if (index >= spulse_source_module_count(source))
		return NULL;
	return source->modules.data[source->annotations.len ? source->plain.data[index] : index];
}

const struct spulse_module *spulse_source_module_by_id(const struct spulse_source *source,
						       uint32_t id)
{
	return id < source->modules.len ? source->modules.data[id] : NULL;
}

size_t spulse_source_raw_module_count(const struct spulse_source *source)
{
	return source->modules.len;
}

const struct spulse_frame *spulse_source_frames(const struct spulse_source *source,
						size_t *count_out)
{
	*count_out = source->frames.len;
	return source->frames.data;
}

const struct spulse_stack_node *spulse_source_stack_nodes(const struct spulse_source *source,
							  size_t *count_out)
{
	*count_out = source->nodes.len;
	return source->nodes.data;
}

const struct spulse_thread *spulse_source_threads(const struct spulse_source *source,
						  size_t *count_out)
{
	*count_out = source->threads.len;
	return source->threads.data;
}

const struct spulse_python_runtime *
spulse_source_python_runtimes(const struct spulse_source *source, size_t *count_out)
{
	*count_out = source->pythons.len;
	return source->pythons.data;
}

const pid_t *spulse_source_processes(const struct spulse_source *source, size_t *count_out)
{
	return source_sorted_processes(source, count_out);
}

const struct spulse_annotation *spulse_source_annotations(const struct spulse_source *source,
							  size_t *count_out)
{
	*count_out = source->annotations.len;
	return source->annotations.data;
}

bool spulse_source_next_kernel_address(const struct spulse_source *source, size_t *position,
				       uint64_t *address_out)
{
	while (*position < source->frames.len) {
		const struct spulse_frame *frame = &source->frames.data[(*position)++];

		if (frame->mode == SPULSE_FRAME_KERNEL) {
			*address_out = frame->abs_ip;
			return true;
		}
	}
	return false;
}

const struct spulse_jit_symbol *spulse_source_jit_symbols(const struct spulse_source *source,
							  uint32_t module_id, size_t *count_out)
{
	const struct spulse_module *module = spulse_source_module_by_id(source, module_id);

	*count_out = module ? module->symbol_count : 0;
	if (!module || !module->is_jit)
		return NULL;
	return module->symbols ? module->symbols : (const struct spulse_jit_symbol *)module;
}

struct spool_attachment *spool_source_attachment(const struct spulse_source *source)
{
	return source->attachment;
}

uint64_t spool_source_number(const struct spulse_source *source)
{
	return source->number;
}

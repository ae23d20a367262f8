/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Symbols that a JIT registered for a module: the one with the latest start that still covers the
 * address. A big symbol may span any number of short ones that have ended, so that walking back
 * from an address is no option: a module with many gets a flat index at its first look-up.
 */
#include <stdlib.h>

#include "native/spans.h"
#include "symbolizer.h"

enum { WALKED = 32 }; /* so few are not worth an index */

static bool build_index(struct spans *spans, const struct spulse_jit_symbol *symbols, size_t count)
{
	struct span_range *ranges = calloc(count, sizeof(*ranges));
	bool built;

	/* The depth puts the later of two with one start inside. */
	for (size_t i = 0; i < count && ranges; i++)
		ranges[i] = (struct span_range){ symbols[i].start, symbols[i].end, i, i };
	built = ranges && spans_build(spans, ranges, count);
	free(ranges);
	return built;
}

static const struct spans *index_of(struct process *process, uint32_t module,
				    const struct spulse_jit_symbol *symbols, size_t count)
{
	bool added;
	uint64_t *slot = u64map_add(&process->jit, module, &added);
	struct spans *spans;

	if (!slot)
		return NULL;
	if (!added)
		return (const struct spans *)(uintptr_t)*slot;
	spans = calloc(1, sizeof(*spans));
	if (!spans || !build_index(spans, symbols, count)) {
		free(spans);
		u64map_remove(&process->jit, module);
		return NULL;
	}
	*slot = (uintptr_t)spans;
	return spans;
}

int jit_find(struct process *process, uint32_t module, const struct spulse_jit_symbol *symbols,
	     size_t count, uint64_t address, const struct spulse_jit_symbol **symbol_out,
	     struct spulse_error **err)
{
	const struct spans *spans;
	uint32_t id;

	if (count > WALKED) {
		spans = index_of(process, module, symbols, count);
		if (!spans)
			return err_no_memory(err);
		id = spans_find(spans, address);
		*symbol_out = id == SPAN_NONE ? NULL : &symbols[id];
		return 0;
	}
	*symbol_out = NULL;
	for (size_t i = 0; i < count && symbols[i].start <= address; i++)
		if (address < symbols[i].end)
			*symbol_out = &symbols[i];
	return 0;
}

static void free_index(uint64_t value)
{
	struct spans *spans = (struct spans *)(uintptr_t)value;

	spans_release(spans);
	free(spans);
}

void jit_forget_module(struct process *process, uint32_t module)
{
	uint64_t *slot = u64map_get(&process->jit, module);

	if (!slot)
		return;
	free_index(*slot);
	u64map_remove(&process->jit, module);
}

void jit_forget(struct process *process)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&process->jit, &i)))
		free_index(slot->value);
	u64map_release(&process->jit);
}

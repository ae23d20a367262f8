/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "request.h"

bool results_reset(struct spulse_native_results *results, size_t count)
{
	if (count > results->count || !results->chains) {
		struct result_chain *chains = realloc(results->chains,
						      (count + 1) * sizeof(*chains));

		if (!chains)
			return false;
		results->chains = chains;
	}
	memset(results->chains, 0xff, (count + 1) * sizeof(*results->chains));
	results->count = count;
	results->entries.len = 0;
	arena_release(&results->strings);
	return true;
}

void results_release(struct spulse_native_results *results)
{
	free(results->chains);
	vec_free(&results->entries);
	arena_release(&results->strings);
}

int spulse_native_results_new(size_t count, struct spulse_native_results **results_out,
			      struct spulse_error **err)
{
	struct spulse_native_results *results = calloc(1, sizeof(*results));

	if (!results || count > SIZE_MAX / sizeof(struct result_chain) - 1 ||
	    !results_reset(results, count)) {
		spulse_native_results_free(results);
		return err_no_memory(err);
	}
	*results_out = results;
	return 0;
}

void spulse_native_results_free(struct spulse_native_results *results)
{
	if (!results)
		return;
	results_release(results);
	free(results);
}

/* Copies one string; NULL then means that memory ran out. */
static void keep_string(struct spulse_native_results *results, const char **string)
{
	if (*string && !results->borrows)
		*string = arena_strndup(&results->strings, *string, strlen(*string));
}

static bool keep_strings(struct spulse_native_results *results,
			 struct spulse_native_symbol *symbol)
{
	const struct spulse_native_symbol given = *symbol;

	keep_string(results, &symbol->name);
	keep_string(results, &symbol->module);
	keep_string(results, &symbol->file);
	keep_string(results, &symbol->suffix);
	return symbol->name && !symbol->module == !given.module && !symbol->file == !given.file &&
	       !symbol->suffix == !given.suffix;
}

int spulse_native_results_add(struct spulse_native_results *results, size_t index,
			      const struct spulse_native_symbol *symbol,
			      struct spulse_error **err)
{
	struct result_entry entry = { .next = UINT32_MAX };
	struct result_chain *chain;
	uint32_t at = results->entries.len;
	int r;

	if (index >= results->count)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "result %zu of %zu lookups", index, results->count);
	r = options_read(&entry.symbol, sizeof(entry.symbol), symbol, "fields of the symbol", err);
	if (r < 0)
		return r;
	if (!entry.symbol.name)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "a native symbol needs a name");
	if (at == UINT32_MAX || !keep_strings(results, &entry.symbol) ||
	    !vec_push(&results->entries, entry))
		return err_no_memory(err);
	chain = &results->chains[index];
	if (chain->first == UINT32_MAX)
		chain->first = at;
	else
		results->entries.data[chain->last].next = at;
	chain->last = at;
	return 0;
}

size_t spulse_native_results_count(const struct spulse_native_results *results, size_t index)
{
	size_t n = 0;

	if (index >= results->count)
		return 0;
	for (uint32_t at = results->chains[index].first; at != UINT32_MAX;
	     at = results->entries.data[at].next)
		n++;
	return n;
}

const struct spulse_native_symbol *
spulse_native_results_at(const struct spulse_native_results *results, size_t index, size_t level)
{
	uint32_t at;

	if (index >= results->count)
		return NULL;
	at = results->chains[index].first;
	for (; at != UINT32_MAX && level; level--)
		at = results->entries.data[at].next;
	return at == UINT32_MAX ? NULL : &results->entries.data[at].symbol;
}

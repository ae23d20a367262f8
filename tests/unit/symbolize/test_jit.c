/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "random.h"
#include "symbolize/symbolizer.h"

enum { MODULE = 7 };

/* The rule as it is written: the latest start that has not ended, the later of equal ones. */
static const struct spulse_jit_symbol *by_rule(const struct spulse_jit_symbol *symbols,
					       size_t count, uint64_t address)
{
	for (size_t i = count; i-- > 0;)
		if (symbols[i].start <= address && address < symbols[i].end)
			return &symbols[i];
	return NULL;
}

static const struct spulse_jit_symbol *find(struct process *process,
					    const struct spulse_jit_symbol *symbols, size_t count,
					    uint64_t address)
{
	const struct spulse_jit_symbol *found = NULL;

	assert_int_equal(jit_find(process, MODULE, symbols, count, address, &found, NULL), 0);
	return found;
}

static int compare_starts(const void *a, const void *b)
{
	const struct spulse_jit_symbol *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void the_latest_start_that_covers_answers(void **state)
{
	struct random random = { .state = 5 };

	(void)state;
	/* Few are walked, many are indexed: both sides of the limit. */
	for (size_t count = 0; count < 200; count += 1 + count / 8) {
		struct spulse_jit_symbol symbols[200] = { 0 };
		struct process process = { 0 };

		for (size_t i = 0; i < count; i++) {
			symbols[i].start = random_below(&random, 400);
			symbols[i].end = symbols[i].start + random_below(&random, 1 + i % 90);
		}
		qsort(symbols, count, sizeof(*symbols), compare_starts);
		for (uint64_t at = 0; at < 500; at++)
			assert_ptr_equal(find(&process, symbols, count, at),
					 by_rule(symbols, count, at));
		jit_forget_module(&process, MODULE);
		jit_forget_module(&process, MODULE);
		jit_forget(&process);
	}
}

/*
 * Walked back from each address this is 10^11 steps: minutes. One symbol spans all, and the ones
 * that it hides have ended before each address that is asked.
 */
static void one_that_hides_many_costs_little(void **state)
{
	const size_t count = 500000;
	struct spulse_jit_symbol *symbols = calloc(count, sizeof(*symbols));
	struct process process = { 0 };

	(void)state;
	assert_non_null(symbols);
	symbols[0] = (struct spulse_jit_symbol){ .start = 0x1000, .end = 0x1000 + 32 * count };
	for (size_t i = 1; i < count; i++)
		symbols[i] = (struct spulse_jit_symbol){ .start = 0x1000 + 16 * i,
							 .end = 0x1000 + 16 * i + 8 };
	for (size_t i = 0; i < 200000; i++)
		assert_ptr_equal(find(&process, symbols, count, 0x1000 + 16 * count + i),
				 &symbols[0]);
	assert_ptr_equal(find(&process, symbols, count, 0x1000 + 16 * 77), &symbols[77]);
	jit_forget(&process);
	free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_latest_start_that_covers_answers),
		cmocka_unit_test(one_that_hides_many_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

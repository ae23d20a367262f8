/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "live.h"

static uint64_t power_of_two_up(uint64_t n)
{
	return n <= 1 ? 1 : 1ull << (64 - __builtin_clzll(n - 1));
}

static uint64_t power_of_two_down(uint64_t n)
{
	return 1ull << (63 - __builtin_clzll(n));
}

/* Bytes for so many stacks; at least the largest record fits. */
static int bytes_for(uint64_t stack_size, uint64_t stacks, size_t page, uint64_t *bytes,
		     struct spulse_error **err)
{
	uint64_t need;

	if (mul_overflows(MAX(stack_size, page), stacks, &need) || need > PERF_RING_CEILING)
		goto too_big;
	need = MAX(need, PERF_RECORD_MAX);
	*bytes = power_of_two_up((need + page - 1) / page) * page;
	if (*bytes <= PERF_RING_CEILING)
		return 0;
too_big:
	return err_set(err, SPULSE_ERROR_INVALID_INPUT,
		       "a ring for %llu stacks of %llu bytes is above the limit of %llu MiB",
		       (unsigned long long)stacks, (unsigned long long)stack_size,
		       PERF_RING_CEILING >> 20);
}

int perf_ring_size(uint64_t stack_size, uint32_t stacks, size_t page, size_t cpus,
		   uint64_t *minimum_out, uint64_t *wanted_out, struct spulse_error **err)
{
	uint64_t minimum = 0, wanted = 0, budget = PERF_RING_BUDGET / MAX(cpus, 1);
	int r = bytes_for(stack_size, stacks ? stacks : PERF_DEFAULT_RING_STACKS, page, &wanted,
			  err);

	if (r == 0)
		r = bytes_for(stack_size, 1, page, &minimum, err);
	if (r < 0)
		return r;
	if (budget < minimum)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "%zu CPUs leave %llu KiB for each ring, but one sample needs "
			       "%llu KiB",
			       cpus, (unsigned long long)budget >> 10,
			       (unsigned long long)minimum >> 10);
	*minimum_out = minimum;
	*wanted_out = MIN(wanted, power_of_two_down(budget / page) * page);
	return 0;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A few functions, one inlined twice, for their debug information. */
volatile int seed_sink;

static inline __attribute__((always_inline)) int twice(int x)
{
	return seed_sink * 2 + x;
}

__attribute__((noinline, cold)) static int rare(int x)
{
	return twice(x) / 3;
}

int seed_entry(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i & 1 ? twice(i) : rare(i);
	return sum;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What stands for a kernel's uncompressed image: a function with an inlined call, and its lines. */
volatile int kernel_sink;

static inline __attribute__((always_inline)) int step_inside(int x)
{
	return kernel_sink * 2 + x;
}

int do_the_work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += step_inside(i);
	return sum;
}

/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A library with one function that takes time. Tests load copies of it under other names. */
__attribute__((visibility("default"))) unsigned long hot_spin(unsigned long n);

unsigned long hot_spin(unsigned long n)
{
	volatile unsigned long sink = 0;

	while (n--)
		sink = sink * 31 + n;
	return sink;
}

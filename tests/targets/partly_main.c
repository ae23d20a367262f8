/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Works in libpartly for SECONDS. usage: partly_main SECONDS (of CPU time) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "partly.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 2.0);
	unsigned long x = 1;

	while (now() < end)
		x = partly_entry(x);
	printf("%lx\n", x);
	return 0;
}

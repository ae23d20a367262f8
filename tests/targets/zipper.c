/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Compresses pseudo-random text with zlib until the time is over. usage: zipper SECONDS (of CPU time) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

enum { SIZE = 1 << 20 };

static unsigned char text[SIZE], packed[SIZE + SIZE / 8 + 64];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 2.0);
	unsigned int x = 1;
	uLongf len = 0;

	for (int i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = "etaoin shrdlu"[(x >> 16) % 13];
	}
	while (now() < end) {
		len = sizeof(packed);
		if (compress2(packed, &len, text, SIZE, 9) != Z_OK)
			return 1;
	}
	printf("%lu\n", (unsigned long)len);
	return 0;
}

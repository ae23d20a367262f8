/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* One of many libraries, each with code of its own: 64 functions that call each other. */
#include <stdint.h>

#define STEP(n, next) \
	static __attribute__((noinline)) uint64_t step##n(uint64_t x, int depth) \
	{ \
		for (int i = 0; i < 200; i++) \
			x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + ID * 64 + n; \
		return (depth ? step##next(x, depth - 1) : x) + n; \
	}
#define DECLARE(n) static uint64_t step##n(uint64_t x, int depth);
#define EIGHT(M, t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7)

EIGHT(DECLARE, 1) EIGHT(DECLARE, 2) EIGHT(DECLARE, 3) EIGHT(DECLARE, 4)
STEP(10, 21) STEP(11, 32) STEP(12, 43) STEP(13, 24) STEP(14, 35) STEP(15, 46) STEP(16, 27)
STEP(17, 30) STEP(20, 31) STEP(21, 42) STEP(22, 13) STEP(23, 34) STEP(24, 45) STEP(25, 16)
STEP(26, 37) STEP(27, 40) STEP(30, 41) STEP(31, 12) STEP(32, 23) STEP(33, 44) STEP(34, 15)
STEP(35, 26) STEP(36, 47) STEP(37, 10) STEP(40, 11) STEP(41, 22) STEP(42, 33) STEP(43, 14)
STEP(44, 25) STEP(45, 36) STEP(46, 17) STEP(47, 20)

uint64_t kin_run(uint64_t x, int depth)
{
	return step10(x, depth) + step22(x, depth) + step33(x, depth) + step44(x, depth);
}

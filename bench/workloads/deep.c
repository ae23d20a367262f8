// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// Deep C recursion. Depth varies pseudo-randomly in 16..200; four mutually
// recursive functions with different frame sizes. Built -O2 -fomit-frame-pointer.
// usage: deep [work units]   (prints elapsed seconds and a checksum)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef uint64_t u64;
#define NI __attribute__((noinline, noclone))
static volatile u64 sink;
NI u64 fa(u64 x, int d); NI u64 fb(u64 x, int d); NI u64 fc(u64 x, int d); NI u64 fd(u64 x, int d);
static inline u64 mix(u64 x) { x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 29; return x; }
NI u64 leaf(u64 x) { for (int i = 0; i < 2000; i++) x = mix(x + i); return x; }
NI u64 fa(u64 x, int d) { if (d <= 0) return leaf(x); u64 r = (x & 1) ? fb(mix(x), d - 1) : fc(x + 3, d - 1); return r ^ x; }
NI u64 fb(u64 x, int d) { volatile char pad[64]; pad[d & 63] = (char)x; if (d <= 0) return leaf(x); u64 r = fd(mix(x), d - 1); return r + (u64)pad[d & 63]; }
NI u64 fc(u64 x, int d) { volatile char pad[200]; pad[d & 127] = (char)x; if (d <= 0) return leaf(x); u64 r = fa(mix(x + 7), d - 1); return r + (u64)pad[d & 127]; }
NI u64 fd(u64 x, int d) { if (d <= 0) return leaf(x); u64 r = (x & 2) ? fa(x + 1, d - 1) : fb(mix(x), d - 1); return r * 3 + x; }
int main(int c, char **v) {
  long n = c > 1 ? atol(v[1]) : 1000000;
  struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a);
  u64 s = 12345;
  for (long i = 0; i < n; i++) { s = mix(s + (u64)i); s += fa(s, 14 + (int)((s >> 20) % 185)); }
  sink = s; clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%.4f %llx\n", (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9, (unsigned long long)s);
  return 0;
}

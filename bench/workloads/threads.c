// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// N hot threads (64 by default), each recursing to its own depth. usage: threads [nthreads] [seconds]
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static atomic_int stop; static atomic_ulong total;
__attribute__((noinline)) unsigned long spin(unsigned long x) { for (int i = 0; i < 5000; i++) x = x * 6364136223846793005ul + 1442695040888963407ul; return x; }
__attribute__((noinline)) unsigned long down(unsigned long x, int d) { if (d == 0) return spin(x); unsigned long r = down(x * 3, d - 1); return r + (x >> 3); }
static void *body(void *a) { long id = (long)a; unsigned long x = (unsigned long)id, n = 0; while (!stop) { x += down(x, 4 + (int)(id % 40)); n++; } total += n; return (void *)x; }
int main(int c, char **v) { int n = c > 1 ? atoi(v[1]) : 64; double s = c > 2 ? atof(v[2]) : 5; pthread_t t[1024];
  for (long i = 0; i < n && i < 1024; i++) pthread_create(&t[i], 0, body, (void *)i);
  usleep((useconds_t)(s * 1e6)); stop = 1; for (int i = 0; i < n; i++) pthread_join(t[i], 0); printf("%lu\n", total); }

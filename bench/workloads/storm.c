// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// fork/exec storm: N short-lived processes, each exec'ing itself with "child" and computing ~2 ms. usage: storm [n]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static unsigned long work(unsigned long x, int n) { for (int i = 0; i < n; i++) x = x * 6364136223846793005ul + (x >> 7); return x; }
__attribute__((noinline)) static unsigned long nest(unsigned long x, int d) { if (!d) return work(x, 1500000); return nest(x + 1, d - 1) ^ 5; }
int main(int c, char **v) { if (c > 1 && !strcmp(v[1], "child")) return (int)(nest((unsigned long)getpid(), 10) & 1);
  int n = c > 1 ? atoi(v[1]) : 500; struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < n; i++) { pid_t p = fork(); if (!p) { execl("/proc/self/exe", "storm", "child", (char *)0); _exit(127); } int st; waitpid(p, &st, 0); }
  clock_gettime(CLOCK_MONOTONIC, &b); printf("%.4f\n", (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9); }

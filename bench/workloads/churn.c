// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// mapping churn: dlopen/dlclose of 8 plugins + anonymous executable mmap/munmap, running code from each. usage: churn [rounds]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int c, char **v) { int rounds = c > 1 ? atoi(v[1]) : 200; char exe[PATH_MAX] = {0}; if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) return 1; char *dir = dirname(exe);
  struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a); unsigned long t = 1;
  for (int r = 0; r < rounds; r++) for (int i = 0; i < 8; i++) { char p[PATH_MAX + 32]; snprintf(p, sizeof p, "%s/plug%d.so", dir, i);
      void *h = dlopen(p, RTLD_NOW); if (!h) { puts(dlerror()); return 1; } unsigned long (*f)(unsigned long, int) = (unsigned long (*)(unsigned long, int))dlsym(h, "plug"); t = f(t, 12);
      unsigned char code[] = {0x48, 0x89, 0xf8, 0xb9, 0x40, 0x0d, 0x03, 0x00, 0x48, 0x69, 0xc0, 0x6d, 0x4e, 0xc6, 0x41, 0xff, 0xc9, 0x75, 0xf5, 0xc3}; // imul loop, 200000 times
      void *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(m, code, sizeof code); mprotect(m, 4096, PROT_READ | PROT_EXEC);
      t += ((unsigned long (*)(unsigned long))m)(t | 1); munmap(m, 4096); dlclose(h); }
  clock_gettime(CLOCK_MONOTONIC, &b); printf("%.4f %lx\n", (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9, t); }

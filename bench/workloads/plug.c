// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// plugin for churn.c (built 8 times with -DID=n)
__attribute__((noinline)) unsigned long plug_leaf(unsigned long x) { for (int i = 0; i < 200000 + ID; i++) x = x * 6364136223846793005ul + (x >> 9); return x; }
unsigned long plug(unsigned long x, int d) { if (!d) return plug_leaf(x); return plug(x + ID, d - 1) ^ 9; }

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
# Python call tree; run with -X perf (CPython >= 3.12) for perf-map frames. usage: pyload.py [rounds]
import sys, time
def leaf(n):
    t = 0
    for i in range(n):
        t = (t * 31 + i) & 0xffffffff
    return t
def walk(d, n):
    return leaf(n) if d == 0 else walk(d - 1, n) ^ d
def parse(n):
    return sum(len(str(i).split("1")) for i in range(n))
def main():
    t0 = time.perf_counter(); r = 0
    for k in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        r ^= walk(10 + k % 20, 20000) ^ parse(3000)
    print("%.4f %x" % (time.perf_counter() - t0, r))
main()

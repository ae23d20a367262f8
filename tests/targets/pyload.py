# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""A Python call tree: leaf < walk (ten deep) < main. usage: pyload.py SECONDS (of CPU time)"""
import sys
import time


def leaf(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) & 0xFFFFFFFF
    return total


def walk(depth, n):
    if depth == 0:
        return leaf(n)
    return walk(depth - 1, n) ^ depth


def main():
    end = time.process_time() + float(sys.argv[1])
    result = 0
    while time.process_time() < end:
        result ^= walk(10, 20000)
    print(f"{result:x}")


main()

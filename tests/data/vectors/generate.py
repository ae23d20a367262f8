#!/usr/bin/env python3
"""Build the spool vectors.

generate.py [OUT]        write v3/ v4/ tables/ tail/ and manifest.json below OUT (default: here)
generate.py --big OUT    write the large on-demand spools (not kept in the tree) and big.json

One case is NAME.spool plus NAME.json. The JSON holds `outcome` (valid, recovered or error), a
one-line `why`, and either `document` (decoded content) or `error` (class, reason, record position).
"""

import hashlib
import json
import os
import sys

sys.dont_write_bytecode = True
from spulse import *  # noqa: E402,F403

HEAD = {3: lambda: head3(1_700_000_000_000_000, 10_000),
        4: lambda: head4(0, 10_000_000, (5_000_000_000, 1, 1_700_000_000, 250_000_000))}
CASES = []


def case(name, why, body, formats=(3, 4), head=None, outcome=None):
    """body: bytes or callable(format)->bytes. head: bytes replacing the usual header."""
    for format in formats:
        data = (HEAD[format]() if head is None else head) + (
            body(format) if callable(body) else body)
        CASES.append((format, name, why, data, outcome))


def raw(name, why, data, formats=(3, 4), outcome=None):
    for format in formats:
        CASES.append((format, name, why, data(format) if callable(data) else data, outcome))


# A module, one pinned frame, a one-node stack and a thread: enough for samples to stand on.
BASE = (module(0, 7, 0x400000, 0x410000, b"/usr/bin/app", 0x1000, 11, 8, 1, 3)
        + pinned(0, 0, 0x1234) + stack(0, ROOT, 0) + thread(0, 7, 8))
ONE = BASE + sample(1_000, 0, 0)


def every_record(format):
    body = (
        module(0, 7, 0x400000, 0x410000, b"/usr/bin/app", 0x1000, 1311, 8, 1, 3)
        + kernel(1, 0xFFFFFFFF81000000, 0xFFFFFFFF82000000)
        + python(0, 7, 1)
        + pinned(0, 0, 0x1234) + stack(0, ROOT, 0)
        + user(1, 0x7F0000001000) + stack(1, 0, 1)
        + kframe(2, 0xFFFFFFFF81000010) + stack(2, 1, 2)
        + thread(0, 7, 8)
        + sample(1_000_000, 0, 2)
        + cut_marker(3) + stack(3, ROOT, 3) + stack(4, 3, 0)
        + sample(250_000, 0, 4)
        + off_module(0)
        + module(2, 7, 0x400000, 0x408000, b"/usr/bin/other")
        + pinned(4, 2, 0x40) + stack(5, ROOT, 4)
        + sample(-50_000, 0, 5)
        + off_process(7) + python(2_000_000, 7, 0))
    if format == 4:
        body += (jit(3, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"made"), (0x1180, 0x1190, b"inner")])
                 + off_module(3) + pinned(5, 3, 0x108) + stack(6, ROOT, 5) + sample(1, 0, 6))
    return body


def valid():
    for name, head3_, head4_ in (
            ("header-zero", head3(), head4()),
            ("header-max", head3(U64, U64), head4(U64, U64)),
            ("header-127-128", head3(127, 128), head4(127, 128))):
        raw(name, "a header and no records", lambda f, a=head3_, b=head4_: a if f == 3 else b)
    raw("header-padded-varints", "redundant continuation bytes are accepted, up to ten bytes",
        lambda f: (b"SPULSE3\0" if f == 3 else b"SPULSE4\0") + padded(5, 10) + padded(0, 2)
        + (padded(0, 3) if f == 4 else b""))

    case("minimal", "one module, frame, stack node, thread and sample", ONE)
    case("every-record", "each record kind once or more", every_record)

    # varints
    edges = [0, 1, 127, 128, 16383, 16384, (1 << 21) - 1, 1 << 21, (1 << 28) - 1, 1 << 28,
             (1 << 35) - 1, 1 << 35, (1 << 42) - 1, 1 << 42, (1 << 49) - 1, 1 << 49,
             (1 << 56) - 1, 1 << 56, (1 << 63) - 1, 1 << 63, U64]
    case("varint-edges", "inode and generation carry each varint length boundary",
         b"".join(module(i, 7, i << 20, (i << 20) + 4096, b"/m%d" % i, 0, v, 0, 0, U64 - v)
                  for i, v in enumerate(edges)))
    case("varint-padded-in-records", "ids and fields in stretched varints",
         bytes([MODULE]) + padded(0, 2) + padded(14, 3) + padded(0x1000, 10) + padded(0x2000, 9)
         + padded(0, 4) + uv(0) * 3 + padded(0, 5) + b"\0" + padded(2, 6) + b"/p"
         + bytes([FRAME]) + padded(0, 10) + padded(0, 7) + padded(0x10, 8)
         + bytes([STACK]) + padded(0, 3) + padded(ROOT, 10) + padded(0, 2)
         + bytes([THREAD]) + padded(0, 2) + padded(14, 2) + padded(8, 2)
         + bytes([SAMPLE]) + padded(2, 10) + padded(0, 3) + padded(0, 4))
    case("device-32-bit-max", "device numbers at 2^32-1",
         module(0, 7, 0x1000, 0x2000, b"/d", 0, U64, 0xFFFFFFFF, 0xFFFFFFFF, U64))
    case("pid-tid-max", "largest process and thread ids",
         user(0, 1) + stack(0, ROOT, 0) + thread(0, I32_MAX, I32_MAX) + sample(1, 0, 0)
         + python(U64, I32_MAX, 1) + off_process(I32_MAX))
    case("ids-past-one-byte", "300 threads, frames and stack nodes; two-byte ids",
         b"".join(user(i, 0x1000 + i) + stack(i, ROOT if i % 3 == 0 else i - 1, i)
                  + thread(i, 7, 1000 + i) for i in range(300))
         + b"".join(sample(i, 299 - i, i) for i in range(0, 300, 37)))

    # timestamps
    case("time-first-delta-from-zero", "the first delta counts from zero",
         BASE + sample(123_456_789_012, 0, 0) + sample(0, 0, 0) + sample(999, 0, 0)
         + sample(1, 0, 0))
    case("time-backwards", "negative deltas; microsecond mapping never goes below the anchor",
         BASE + sample(5_000_000, 0, 0) + sample(-2_000_000, 0, 0) + sample(-3_000_000, 0, 0)
         + sample(9_000_000, 0, 0))
    case("time-extremes", "deltas of +-2^63 reach 2^64-1 and come back to zero",
         BASE + sample(I64_MAX, 0, 0) + sample(I64_MAX, 0, 0) + sample(1, 0, 0)
         + sample(-(1 << 63), 0, 0) + sample(-I64_MAX, 0, 0))
    case("time-anchor-absent", "start timestamp zero means no anchor", ONE, (3,), head3(0, 0))
    case("time-anchor-saturates", "anchor plus elapsed saturates at 2^64-1",
         BASE + sample(1, 0, 0) + sample(10_000_000, 0, 0), (3,), head3(U64 - 5, 1))

    # binding of unpinned frames
    case("bind-defined-before-module",
         "an unpinned frame only sees modules defined before the frame record",
         user(0, 0x1100) + stack(0, ROOT, 0) + thread(0, 7, 7) + sample(1, 0, 0)
         + module(0, 7, 0x1000, 0x2000, b"/a") + sample(1, 0, 0)
         + user(1, 0x1100) + stack(1, ROOT, 1) + sample(1, 0, 1) + sample(1, 0, 0))
    case("bind-across-remap", "alpha, beta, alpha at one address: each frame keeps its mapping",
         thread(0, 7, 7) + module(0, 7, 0x1000, 0x2000, b"/alpha", 0)
         + user(0, 0x1100) + stack(0, ROOT, 0) + sample(1, 0, 0) + off_module(0)
         + module(1, 7, 0x1000, 0x2000, b"/beta", 0x100)
         + user(1, 0x1100) + stack(1, ROOT, 1) + sample(1, 0, 1) + off_module(1)
         + module(2, 7, 0x1000, 0x2000, b"/alpha", 0)
         + user(2, 0x1100) + stack(2, ROOT, 2) + sample(1, 0, 2)
         + sample(1, 0, 0) + sample(1, 0, 1))
    case("bind-after-deactivation", "a frame defined after its module was retired has no module",
         thread(0, 7, 7) + module(0, 7, 0x1000, 0x2000, b"/a")
         + user(0, 0x1100) + stack(0, ROOT, 0) + off_module(0)
         + user(1, 0x1100) + stack(1, ROOT, 1) + sample(1, 0, 0) + sample(1, 0, 1))
    case("bind-pinned-after-deactivation", "a pinned frame may name a retired module",
         thread(0, 7, 7) + module(0, 7, 0x1000, 0x2000, b"/a", 0x3000) + off_module(0)
         + pinned(0, 0, 0x3010) + stack(0, ROOT, 0) + sample(1, 0, 0))
    case("bind-overlap-newest-wins", "overlapping active modules: the newest containing one wins",
         thread(0, 7, 7) + module(0, 7, 0x1000, 0x5000, b"/old") + module(1, 7, 0x2000, 0x3000, b"/new")
         + user(0, 0x1800) + stack(0, ROOT, 0) + user(1, 0x2800) + stack(1, 0, 1)
         + user(2, 0x3000) + stack(2, 1, 2) + user(3, 0x5000) + stack(3, 2, 3)
         + user(4, 0xFFF) + stack(4, 3, 4) + sample(1, 0, 4) + off_module(1)
         + user(5, 0x2800) + stack(5, ROOT, 5) + sample(1, 0, 5))
    case("bind-per-process", "one unpinned frame, two processes with different mappings",
         module(0, 7, 0x1000, 0x2000, b"/seven") + module(1, 9, 0x1000, 0x2000, b"/nine", 0x40)
         + user(0, 0x1100) + stack(0, ROOT, 0) + thread(0, 7, 7) + thread(1, 9, 9)
         + thread(2, 11, 11) + sample(1, 0, 0) + sample(1, 1, 0) + sample(1, 2, 0))
    case("bind-pinned-in-other-process", "a pinned frame keeps its module in any process",
         module(0, 7, 0x1000, 0x2000, b"/seven") + pinned(0, 0, 0x10) + stack(0, ROOT, 0)
         + thread(0, 9, 9) + sample(1, 0, 0))
    case("bind-kernel", "kernel frames bind to kernel modules in every process; user frames never do",
         kernel(0, 0xFFFFFFFF81000000, 0xFFFFFFFF82000000, offset=0x200)
         + module(1, 7, 0x1000, 0x2000, b"/u")
         + kframe(0, 0xFFFFFFFF81000040) + stack(0, ROOT, 0)
         + user(1, 0xFFFFFFFF81000040) + stack(1, 0, 1)
         + kframe(2, 0x1100) + stack(2, 1, 2) + pinned(3, 0, 0x240) + stack(3, 2, 3)
         + thread(0, 7, 7) + thread(1, 9, 9) + sample(1, 0, 3) + sample(1, 1, 3)
         + off_process(7) + off_module(0)
         + kframe(4, 0xFFFFFFFF81000040) + stack(4, ROOT, 4) + sample(1, 0, 4) + sample(1, 0, 3))
    case("bind-process-deactivation", "retiring a process leaves other owners and later modules alone",
         module(0, 7, 0x1000, 0x2000, b"/a7") + module(1, 9, 0x1000, 0x2000, b"/a9")
         + kernel(2, 0xFFFF800000000000, 0xFFFF800000001000)
         + thread(0, 7, 7) + thread(1, 9, 9) + off_process(7)
         + user(0, 0x1100) + stack(0, ROOT, 0) + kframe(1, 0xFFFF800000000010) + stack(1, 0, 1)
         + sample(1, 0, 1) + sample(1, 1, 1)
         + module(3, 7, 0x1000, 0x2000, b"/b7") + user(2, 0x1100) + stack(2, ROOT, 2)
         + sample(1, 0, 2) + sample(1, 0, 0))
    case("bind-first-deactivation-counts", "a second deactivation does not move the first",
         module(0, 7, 0x1000, 0x2000, b"/a") + thread(0, 7, 7)
         + user(0, 0x1100) + stack(0, ROOT, 0) + off_module(0)
         + user(1, 0x1100) + stack(1, ROOT, 1) + off_module(0) + off_process(7) + off_module(0)
         + sample(1, 0, 0) + sample(1, 0, 1))
    case("bind-offset-overflow", "the newest match wins even when its file offset overflows: no module",
         module(0, 7, 0, 0x1000, b"/older") + module(1, 7, 0, 2, b"/overflow", U64)
         + user(0, 1) + stack(0, ROOT, 0) + user(1, 0) + stack(1, 0, 1)
         + thread(0, 7, 7) + sample(1, 0, 1))

    # frames
    case("frame-span-edges", "first and last byte of a module, and a module spanning nearly everything",
         module(0, 7, 0x1000, 0x2000, b"/a", 0x500) + module(1, 7, 0, U64, b"/all")
         + module(2, 7, 0x1000, 0x2000, b"/high", U64)
         + pinned(0, 0, 0x500) + pinned(1, 0, 0x14FF) + pinned(2, 1, 0) + pinned(3, 1, U64 - 1)
         + pinned(4, 2, U64) + b"".join(stack(i, ROOT if i == 0 else i - 1, i) for i in range(5))
         + thread(0, 7, 7) + sample(1, 0, 4))
    case("frame-other-odd-tags", "odd tags other than 5 are absolute; bit 1 picks kernel, higher bits ignored",
         frame(0, 7, 0x10) + frame(1, 9, 0x20) + frame(2, 11, 0x30) + frame(3, 13, 0x40)
         + frame(4, U64, 0x50) + b"".join(stack(i, ROOT if i == 0 else i - 1, i) for i in range(5))
         + thread(0, 7, 7) + sample(1, 0, 4))
    case("frame-truncation-marker", "marker at the root end, in the middle and alone",
         cut_marker(0) + user(1, 0x1000) + stack(0, ROOT, 0) + stack(1, 0, 1) + stack(2, 1, 0)
         + stack(3, 2, 1) + thread(0, 7, 7) + sample(1, 0, 1) + sample(1, 0, 3) + sample(1, 0, 0))
    case("frame-duplicates", "equal frames under different ids are allowed",
         user(0, 0x1000) + user(1, 0x1000) + stack(0, ROOT, 0) + stack(1, 0, 1)
         + thread(0, 7, 7) + sample(1, 0, 1))
    case("frame-address-extremes", "absolute addresses 0 and 2^64-1 in both modes",
         user(0, 0) + user(1, U64) + kframe(2, 0) + kframe(3, U64)
         + b"".join(stack(i, ROOT if i == 0 else i - 1, i) for i in range(4))
         + thread(0, 7, 7) + sample(1, 0, 3))

    # stacks and threads
    case("stack-sharing", "branches share prefixes; equal nodes may repeat",
         b"".join(user(i, 0x1000 + i) for i in range(5))
         + stack(0, ROOT, 0) + stack(1, 0, 1) + stack(2, 1, 2) + stack(3, 1, 3) + stack(4, ROOT, 4)
         + stack(5, 0, 1) + stack(6, 5, 2) + thread(0, 7, 7)
         + b"".join(sample(1, 0, i) for i in (2, 3, 4, 1, 6)))
    case("stack-deep", "1200 nodes in one chain",
         user(0, 0x1000) + user(1, 0x2000)
         + b"".join(stack(i, ROOT if i == 0 else i - 1, i & 1) for i in range(1200))
         + thread(0, 7, 7) + sample(1, 0, 1199))
    case("stack-recursive-frame", "the same frame in consecutive nodes",
         user(0, 0x1000) + stack(0, ROOT, 0) + stack(1, 0, 0) + stack(2, 1, 0)
         + thread(0, 7, 7) + sample(1, 0, 2))
    case("thread-duplicates", "equal threads under different ids are allowed",
         user(0, 1) + stack(0, ROOT, 0) + thread(0, 7, 8) + thread(1, 7, 8) + thread(2, 9, 8)
         + sample(1, 0, 0) + sample(1, 1, 0) + sample(1, 2, 0))

    # modules
    case("module-empty-and-reversed", "end <= start is accepted while nothing is pinned to it",
         module(0, 7, 0x2000, 0x2000, b"/empty") + module(1, 7, 0x3000, 0x2000, b"/reversed")
         + user(0, 0x2000) + stack(0, ROOT, 0) + thread(0, 7, 7) + sample(1, 0, 0))
    case("module-path-kinds", "empty, bracketed, long, multi-byte and odd characters",
         module(0, 7, 0, 1, b"") + module(1, 7, 0, 1, b"[vdso]") + module(2, 7, 0, 1, b"/" + b"p" * 8191)
         + module(3, 7, 0, 1, "/srv/пример-例-\U0001F600".encode()) + module(4, 7, 0, 1, b"/a b\n\t\"\\\0c")
         + module(5, 7, 0, 1, b"/usr/lib/gone.so (deleted)") + module(6, 7, 0, 1, b"//anon"))
    case("module-path-bytes", "a version 4 path is bytes, not text",
         module(0, 7, 0x1000, 0x2000, b"/opt/pic\xff\xfe.so") + pinned(0, 0, 1)
         + stack(0, ROOT, 0) + thread(0, 7, 7) + sample(1, 0, 0), (4,))
    case("module-kernel-flag-nonzero", "any nonzero flag is kernel, and then the process id is ignored",
         module(0, -1, 0, 1, b"k", flag=1) + module(1, 0, 0, 1, b"k", flag=2)
         + module(2, -(1 << 31), 0, 1, b"k", flag=0x80) + module(3, I32_MAX, 0, 1, b"k", flag=0xFF))
    case("module-repeated", "the same mapping may be defined twice", module(0, 7, 0x1000, 0x2000, b"/a")
         + module(1, 7, 0x1000, 0x2000, b"/a") + user(0, 0x1001) + stack(0, ROOT, 0)
         + thread(0, 7, 7) + sample(1, 0, 0))

    # markers
    case("python-flags", "any nonzero flag is true; time need not advance",
         python(0, 7, 1) + python(U64, 9, 255) + python(5, 7, 0) + python(1 << 40, 11, 2))
    case("deactivate-unknown-process", "retiring a process never seen is allowed",
         off_process(4242) + ONE + off_process(1))

    # version 4 header
    for name, origin in (
            ("origin-positive", (1, 1, 2, 3)),
            ("origin-negative", (2_000_000_000, -1, 1, 123)),
            ("origin-zero", (0, 1, 0, 0)),
            ("origin-minus-zero", (0, -1, 0, 0)),
            ("origin-highest", (0, 1, I64_MAX, 999_999_999)),
            ("origin-lowest", (2, -1, 1 << 63, 0)),
            ("origin-late-monotonic", (U64, 1, 1, 0))):
        case(name, "clock origin; sample wall time may fall outside 64-bit seconds",
             BASE + sample(1, 0, 0) + sample(2_000_000_000, 0, 0), (4,), head4(9, 333_333, origin))
    raw("origin-padded-varints", "stretched varints in the clock origin",
        b"SPULSE4\0" + uv(0) + uv(0) + padded(1, 10) + padded(7, 2) + padded(2, 10) + padded(5, 10)
        + padded(999_999_999, 10), (4,))

    # JIT
    case("jit-kinds", "no symbols, several, equal starts, nested, multi-byte and empty names",
         jit(0, 7, 0x1000, 0x2000, []) + off_module(0)
         + jit(1, 7, 0x1000, 0x2000, [(0x1000, 0x2000, b"outer"), (0x1100, 0x1110, b"inner"),
                                      (0x1100, 0x1108, "ключ".encode()), (0x1FFF, 0x2000, b"")])
         + off_module(1) + pinned(0, 0, 0x10) + pinned(1, 1, 0x104) + pinned(2, 1, 0x10C)
         + pinned(3, 1, 0xFFF) + pinned(4, 1, 0x500)
         + b"".join(stack(i, ROOT if i == 0 else i - 1, i) for i in range(5))
         + thread(0, 7, 7) + sample(1, 0, 4), (4,))
    case("jit-address-reuse", "two registrations at one address keep their own names",
         thread(0, 7, 7) + module(0, 7, 0x1000, 0x3000, b"//anon")
         + jit(1, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"first")]) + off_module(1)
         + pinned(0, 1, 0x108) + stack(0, ROOT, 0) + sample(1, 0, 0)
         + jit(2, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"second")]) + off_module(2)
         + pinned(1, 2, 0x108) + stack(1, ROOT, 1) + sample(1, 0, 1) + sample(1, 0, 0)
         + user(2, 0x1108) + stack(2, ROOT, 2) + sample(1, 0, 2), (4,))
    case("jit-not-deactivated", "a reader treats a JIT module left active like any mapping",
         jit(0, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"live")], offset=0x10)
         + user(0, 0x1108) + stack(0, ROOT, 0) + thread(0, 7, 7) + sample(1, 0, 0), (4,))

    # endings
    case("recovered-lone-tag", "a final tag byte with nothing after it", ONE + bytes([SAMPLE]),
         outcome="recovered")
    case("recovered-huge-path-length", "a path length past the end reads as a cut-off record",
         ONE + module(1, 7, 0, 1, b"")[:-1] + uv(1 << 40) + b"abc", outcome="recovered")
    case("recovered-swallows-records", "a too-long path length swallows the records that follow",
         ONE + module(1, 7, 0, 1, b"")[:-1] + uv(4096) + sample(1, 0, 0) * 3, outcome="recovered")
    case("recovered-nine-continuations", "nine continuation bytes at the end are an unfinished varint",
         ONE + bytes([SAMPLE]) + b"\x80" * 9, outcome="recovered")


def invalid():
    # magic and header
    for name, data in (("magic-empty-file", b""), ("magic-short", b"SPULSE3"),
                       ("magic-v1", b"SPULSE1\0\0\0"), ("magic-v2", b"SPULSE2\0\0\0"),
                       ("magic-v9", b"SPULSE9\0\0\0\0"),
                       ("magic-lower-case", b"spulse3\0\0\0\0"), ("magic-zeros", b"\0" * 64),
                       ("magic-other-file", b"\x7fELF\x02\x01\x01\0" + b"\0" * 40)):
        raw(name, "not this format", data, outcome="error")
    raw("magic-other-version", "each reader takes its own version only",
        lambda f: HEAD[7 - f]() + ONE, outcome="error")
    raw("header-varint-too-long", "an eleven-byte varint in the header",
        lambda f: b"SPULSE%d\0" % f + b"\x80" * 10 + b"\0" * 8, outcome="error")
    raw("header-interval-missing", "header ends after the start timestamp",
        lambda f: b"SPULSE%d\0" % f + uv(5), outcome="error")
    raw("header-origin-missing", "version 4 header ends before the origin marker",
        b"SPULSE4\0" + uv(5) + uv(6), (4,), outcome="error")
    for name, tail in (("origin-marker-2", uv(2)), ("origin-sign-0", uv(1) + uv(0) + zz(0) + uv(0) + uv(0)),
                       ("origin-nanos-1e9", uv(1) + uv(0) + zz(1) + uv(0) + uv(10**9)),
                       ("origin-nanos-33-bits", uv(1) + uv(0) + zz(1) + uv(0) + uv(1 << 32) + b"\0" * 12),
                       ("origin-too-late", uv(1) + uv(0) + zz(1) + uv(1 << 63) + uv(0)),
                       ("origin-cut-short", uv(1) + uv(0) + zz(1))):
        raw(name, "bad clock origin", b"SPULSE4\0" + uv(0) + uv(0) + tail, (4,), outcome="error")

    # tags
    for tag in (0, 10, 128, 255):
        case(f"tag-{tag}", "unknown record tag", ONE + bytes([tag]), outcome="error")
    case("tag-9-in-v3", "version 3 has no JIT modules", jit(0, 7, 0x1000, 0x2000, []), (3,), outcome="error")
    case("tag-zeros-appended", "a zero-filled tail is corruption, not truncation", ONE + b"\0" * 512,
         outcome="error")
    case("tag-unknown-then-good", "corruption in the middle is never skipped", BASE + b"\x0b" + sample(1, 0, 0),
         outcome="error")

    # ids
    bad = [
        ("module-id-not-zero", "first module id must be 0", module(1, 7, 0, 1)),
        ("module-id-duplicate", "duplicate module id", module(0, 7, 0, 1) + module(0, 7, 0, 1)),
        ("module-id-huge", "module id 2^64-1", module(U64, 7, 0, 1)),
        ("frame-id-not-zero", "first frame id must be 0", user(1, 1)),
        ("frame-id-duplicate", "duplicate frame id", user(0, 1) + user(0, 1)),
        ("stack-id-gap", "skipped stack id", user(0, 1) + stack(1, ROOT, 0)),
        ("thread-id-duplicate", "duplicate thread id", thread(0, 7, 7) + thread(0, 7, 8)),
        ("thread-id-gap", "skipped thread id", thread(0, 7, 7) + thread(2, 7, 8)),
        # owners
        ("module-pid-zero", "user module with process id 0", module(0, 0, 0, 1)),
        ("module-pid-negative", "user module with process id -1", module(0, -1, 0, 1)),
        ("module-pid-wide", "process id 2^31", module(0, 1 << 31, 0, 1)),
        ("module-kernel-pid-wide", "even a kernel module's process id must fit 32 bits",
         module(0, 1 << 31, 0, 1, flag=1)),
        ("module-device-major-wide", "device major 2^32", module(0, 7, 0, 1, major=1 << 32)),
        ("module-path-length-overflow", "path length 2^64-1", module(0, 7, 0, 1, b"")[:-1] + uv(U64)),
        ("module-varint-too-long", "an eleven-byte varint inside a record",
         bytes([MODULE]) + uv(0) + b"\x80" * 10 + b"\0" * 20),
        # frames
        ("frame-module-missing", "no such module", pinned(0, 0, 0)),
        ("frame-module-forward", "module defined after the frame", pinned(0, 0, 0) + module(0, 7, 0, 1)),
        ("frame-module-huge", "module reference 2^63-1", module(0, 7, 0, 1) + frame(0, U64 - 1, 0)),
        ("frame-below-offset", "address below the file offset",
         module(0, 7, 0x1000, 0x2000, offset=0x500) + pinned(0, 0, 0x4FF)),
        ("frame-at-end", "address exactly at the end of the module",
         module(0, 7, 0x1000, 0x2000, offset=0x500) + pinned(0, 0, 0x1500)),
        ("frame-in-empty-module", "frame pinned to an empty module",
         module(0, 7, 0x1000, 0x1000) + pinned(0, 0, 0)),
        ("frame-marker-payload", "truncation marker with a nonzero payload", frame(0, 5, 1)),
        # stacks
        ("stack-prefix-self", "a node may not be its own prefix", user(0, 1) + stack(0, 0, 0)),
        ("stack-prefix-forward", "prefix not defined yet",
         user(0, 1) + stack(0, ROOT, 0) + stack(1, 2, 0) + stack(2, ROOT, 0)),
        ("stack-prefix-below-root", "prefix 2^32-2 is an ordinary missing id",
         user(0, 1) + stack(0, ROOT - 1, 0)),
        ("stack-frame-missing", "no such frame", stack(0, ROOT, 0)),
        ("stack-frame-wide", "frame reference 2^32", user(0, 1) + stack(0, ROOT, 1 << 32)),
        # threads
        ("thread-pid-zero", "thread of process 0", thread(0, 0, 7)),
        ("thread-pid-negative", "thread of process -7", thread(0, -7, 7)),
        ("thread-pid-wide", "thread of process 2^31", thread(0, 1 << 31, 7)),
        ("thread-tid-zero", "thread id 0", thread(0, 7, 0)),
        ("thread-tid-wide", "thread id 2^31", thread(0, 7, 1 << 31)),
        # samples
        ("sample-thread-missing", "no such thread", BASE + sample(1, 1, 0)),
        ("sample-thread-huge", "thread reference 2^64-1", BASE + sample(1, U64, 0)),
        ("sample-stack-missing", "no such stack", BASE + sample(1, 0, 1)),
        ("sample-time-negative", "first delta below zero", BASE + sample(-1, 0, 0)),
        ("sample-time-underflow", "time goes below zero", BASE + sample(5, 0, 0) + sample(-6, 0, 0)),
        ("sample-time-overflow", "time passes 2^64-1",
         BASE + sample(I64_MAX, 0, 0) + sample(I64_MAX, 0, 0) + sample(2, 0, 0)),
        # the rest
        ("python-pid-zero", "runtime marker for process 0", python(1, 0, 1)),
        ("deactivate-process-zero", "retire process 0", off_process(0)),
        ("deactivate-process-negative", "retire process -1", off_process(-1)),
        ("deactivate-module-missing", "retire an undefined module", module(0, 7, 0, 1) + off_module(1)),
        ("deactivate-module-huge", "retire module 2^64-1", off_module(U64)),
        # corruption beats truncation
        ("cut-after-bad-id", "the bad field is complete, so the cut does not matter",
         ONE + bytes([FRAME]) + uv(5)),
        ("cut-after-bad-pid", "a bad process id before the cut", ONE + bytes([THREAD]) + uv(1) + zz(0)),
        ("cut-after-bad-delta", "a bad delta before the cut", ONE + bytes([SAMPLE]) + zz(-1_001)),
        ("ten-continuations", "ten continuation bytes are an impossible varint even at the end",
         ONE + bytes([SAMPLE]) + b"\x80" * 10),
    ]
    for name, why, body in bad:
        case(name, why, body, outcome="error")
    case("module-path-not-utf8", "a version 3 path must be UTF-8",
         module(0, 7, 0x1000, 0x2000, b"/opt/pic\xff.so"), (3,), outcome="error")

    # JIT
    jits = [
        ("jit-kernel", "a JIT module may not be a kernel module",
         module(0, -1, 0x1000, 0x2000, b"[jit]", flag=1, tag=JIT) + uv(0)),
        ("jit-too-many", "1,000,001 symbols", module(0, 7, 0x1000, 0x2000, b"[jit]", tag=JIT) + uv(1_000_001)),
        ("jit-symbol-empty", "empty symbol", jit(0, 7, 0x1000, 0x2000, [(0x1100, 0x1100, b"x")])),
        ("jit-symbol-reversed", "reversed symbol", jit(0, 7, 0x1000, 0x2000, [(0x1101, 0x1100, b"x")])),
        ("jit-symbol-above", "symbol past the module", jit(0, 7, 0x1000, 0x2000, [(0x1F00, 0x2001, b"x")])),
        ("jit-symbols-unsorted", "starts must not decrease",
         jit(0, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"b"), (0x10FF, 0x1200, b"a")])),
        ("jit-name-not-utf8", "symbol names are UTF-8", jit(0, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"\xc3(")])),
        ("jit-name-too-long", "name length 2^20+1, before looking at the bytes",
         module(0, 7, 0x1000, 0x2000, b"[jit]", tag=JIT) + uv(1) + uv(0x1000) + uv(0x1100) + uv((1 << 20) + 1)),
        ("jit-pid-zero", "JIT module of process 0", module(0, 0, 0x1000, 0x2000, b"[jit]", tag=JIT) + uv(0)),
    ]
    for name, why, body in jits:
        case(name, why, body, (4,), outcome="error")


# ---------------------------------------------------------------- output

def describe(format, data):
    try:
        reader, recovered = read_all(data, format)
    except Corrupt as error:
        return "error", {"error": {"class": "CorruptSpool", "reason": error.reason,
                                   "record_offset": error.offset, "record_tag": error.tag}}
    return ("recovered" if recovered else "valid"), {"document": reader.document(recovered)}


def counts(reader):
    return {"modules": len(reader.modules), "frames": len(reader.frames),
            "stacks": len(reader.stacks), "threads": len(reader.threads),
            "python_runtime": len(reader.pythons), "samples": len(reader.samples),
            "last_timestamp_ns": reader.samples[-1][0] if reader.samples else None}


def truncation_table(format, data):
    """What a reader makes of every prefix of `data`."""
    rows = []
    for size in range(len(data) + 1):
        outcome, _ = describe(format, data[:size])
        row = {"length": size, "outcome": outcome}
        if outcome == "error":
            row["class"] = "CorruptSpool"
        else:
            reader, _ = read_all(data[:size], format)
            row.update(counts(reader), end_of_last_record=reader.at)
        rows.append(row)
    return rows


def tail_script(format, data, sizes):
    """Poll until has_more is false after each growth; the model's batches."""
    model, steps, index = None, [], 0
    for size in sizes:
        data_now = data[:size]
        step = {"visible": size, "batches": []}
        try:
            if model is None:
                model = TailModel(data_now, format)
            while True:
                batch = model.poll(data_now)
                batch["timestamps"] = [t for t, _, _ in model.reader.samples[model.begin:]]
                step["batches"].append(batch)
                if not batch["has_more"]:
                    break
        except Corrupt as error:
            step["error"] = {"class": "CorruptSpool", "reason": error.reason,
                             "record_offset": error.offset, "record_tag": error.tag}
            steps.append(step)
            break
        steps.append(step)
    return steps


def small_jit():
    return head4(0, 1_000_000, (5, 1, 6, 7)) + (
        thread(0, 7, 7) + jit(0, 7, 0x1000, 0x2000, [(0x1100, 0x1200, b"a"), (0x1180, 0x1190, b"bc")])
        + off_module(0) + pinned(0, 0, 0x108) + stack(0, ROOT, 0) + sample(300, 0, 0))


def worked(format):
    """The tiny spool of the worked example in the format page."""
    head = head3(1_700_000_000_000_000, 10_101) if format == 3 else head4(
        0, 10_101_010, (1_000_000_000, 1, 1_700_000_000, 5))
    return head + (module(0, 7, 0x1000, 0x3000, b"/a", 0x200, 42, 8, 1)
                   + user(0, 0x9000) + stack(0, ROOT, 0) + pinned(1, 0, 0x234) + stack(1, 0, 1)
                   + thread(0, 7, 8) + sample(1_000, 0, 1) + sample(-200, 0, 0))


def store(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = "wb" if isinstance(text, bytes) else "w"
    with open(path, mode) as out:
        out.write(text)


def dumps(value):
    return json.dumps(value, ensure_ascii=True, sort_keys=False, indent=1) + "\n"


def write_cases(out, cases):
    listing = []
    for format, name, why, data, wanted in cases:
        outcome, content = describe(format, data)
        if outcome != (wanted or "valid"):
            raise SystemExit(f"v{format}/{name}: meant {wanted or 'valid'}, decodes as {outcome} {content}")
        base = f"v{format}/{name}"
        store(f"{out}/{base}.spool", data)
        store(f"{out}/{base}.json", dumps({"name": name, "format": format, "why": why,
                                           "outcome": outcome, **content}))
        listing.append({"file": base + ".spool", "outcome": outcome, "bytes": len(data),
                        "sha256": hashlib.sha256(data).hexdigest()})
    return listing


def write_table(out, name, format, data):
    store(f"{out}/tables/{name}.spool", data)
    store(f"{out}/tables/{name}.json", json.dumps(
        {"name": name, "format": format, "why": "every prefix of the file",
         "prefixes": truncation_table(format, data)}, separators=(",", ":")).replace("},", "},\n") + "\n")
    return {"file": f"tables/{name}.spool", "outcome": "table", "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest()}


def write_tail(out, name, format, why, data, sizes):
    store(f"{out}/tail/{name}.spool", data)
    store(f"{out}/tail/{name}.json", dumps({"name": name, "format": format, "why": why,
                                            "steps": tail_script(format, data, sizes)}))
    return {"file": f"tail/{name}.spool", "outcome": "tail", "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest()}


def build(out):
    valid()
    invalid()
    listing = write_cases(out, CASES)
    listing.append(write_table(out, "v3-every-record", 3, HEAD[3]() + every_record(3)))
    listing.append(write_table(out, "v4-every-record", 4, HEAD[4]() + every_record(4)))
    listing.append(write_table(out, "v4-jit", 4, small_jit()))
    listing.append(write_table(out, "v3-worked", 3, worked(3)))
    listing.append(write_table(out, "v4-worked", 4, worked(4)))
    for format in (3, 4):
        data = HEAD[format]() + every_record(format)
        start = len(HEAD[format]())
        listing.append(write_tail(out, f"v{format}-byte-by-byte", format,
                                  "the file grows one byte at a time from the header on",
                                  data, range(start, len(data) + 1)))
        listing.append(write_tail(out, f"v{format}-whole", format,
                                  "all visible at open: retirements end batches", data, [len(data)]))
        listing.append(write_tail(out, f"v{format}-header-only-then-all", format,
                                  "opened on a bare header, then everything arrives", data,
                                  [start, len(data)]))
        cut = len(HEAD[format]() + ONE)
        broken = HEAD[format]() + ONE + sample(1, 0, 0) + b"\xff" + sample(1, 0, 0)
        listing.append(write_tail(out, f"v{format}-corrupt-later", format,
                                  "good records, then a bad tag arrives", broken,
                                  [cut, len(broken)]))
        listing.append(write_tail(out, f"v{format}-shrinks", format,
                                  "the file gets shorter while tailed", data, [len(data), start]))
        listing.append(write_tail(out, f"v{format}-header-cut", format,
                                  "opened before the header is complete", data, [start - 1, len(data)]))
    store(f"{out}/manifest.json", dumps({"vectors": listing}))
    return listing


def build_big(out):
    """Large spools made on demand. big.json says what a reader must report."""
    facts = {}
    for format in (3, 4):
        many = HEAD[format]() + BASE + b"".join(sample(1_000, 0, 0) for _ in range(40_000))
        store(f"{out}/v{format}-40000-samples.spool", many)
        facts[f"v{format}-40000-samples"] = {
            "samples": 40_000, "last_timestamp_ns": 40_000_000,
            "tail_batches": [16384, 16384, 7232], "tail_has_more": [True, True, False]}
        exact = HEAD[format]() + BASE + b"".join(sample(1_000, 0, 0) for _ in range(BATCH))
        store(f"{out}/v{format}-16384-samples.spool", exact)
        facts[f"v{format}-16384-samples"] = {"samples": BATCH, "tail_batches": [BATCH],
                                            "tail_has_more": [False]}
        plus = exact + bytes([SAMPLE])
        store(f"{out}/v{format}-16384-samples-cut.spool", plus)
        facts[f"v{format}-16384-samples-cut"] = {"samples": BATCH, "recovered": True,
                                                "tail_batches": [BATCH, 0],
                                                "tail_has_more": [True, False]}
        # More sample runs than a replay range index holds (524,288), so replay must fall back to a scan.
        runs = 524_288 + 3
        ranges = HEAD[format]() + BASE + (sample(10, 0, 0) + python(1, 7, 1)) * runs
        store(f"{out}/v{format}-range-limit.spool", ranges)
        facts[f"v{format}-range-limit"] = {"samples": runs, "last_timestamp_ns": 10 * runs}
    name = b"n" * MAX_JIT_NAME
    store(f"{out}/v4-jit-longest-name.spool", HEAD[4]() + jit(0, 7, 0x1000, 0x2000, [(0x1000, 0x1001, name)]))
    facts["v4-jit-longest-name"] = {"samples": 0, "modules": 1, "name_bytes": MAX_JIT_NAME}
    store(f"{out}/v4-jit-most-symbols.spool", HEAD[4]() + jit(
        0, 7, 0, 1 << 40, [(i, i + 1, b"s") for i in range(MAX_JIT_SYMBOLS)]))
    facts["v4-jit-most-symbols"] = {"samples": 0, "modules": 1, "symbols": MAX_JIT_SYMBOLS}
    store(f"{out}/big.json", dumps(facts))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if len(sys.argv) == 3 and sys.argv[1] == "--big":
        build_big(sys.argv[2])
    else:
        made = build(sys.argv[1] if len(sys.argv) > 1 else here)
        print(f"{len(made)} vectors")

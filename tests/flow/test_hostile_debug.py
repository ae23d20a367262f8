# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Debug information made to cost: what many units share is not read once for each of them."""
import struct

from flow import *

LOW, SIZE = 0x1000, 0x10000
COMPILE_UNIT, SUBPROGRAM = 0x11, 0x2e
NAME, LOW_PC, HIGH_PC, EXTERNAL, RANGES = 3, 0x11, 0x12, 0x3f, 0x55
ADDR, DATA8, STRING, FLAG_PRESENT, SEC_OFFSET = 1, 7, 8, 0x19, 0x17


def elf(**debug):
    """An executable of one segment, its code not in the file, with debug sections."""
    sections = [("", 0, b""), (".text", 8, b"")] + [("." + n, 1, data) for n, data in debug.items()]
    names = b"".join(n.encode() + b"\0" for n, _, _ in sections) + b".shstrtab\0"
    sections.append((".shstrtab", 3, names))
    body, heads = b"", b""
    for name, kind, data in sections:
        flags, address, size = (6, LOW, SIZE) if kind == 8 else (0, 0, len(data))
        heads += struct.pack("<IIQQQQIIQQ", names.find(name.encode() + b"\0"), kind, flags, address,
                             120 + len(body) if kind else 0, size, 0, 0, 1 if kind else 0, 0)
        body += data + b"\0" * (-len(data) % 8)
    return (b"\x7fELF\2\1\1" + b"\0" * 9 +
            struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 120 + len(body), 0, 64, 56, 1, 64,
                        len(sections), len(sections) - 1) +
            struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, LOW + SIZE, LOW + SIZE, 0x1000) + body + heads)


def shape(code, tag, *attributes):
    return bytes([code, tag, 1]) + bytes(attributes) + b"\0\0"


def unit(entries):
    header = struct.pack("<HIB", 4, 0, 8)
    return struct.pack("<I", len(header + entries)) + header + entries


def name_of(data, address=LOW + 3):
    with open("hostile.elf", "wb") as f:
        f.write(data)
    r = tool("symbolize", "-e", "hostile.elf", "%x" % address, timeout=60)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    return r.stdout.split("\n")[0]


PLACE = struct.pack("<QQ", LOW, SIZE)
WHOLE = (NAME, STRING, LOW_PC, ADDR, HIGH_PC, DATA8)
GOOD = unit(b"\1unit\0" + PLACE + b"\2found\0" + PLACE + b"\0\0")


def plain():
    """That the files here are understood at all."""
    shapes = shape(1, COMPILE_UNIT, *WHOLE) + shape(2, SUBPROGRAM, *WHOLE) + b"\0"
    check(name_of(elf(debug_info=GOOD, debug_abbrev=shapes)) == "found", "the plain file has no name")


def shared_shapes():
    """Each unit's first entry has the last of many shapes."""
    filler = b"".join(bytes([code & 127 | 128, code >> 7, SUBPROGRAM, 0]) +
                      bytes([EXTERNAL, FLAG_PRESENT]) * 200 + b"\0\0" for code in range(128, 5000))
    shapes = (shape(1, COMPILE_UNIT, *WHOLE) + shape(2, SUBPROGRAM, *WHOLE) + filler +
              shape(3, COMPILE_UNIT, EXTERNAL, FLAG_PRESENT) + b"\0")
    name = name_of(elf(debug_info=GOOD + unit(b"\3\0") * 100000, debug_abbrev=shapes))
    check(name == "found", f"the first unit is lost: {name}")


def attributes_without_bytes():
    """An entry of one byte with sixty thousand attributes, many times."""
    shapes = (shape(1, COMPILE_UNIT, *WHOLE) + shape(2, SUBPROGRAM, *WHOLE) +
              shape(3, SUBPROGRAM, *(EXTERNAL, FLAG_PRESENT) * 60000) + b"\0")
    entries = b"\1unit\0" + PLACE + b"\2found\0" + PLACE + b"\0" + b"\3\0" * 1000000 + b"\0"
    name = name_of(elf(debug_info=unit(entries), debug_abbrev=shapes))
    check(name in ("found", "??"), f"a wrong name: {name}")


def shared_ranges():
    """One long list of ranges, none of them in the file, for every unit."""
    shapes = (shape(1, COMPILE_UNIT, *WHOLE) + shape(2, SUBPROGRAM, *WHOLE) +
              shape(3, COMPILE_UNIT, RANGES, SEC_OFFSET) + b"\0")
    ranges = struct.pack("<QQ", 1 << 40, 1 << 41) * 200000 + b"\0" * 16
    name = name_of(elf(debug_info=GOOD + unit(b"\3\0\0\0\0\0") * 200000, debug_abbrev=shapes,
                       debug_ranges=ranges))
    check(name == "found", f"the first unit is lost: {name}")


main(plain, shared_shapes, attributes_without_bytes, shared_ranges, perf=False)

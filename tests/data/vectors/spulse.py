"""Reference encoder and decoder for SPULSE3 and SPULSE4 spool bytes, used to build the vectors.

Written from the byte-level description in the format page. Nothing here is needed at run time by
the product; tests may use it to make more inputs.
"""

ROOT = 0xFFFFFFFF
U64 = (1 << 64) - 1
I32_MAX = (1 << 31) - 1
I64_MAX = (1 << 63) - 1
MAX_JIT_SYMBOLS = 1_000_000
MAX_JIT_NAME = 1 << 20
BATCH = 16384

MODULE, FRAME, STACK, THREAD, SAMPLE, PYTHON, OFF_PROCESS, OFF_MODULE, JIT = range(1, 10)


# ---------------------------------------------------------------- encoding

def uv(value):
    """Unsigned varint, shortest form."""
    assert 0 <= value <= U64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def padded(value, size):
    """Unsigned varint stretched to `size` bytes with redundant continuation bytes."""
    out = bytearray(value >> 7 * i & 0x7F for i in range(size))
    for i in range(size - 1):
        out[i] |= 0x80
    return bytes(out)


def zz(value):
    """Signed 64-bit varint (zigzag)."""
    assert -(1 << 63) <= value <= I64_MAX
    return uv((value << 1) if value >= 0 else ((-value << 1) - 1))


def blob(data):
    return uv(len(data)) + data


def head3(start_us=0, interval_us=0):
    return b"SPULSE3\0" + uv(start_us) + uv(interval_us)


def head4(start_us=0, interval_ns=0, origin=None):
    """origin: None or (monotonic_ns, sign, seconds, nanos)."""
    out = b"SPULSE4\0" + uv(start_us) + uv(interval_ns)
    if origin is None:
        return out + uv(0)
    mono, sign, seconds, nanos = origin
    return out + uv(1) + uv(mono) + zz(sign) + uv(seconds) + uv(nanos)


def module(id, pid, start, end, path=b"/bin/x", offset=0, inode=0, major=0, minor=0, gen=0,
           flag=0, tag=MODULE):
    return (bytes([tag]) + uv(id) + zz(pid) + uv(start) + uv(end) + uv(offset) + uv(inode)
            + uv(major) + uv(minor) + uv(gen) + bytes([flag]) + blob(path))


def kernel(id, start, end, path=b"[kernel.kallsyms]_text", offset=0, **more):
    return module(id, -1, start, end, path, offset, flag=1, **more)


def jit(id, pid, start, end, symbols, path=b"[jit]", offset=0, **more):
    """symbols: list of (start, end, name bytes)."""
    return b"".join([module(id, pid, start, end, path, offset, tag=JIT, **more), uv(len(symbols))]
                    + [uv(low) + uv(high) + blob(name) for low, high, name in symbols])


def frame(id, tag, value):
    return bytes([FRAME]) + uv(id) + uv(tag) + uv(value)


def pinned(id, module_id, rel):
    return frame(id, module_id << 1, rel)


def user(id, ip):
    return frame(id, 1, ip)


def kframe(id, ip):
    return frame(id, 3, ip)


def cut_marker(id):
    return frame(id, 5, 0)


def stack(id, prefix, frame_id):
    return bytes([STACK]) + uv(id) + uv(prefix) + uv(frame_id)


def thread(id, pid, tid):
    return bytes([THREAD]) + uv(id) + zz(pid) + uv(tid)


def sample(delta, thread_id, stack_id):
    return bytes([SAMPLE]) + zz(delta) + uv(thread_id) + uv(stack_id)


def python(timestamp, pid, flag):
    return bytes([PYTHON]) + uv(timestamp) + zz(pid) + bytes([flag])


def off_process(pid):
    return bytes([OFF_PROCESS]) + zz(pid)


def off_module(id):
    return bytes([OFF_MODULE]) + uv(id)


# ---------------------------------------------------------------- decoding

class Corrupt(Exception):
    """Malformed content. offset/tag locate the record, None for the header."""

    def __init__(self, reason, offset=None, tag=None):
        super().__init__(reason)
        self.reason, self.offset, self.tag = reason, offset, tag


class Short(Exception):
    """The bytes end inside the field being read."""


class Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        value = 0
        for i in range(10):
            if self.at + i == len(self.data):
                raise Short
            byte = self.data[self.at + i]
            value |= (byte & 0x7F) << 7 * i
            if i == 9:
                if byte >= 2:
                    raise Corrupt("varint does not fit 64 bits")
            elif byte & 0x80:
                continue
            self.at += i + 1
            return value

    def signed(self):
        raw = self.varint()
        return raw >> 1 ^ -(raw & 1)

    def byte(self):
        return self.take(1)[0]

    def take(self, size):
        if self.at + size > U64:
            raise Corrupt("length overflows the address space")
        if self.at + size > len(self.data):
            raise Short
        self.at += size
        return self.data[self.at - size:self.at]

    def i32(self):
        value = self.signed()
        if not -(1 << 31) <= value <= I32_MAX:
            raise Corrupt("process id outside 32 bits")
        return value

    def pid(self):
        value = self.i32()
        if value <= 0:
            raise Corrupt("process id not positive")
        return value

    def dense(self, expected, what):
        value = self.varint()
        if value != expected:
            raise Corrupt(f"{what} id {value}, expected {expected}")

    def ref32(self, limit, what):
        value = self.varint()
        if value > 0xFFFFFFFF:
            raise Corrupt(f"{what} reference wider than 32 bits")
        if value >= limit:
            raise Corrupt(f"{what} reference {value} not defined yet")
        return value

    def ref(self, limit, what):
        value = self.varint()
        if value >= limit:
            raise Corrupt(f"{what} reference {value} not defined yet")
        return value


class Reader:
    """Decoder state. feed() decodes complete records from `data` starting at self.at."""

    def __init__(self, data, format):
        self.format = format
        self.modules, self.frames, self.stacks, self.threads = [], [], [], []
        self.pythons, self.samples, self.extra_processes = [], [], []
        self.last = 0
        self.first = None
        self.boundaries = []
        self.spans = {}
        cursor = Cursor(data)
        try:
            magic = cursor.take(8)
            if magic != b"SPULSE%d\0" % format:
                raise Corrupt("wrong magic")
            self.start_us = cursor.varint()
            self.interval = cursor.varint()
            self.origin = self.read_origin(cursor) if format == 4 else None
        except Short:
            raise Corrupt("header cut short") from None
        self.at = cursor.at
        self.boundaries.append(self.at)

    @staticmethod
    def read_origin(cursor):
        present = cursor.varint()
        if present == 0:
            return None
        if present != 1:
            raise Corrupt("clock origin marker is neither 0 nor 1")
        mono, sign, seconds, nanos = (cursor.varint(), cursor.signed(), cursor.varint(),
                                      cursor.varint())
        if nanos >= 1_000_000_000:
            raise Corrupt("clock origin nanoseconds out of range")
        if sign not in (1, -1):
            raise Corrupt("clock origin sign is neither 1 nor -1")
        wall = sign * (seconds * 1_000_000_000 + nanos)
        if not -(1 << 63) <= wall // 1_000_000_000 <= I64_MAX:
            raise Corrupt("clock origin outside 64-bit seconds")
        return mono, wall

    def step(self, data):
        """Decode one record. Returns its tag, or None at the end. Raises Short or Corrupt."""
        if self.at == len(data):
            return None
        cursor = Cursor(data, self.at + 1)
        tag = data[self.at]
        try:
            commit = self.record(cursor, tag)
        except Corrupt as error:
            error.offset, error.tag = self.at, tag
            raise
        commit()
        self.spans.setdefault(tag, []).append((self.at, cursor.at))
        self.at = cursor.at
        self.boundaries.append(self.at)
        return tag

    def record(self, c, tag):
        if tag == MODULE or tag == JIT and self.format == 4:
            return self.read_module(c, tag)
        if tag == FRAME:
            return self.read_frame(c)
        if tag == STACK:
            c.dense(len(self.stacks), "stack")
            prefix = c.varint()
            if prefix == ROOT:
                prefix = None
            elif prefix > ROOT:
                raise Corrupt("stack prefix wider than 32 bits")
            elif prefix >= len(self.stacks):
                raise Corrupt(f"stack prefix {prefix} not defined yet")
            frame_id = c.ref32(len(self.frames), "stack frame")
            return lambda: self.stacks.append((prefix, frame_id))
        if tag == THREAD:
            c.dense(len(self.threads), "thread")
            pid = c.pid()
            tid = c.varint()
            if not 1 <= tid <= I32_MAX:
                raise Corrupt("thread id out of range")
            return lambda: self.threads.append((pid, tid))
        if tag == SAMPLE:
            delta = c.signed()
            timestamp = self.last + delta
            if not 0 <= timestamp <= U64:
                raise Corrupt("sample timestamp leaves 64 bits")
            thread_id = c.ref(len(self.threads), "sample thread")
            stack_id = c.ref32(len(self.stacks), "sample stack")

            def commit():
                self.last = timestamp
                if self.first is None:
                    self.first = timestamp
                self.samples.append((timestamp, thread_id, stack_id))
            return commit
        if tag == PYTHON:
            timestamp, pid, flag = c.varint(), c.pid(), c.byte()

            def commit():
                self.pythons.append((timestamp, pid, flag != 0))
                self.extra_processes.append(pid)
            return commit
        if tag == OFF_PROCESS:
            pid = c.pid()

            def commit():
                self.extra_processes.append(pid)
                for found in self.modules:
                    if not found["kernel"] and found["pid"] == pid and found["off"] is None:
                        found["off"] = len(self.frames)
            return commit
        if tag == OFF_MODULE:
            id = c.ref(len(self.modules), "module deactivation")

            def commit():
                if self.modules[id]["off"] is None:
                    self.modules[id]["off"] = len(self.frames)
            return commit
        raise Corrupt(f"unknown record tag {tag}")

    def read_module(self, c, tag):
        c.dense(len(self.modules), "module")
        pid, start, end, offset, inode = c.i32(), c.varint(), c.varint(), c.varint(), c.varint()
        major = c.varint()
        if major > 0xFFFFFFFF:
            raise Corrupt("device major wider than 32 bits")
        minor = c.varint()
        if minor > 0xFFFFFFFF:
            raise Corrupt("device minor wider than 32 bits")
        gen = c.varint()
        is_kernel = c.byte() != 0
        if not is_kernel and pid <= 0:
            raise Corrupt("process id not positive")
        path = c.take(c.varint())
        if self.format == 3:
            try:
                path.decode("utf-8")
            except UnicodeDecodeError:
                raise Corrupt("path is not UTF-8") from None
        symbols = None
        if tag == JIT:
            symbols = self.read_symbols(c, is_kernel, start, end)
        found = dict(pid=None if is_kernel else pid, kernel=is_kernel, start=start, end=end,
                     offset=offset, inode=inode, major=major, minor=minor, gen=gen, path=path,
                     symbols=symbols, off=None)
        return lambda: self.modules.append(found)

    @staticmethod
    def read_symbols(c, is_kernel, start, end):
        count = c.varint()
        if count > MAX_JIT_SYMBOLS or is_kernel:
            raise Corrupt("JIT module is a kernel module or has too many symbols")
        symbols = []
        for _ in range(count):
            low, high = c.varint(), c.varint()
            if low >= high or low < start or high > end:
                raise Corrupt("JIT symbol outside its module")
            size = c.varint()
            if size > MAX_JIT_NAME:
                raise Corrupt("JIT symbol name too long")
            try:
                name = c.take(size).decode("utf-8")
            except UnicodeDecodeError:
                raise Corrupt("JIT symbol name is not UTF-8") from None
            if symbols and symbols[-1][0] > low:
                raise Corrupt("JIT symbols out of order")
            symbols.append((low, high, name))
        return symbols

    def read_frame(self, c):
        c.dense(len(self.frames), "frame")
        tag, value = c.varint(), c.varint()
        made = dict(limit=len(self.modules))
        if tag == 5:
            if value != 0:
                raise Corrupt("truncation marker with a payload")
            made.update(mode="truncated", module=None, ip=0, rel=0)
        elif tag & 1:
            made.update(mode="kernel" if tag & 2 else "user", module=None, ip=value, rel=value)
        else:
            id = tag >> 1
            if id > 0xFFFFFFFF:
                raise Corrupt("frame module reference wider than 32 bits")
            if id >= len(self.modules):
                raise Corrupt(f"frame module reference {id} not defined yet")
            owner = self.modules[id]
            if value < owner["offset"]:
                raise Corrupt("frame address below the module's file offset")
            if owner["end"] < owner["start"]:
                raise Corrupt("frame refers to a module whose end precedes its start")
            if value - owner["offset"] >= owner["end"] - owner["start"]:
                raise Corrupt("frame address outside the module")
            made.update(mode="kernel" if owner["kernel"] else "user", module=id,
                        ip=owner["start"] + value - owner["offset"], rel=value)
        return lambda: self.frames.append(made)

    # -- views

    def bind(self, frame_id, pid):
        """(module id, file-relative address) for a frame seen in process pid, or None."""
        made = self.frames[frame_id]
        if made["mode"] == "truncated":
            return None
        if made["module"] is not None:
            return made["module"], made["rel"]
        for id in range(made["limit"] - 1, -1, -1):
            owner = self.modules[id]
            if owner["off"] is not None and frame_id >= owner["off"]:
                continue
            if made["mode"] == "kernel":
                if not owner["kernel"]:
                    continue
            elif owner["pid"] != pid:
                continue
            if owner["start"] <= made["ip"] < owner["end"]:
                rel = made["ip"] - owner["start"] + owner["offset"]
                return (id, rel) if rel <= U64 else None
        return None

    def sample_view(self, index):
        timestamp, thread_id, stack_id = self.samples[index]
        pid, tid = self.threads[thread_id]
        out = dict(timestamp_ns=timestamp, pid=pid, tid=tid)
        if self.format == 3:
            out["timestamp_us"] = None
            if self.start_us:
                since = max(0, timestamp - self.first) // 1000
                out["timestamp_us"] = min(U64, self.start_us + since)
        else:
            out["recorded_at"] = None
            if self.origin:
                mono, wall = self.origin
                when = wall + timestamp - mono
                secs = when // 1_000_000_000
                out["recorded_at"] = ({"secs": secs, "nanos": when % 1_000_000_000}
                                      if -(1 << 63) <= secs <= I64_MAX else "out_of_range")
        frames = []
        while stack_id is not None:
            prefix, frame_id = self.stacks[stack_id]
            made = self.frames[frame_id]
            one = {"ip": hex(made["ip"]), "mode": made["mode"], "module": None}
            bound = self.bind(frame_id, pid)
            if bound:
                one.update(module=bound[0], rel=hex(bound[1]),
                           **path_view(self.modules[bound[0]]["path"]))
            frames.append(one)
            stack_id = prefix
        out["frames"] = frames
        return out

    def document(self, recovered):
        if self.format == 3:
            header = {"format": 3, "start_timestamp_us": self.start_us,
                      "sample_interval_us": self.interval}
        else:
            header = {"format": 4, "start_timestamp_us": self.start_us,
                      "nominal_interval_ns": self.interval, "clock_origin": None}
            if self.origin:
                mono, wall = self.origin
                header["clock_origin"] = {
                    "monotonic_ns": mono,
                    "wall": {"secs": wall // 1_000_000_000, "nanos": wall % 1_000_000_000}}
        modules = []
        for id, m in enumerate(self.modules):
            one = dict(id=id, pid=m["pid"], kernel=m["kernel"], start=hex(m["start"]),
                       end=hex(m["end"]), file_offset=hex(m["offset"]), inode=m["inode"],
                       dev_major=m["major"], dev_minor=m["minor"], inode_generation=m["gen"],
                       **path_view(m["path"]))
            if m["symbols"] is not None:
                one["jit_symbols"] = [dict(start=hex(a), end=hex(b), name=n)
                                      for a, b, n in m["symbols"]]
            modules.append(one)
        seen = set(self.extra_processes) | {p for p, _ in self.threads}
        seen |= {m["pid"] for m in self.modules if m["pid"] is not None}
        return {
            "header": header,
            "modules": modules,
            "frames": [dict(id=i, mode=f["mode"], module=f["module"], ip=hex(f["ip"]),
                            rel=hex(f["rel"])) for i, f in enumerate(self.frames)],
            "stacks": [dict(id=i, prefix=p, frame=f) for i, (p, f) in enumerate(self.stacks)],
            "threads": [dict(id=i, pid=p, tid=t) for i, (p, t) in enumerate(self.threads)],
            "python_runtime": [dict(timestamp_ns=t, pid=p, is_python=f)
                               for t, p, f in self.pythons],
            "processes": sorted(seen),
            "samples": [self.sample_view(i) for i in range(len(self.samples))],
            "recovered": recovered,
        }


def path_view(path):
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path_hex": path.hex()}


def read_all(data, format):
    """(Reader, recovered). Raises Corrupt."""
    reader = Reader(data, format)
    while True:
        try:
            if reader.step(data) is None:
                return reader, False
        except Short:
            return reader, True


class TailModel:
    """Batch by batch tailing of a file given its visible bytes at each poll."""

    def __init__(self, data, format):
        self.reader = Reader(data, format)
        self.mapped = len(data)
        self.fresh = True
        self.more = self.parse(data)

    def observe(self, pid):
        if pid is not None and pid not in self.pids:
            self.pids.append(pid)

    def parse(self, data):
        self.pids, self.begin = [], len(self.reader.samples)
        reader = self.reader
        while True:
            try:
                modules, pythons = len(reader.modules), len(reader.pythons)
                at = reader.at
                tag = reader.step(data)
            except Short:
                return False
            if tag is None:
                return False
            if len(reader.modules) > modules:
                self.observe(reader.modules[-1]["pid"])
            elif len(reader.pythons) > pythons:
                self.observe(reader.pythons[-1][1])
            elif tag == SAMPLE:
                self.observe(reader.threads[reader.samples[-1][1]][0])
            elif tag == OFF_PROCESS:
                self.observe(reader.extra_processes[-1])
            elif tag == OFF_MODULE:
                id = Cursor(data, at + 1).varint()
                self.observe(reader.modules[id]["pid"])
            if tag in (OFF_PROCESS, OFF_MODULE) or len(reader.samples) - self.begin == BATCH:
                return reader.at < len(data)

    def poll(self, data):
        if len(data) < self.mapped:
            raise Corrupt("file shrank")
        if self.fresh:
            self.fresh = False
            self.more = self.more or len(data) > self.mapped
        else:
            self.more = self.parse(data)
        self.mapped = len(data)
        return {"samples": len(self.reader.samples) - self.begin, "processes": list(self.pids),
                "has_more": self.more}


# ---------------------------------------------------------------- writing as the originals do

class Writer:
    """Emits records in the order and with the interning the original writers use.

    Frames are given leaf first as (frame tag, value) pairs.
    """

    def __init__(self, format, head):
        self.format, self.out = format, bytearray(head)
        self.frames = {"pinned": {}, "user": {}, "kernel": {}}
        self.next_frame, self.stacks, self.threads = 0, {}, {}
        self.kernel_modules, self.last = set(), 0

    def forget(self, kernel):
        self.frames["user"].clear()
        if kernel or self.format == 3:
            self.frames["kernel"].clear()

    def module(self, record, id, is_kernel):
        self.out += record
        self.forget(is_kernel)
        if is_kernel:
            self.kernel_modules.add(id)

    def off_process(self, pid):
        self.out += off_process(pid)
        self.forget(False)

    def off_module(self, id):
        self.out += off_module(id)
        self.forget(id in self.kernel_modules)
        self.kernel_modules.discard(id)

    def python(self, timestamp, pid, flag):
        self.out += python(timestamp, pid, flag)

    def sample(self, timestamp, pid, tid, frames):
        if not frames:
            return
        prefix = ROOT
        for key in reversed(frames):
            tag = key[0]
            cache = self.frames["pinned" if tag % 2 == 0 or tag == 5 else
                                "kernel" if tag == 3 else "user"]
            if key not in cache:
                cache[key] = self.next_frame
                self.out += frame(self.next_frame, *key)
                self.next_frame += 1
            node = prefix, cache[key]
            if node not in self.stacks:
                self.stacks[node] = len(self.stacks)
                self.out += stack(self.stacks[node], *node)
            prefix = self.stacks[node]
        who = pid, tid
        if who not in self.threads:
            self.threads[who] = len(self.threads)
            self.out += thread(self.threads[who], *who)
        self.out += sample(timestamp - self.last, self.threads[who], prefix)
        self.last = timestamp


def rewrite(data, format):
    """Decode a complete spool and write it again through Writer."""
    reader = Reader(data, format)
    writer = Writer(format, data[:reader.at])
    while True:
        at = reader.at
        tag = reader.step(data)
        if tag is None:
            return bytes(writer.out)
        if tag in (MODULE, JIT):
            writer.module(data[at:reader.at], len(reader.modules) - 1, reader.modules[-1]["kernel"])
        elif tag == PYTHON:
            writer.python(*reader.pythons[-1])
        elif tag == OFF_PROCESS:
            writer.off_process(reader.extra_processes[-1])
        elif tag == OFF_MODULE:
            writer.off_module(Cursor(data, at + 1).varint())
        elif tag == SAMPLE:
            timestamp, thread_id, node = reader.samples[-1]
            keys = []
            while node is not None:
                node, frame_id = reader.stacks[node]
                made = reader.frames[frame_id]
                keys.append((5, 0) if made["mode"] == "truncated" else
                            (made["module"] << 1, made["rel"]) if made["module"] is not None else
                            (3 if made["mode"] == "kernel" else 1, made["ip"]))
            writer.sample(timestamp, *reader.threads[thread_id], keys)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The speed and size of reading and writing spools, each line with its goal.

Times are CPU times that both programs take of themselves, so that a busy machine matters less.
"""
import os
import re
import statistics
import subprocess
import time

ROUNDS = 5
SAMPLES = 1200000
TAIL_RATE, TAIL_SECONDS = 100000, 5
LIVE_SECONDS = 4


def numbers(text):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)\b", text)}


class SpoolBench:
    def __init__(self, build, peer, work, measured, big):
        self.build, self.work, self.measured, self.big = build, work, measured, big
        self.recorder = peer and os.path.join(peer, "peer-record")
        self.peer = peer and os.path.join(peer, "peer-read")
        self.missed = 0

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def generate(self, samples, *options):
        path = os.path.join(self.work, f"made-{samples}.spool")
        subprocess.run([self.program("spool_gen"), "-n", str(samples), *options, path], check=True)
        return path

    def row(self, what, ours, theirs, unit, ratio=None, goal="", met=True):
        """One line; what has no peer is compared with a fixed goal."""
        self.missed += not met
        shown = "" if theirs is None else f"{theirs:10.3f}"
        factor = "" if ratio is None else f"{ratio:7.2f}x"
        verdict = "" if not goal else f"  goal {goal}{'' if met else '  MISSED'}"
        print(f"{what:<46} {ours:10.3f} {shown:>10} {unit:<8} {factor:>8}{verdict}", flush=True)

    def once(self, ours, spool, peer):
        """Our numbers and the peer's of one round, each with its peak in MiB (of that process alone)."""
        result = []
        for command in ([self.program("spool_read"), ours, spool],
                        self.peer and [self.peer, peer, "4", spool]):
            if command:
                # The kernel's own count would begin with the memory of this program.
                got = numbers(self.measured(command)[3])
                result.append(got | {"peak": got["peak_kib"] / 1024})
        return result

    def compare(self, ours, spool, peer, key):
        """Medians of alternating rounds."""
        rounds = [self.once(ours, spool, peer) for _ in range(ROUNDS)]
        return [statistics.median(r[who][key] for r in rounds) for who in range(len(rounds[0]))] + [None]

    def rate_row(self, what, mode, spool, peer, goal, key="walk_seconds"):
        ours, theirs, *_ = self.compare(mode, spool, peer, key)
        ratio = theirs and theirs / ours
        self.row(what, SAMPLES / ours / 1e6, theirs and SAMPLES / theirs / 1e6, "M/s", ratio,
                 goal and f">= {goal}x", not goal or not ratio or ratio >= goal)

    def peak_row(self, what, mode, spool, peer, goal):
        ours, theirs, *_ = self.compare(mode, spool, peer, "peak")
        ratio = theirs and ours / theirs
        self.row(what, ours, theirs, "MiB", ratio, f"<= {goal}x", not ratio or ratio <= goal)

    def reading(self):
        spool = self.generate(SAMPLES)
        self.rate_row("replay, samples only, in blocks", "blocks", spool, "replay", 4)
        self.rate_row("replay, samples only, one by one", "samples", spool, "replay", None)
        self.rate_row("replay, every frame, ids of a stack at once", "ids", spool, "frames", 2)
        self.rate_row("replay, every frame, one by one", "frames", spool, "frames", None)
        self.rate_row("open and validate", "open", spool, "open", 3, "open_seconds")
        self.peak_row("peak memory of Replay, every frame", "ids", spool, "frames", 0.8)
        self.peak_row("peak memory of Snapshot", "snapshot", spool, "snapshot", 0.6)
        os.unlink(spool)

    def writing(self):
        rounds = []
        for _ in range(ROUNDS):
            _, _, _, text = self.measured([self.program("spool_write"), "-d", "100"])
            rounds.append([numbers(line) for line in text.splitlines()])
        for way, name in enumerate(("by a recorder", "through the public call")):
            new = statistics.median(r[way]["new_node_ns"] for r in rounds)
            again = statistics.median(r[way]["repeated_stack_ns"] for r in rounds)
            self.row(f"write a new node, {name}", new, None, "ns", None, "" if way else "< 30 ns",
                     way or new < 30)
            self.row(f"write a known stack of 100, {name}", again, None, "ns")

    def following(self):
        path = os.path.join(self.work, "growing.spool")
        samples = TAIL_RATE * TAIL_SECONDS
        writer = subprocess.Popen([self.program("spool_gen"), "-n", str(samples), "-r", str(TAIL_RATE), path])
        while not (os.path.exists(path) and os.path.getsize(path)):
            time.sleep(0.01)
        start = time.monotonic()
        reader = subprocess.Popen([self.program("spool_read"), "tail", path, str(samples)],
                                  stdout=subprocess.PIPE, text=True)
        writer.wait()
        written = time.monotonic()
        text = reader.communicate()[0]
        behind, seconds = time.monotonic() - written, time.monotonic() - start
        share = numbers(text)["cpu_seconds"] / seconds * 100
        self.row(f"tail at {TAIL_RATE} samples/s, share of a CPU", share, None, "%", None, "< 20 %",
                 share < 20)
        self.row("tail, behind the writer at its end", behind * 1e3, None, "ms", None, "< 100 ms",
                 behind < 0.1)
        os.unlink(path)

    def growing(self):
        sizes = [1000000, 10000000] + [100000000] * self.big
        first = {}
        for samples in sizes:
            spool = self.generate(samples)
            rounds = [self.once("blocks", spool, "replay")[0] for _ in range(3 if samples > 1e7 else ROUNDS)]
            got = {key: statistics.median(r[key] for r in rounds) for key in ("open_seconds", "walk_seconds", "peak")}
            first = first or got
            million = f"{samples // 1000000} M samples"
            self.row(f"open, {million}", got["open_seconds"] / samples * 1e9, None, "ns each")
            self.row(f"walk, {million}", got["walk_seconds"] / samples * 1e9, None, "ns each")
            self.row(f"peak memory of Replay, {million}", got["peak"], None, "MiB",
                     got["peak"] / first["peak"], "flat", got["peak"] < 1.5 * first["peak"])
            os.unlink(spool)

    def record(self, command, spool, pid):
        """Records a running program; gives the number of samples."""
        self.measured([*command[0], pid, *command[1]])
        return int(numbers(self.measured([self.program("spool_read"), "blocks", spool])[3])["samples"])

    def live(self):
        """The same program recorded by both, up to as many samples."""
        if not self.recorder:
            return
        tool = os.path.join(self.build, "tools/stackpulse/stackpulse")
        ours, theirs = (os.path.join(self.work, name) for name in ("live-ours.spool", "live-peer.spool"))
        commands = (([tool, "record", "-q", "-o", ours, "-F", 999, "-d", LIVE_SECONDS, "--stack-size", 32768,
                      "--no-children", "--no-annotations", "-p"], []),
                    ([self.recorder, 4], [LIVE_SECONDS, theirs, 999, 32768]))
        for name, arguments in (("tmpl", "100000"), ("deep", "1000000000")):
            target = subprocess.Popen([os.path.join(self.work, "bin", name), arguments],
                                      stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(0.2)
            pairs = []
            try:
                for _ in range(ROUNDS):
                    count = min(self.record(command, spool, target.pid)
                                for command, spool in zip(commands, (ours, theirs)))
                    pairs.append([numbers(self.measured([self.program("spool_read"), "bytes", spool, count])[3])
                                  ["bytes"] / count for spool in (ours, theirs)])
            finally:
                target.kill()
                target.wait()
            mine, other = (statistics.median(pair[who] for pair in pairs) for who in (0, 1))
            ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
            self.row(f"bytes per sample, live recording of {name}", mine, other, "", ratio, "<= 1.02x",
                     ratio <= 1.02)

    def run(self):
        self.reading()
        self.live()
        self.writing()
        self.following()
        self.growing()
        print("bytes per sample: tests/unit/spool/test_reencode.c writes the crate's own recordings byte for byte")
        print(f"{self.missed} goals missed" if self.missed else "all goals met")

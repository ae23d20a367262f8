# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The load and speed of recorders, each line with its goal: ours, the peer and perf by turns.

CPU time is a recorder's own user and system time, so that a busy machine matters less; per sample
it is without that of a recording of a program that sleeps. Yield is the number of samples written of those that were due by the CPU time that the target used
meanwhile, in a window in the middle of the recording.
"""
import os
import re
import shutil
import statistics
import subprocess
import time

STACK = 32768
PAGE = os.sysconf("SC_PAGE_SIZE")
LOAD = 3  # seconds of a recording whose cost or yield is measured
SLOWDOWN_PAIRS = 11
STORM = 2000
EVENTS, PROCESSES = ("anon_inode:[perf_event]",), ("anon_inode:[pidfd]", "pidfd:[pidfd]")
PER_PAIR, PER_STORM = 3, 3


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def clocks(pid):
    """(now, seconds of CPU that all threads of a process had), both read without a pause between."""
    while True:
        before = time.monotonic()
        used = time.clock_gettime((~pid << 3) | 2)  # the kernel's clock of another process
        now = time.monotonic()
        if now - before < 1e-4:
            return now, used


def descriptors(pid, kinds):
    """How many of these kinds a process has open."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{fd}") in kinds
        except OSError:
            pass
    return count


def ring_mib(pid):
    total = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if "[perf_event]" in line:
                start, end = line.split(" ", 1)[0].split("-")
                total += int(end, 16) - int(start, 16) - PAGE  # the first page is no part of it
    return total / 2**20


class Recording:
    """A recorder that runs beside a target, below the launcher that counts its cost."""

    def __init__(self, alone, work, command, threads):
        self.command, self.result = command, os.path.join(work, "alone.txt")
        if os.path.exists(self.result):
            os.unlink(self.result)
        self.log = open(os.path.join(work, "recorder.log"), "w+b")
        self.launcher = subprocess.Popen([alone, self.result, *map(str, command)], stdout=self.log,
                                         stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.pid = int(self.read("pid"))
        self.await_events(threads)

    def read(self, key):
        for _ in range(500):
            try:
                with open(self.result, encoding="ascii") as file:
                    found = re.search(rf"^{key}=([\d.]+)\n", file.read(), re.M)
                if found:
                    return float(found.group(1))
            except FileNotFoundError:
                pass
            time.sleep(0.01)
        raise SystemExit(f"{self.command}: nothing measured")

    def await_events(self, threads):
        """Until each thread has its events, and some time more for the rest of the attach."""
        try:
            for _ in range(600):
                if descriptors(self.pid, EVENTS) >= threads * os.cpu_count():
                    break
                time.sleep(0.1)
            time.sleep(0.3)
        except OSError:
            pass  # it ended already

    def end(self, may_fail=False):
        status = self.launcher.wait()
        self.log.seek(0)
        text = self.log.read().decode(errors="replace")
        self.log.close()
        if status and may_fail:
            return None  # on a machine so busy that it had not opened its events yet
        if status:
            raise SystemExit(f"{' '.join(map(str, self.command))}: status {status}\n{text[-2000:]}")
        return {"cpu": self.read("cpu_seconds"), "peak": self.read("peak_kib") / 1024}


class RecorderBench:
    def __init__(self, build, peer, work, rounds):
        self.tool, self.work, self.rounds = os.path.join(build, "stackpulse"), work, rounds
        self.alone = os.path.join(build, "bench/alone")
        self.peer = peer and os.path.join(peer, "peer-record")
        self.perf = shutil.which("perf")
        self.missed = 0

    def target(self, *command):
        return [os.path.join(self.work, "bin", command[0]), *map(str, command[1:])]

    def start(self, who, pid, seconds, rate, *options):
        spool = os.path.join(self.work, f"recorder-{who}.spool")
        children = "children" in options
        if who == "ours":
            command = [self.tool, "record", "-q", "-o", spool, "-F", rate, "-d", seconds, "--stack-size", STACK,
                       *([] if children else ["--no-children"]),
                       *(["--mode", "running"] if "running" in options else []), "-p", pid]
        elif who == "peer":
            command = [self.peer, 4, pid, seconds, spool, rate, STACK, *(["children"] if children else [])]
        else:
            command = [self.perf, "record", "-q", "-e", "cpu-clock:u", "-k", "CLOCK_MONOTONIC", "-F", rate,
                       "--call-graph", who.split()[1], "-o", spool, "-p", pid]
        return spool, Recording(self.alone, self.work, command, len(os.listdir(f"/proc/{pid}/task")))

    def times(self, who, spool):
        """When samples were taken, in seconds."""
        if who.startswith("perf"):
            out = subprocess.run([self.perf, "script", "-i", spool, "-F", "pid,time", "--ns"], check=True,
                                 capture_output=True, text=True).stdout
            return [float(x) for x in re.findall(r"(\d+\.\d+):", out)]
        out = subprocess.run([self.tool, "script", "--raw", spool], check=True, stdout=subprocess.PIPE).stdout
        return [float(x) for x in re.findall(rb"^(?:\S.* )?\d+/\d+ (\d+\.\d+):", out, re.M)]

    def load(self, who, command, rate):
        """Cost, yield and memory of recording a program that is hot."""
        target = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            time.sleep(0.2)
            spool, recording = self.start(who, target.pid, 600, rate)
            start, before = clocks(target.pid)
            time.sleep(LOAD)
            end, after = clocks(target.pid)
            rings = ring_mib(recording.pid)
        finally:
            target.kill()  # which ends the recording
            target.wait()
        result = recording.end(who.startswith("perf"))
        if not result:
            return {"yield": None}
        times = self.times(who, spool)
        os.unlink(spool)
        cost = result["cpu"] - (0 if who.startswith("perf") else self.empty_once(who, rate)["cpu"])
        return result | {"per_sample": cost / max(len(times), 1) * 1e6, "rings": rings,
                         "yield": sum(start <= t < end for t in times) / max((after - before) * rate, 1)}

    def by_turns(self, once, rounds, *others):
        """{who: [what it gave, round by round]}."""
        found = {}
        for _ in range(rounds):
            for who in ["ours", *(["peer"] if self.peer else []), *others]:
                found.setdefault(who, []).append(once(who))
        return found

    def row(self, what, ours, theirs, unit, goal="", met=True, note=""):
        self.missed += not met
        shown = "" if theirs is None else f"{theirs:10.3f}"
        factor = f"{ours / theirs:7.2f}x" if theirs else ""
        verdict = "" if not goal else f"  goal {goal}{'' if met else '  MISSED'}"
        print(f"{what:<46} {ours:10.3f} {shown:>10} {unit:<8} {factor:>8}{verdict}{note}", flush=True)

    def ratio_row(self, what, found, key, unit, goal, note=""):
        """Ours against the peer, the median of the ratio in each pair beside a goal."""
        ours = median(r[key] for r in found["ours"])
        if "peer" not in found:
            return self.row(what, ours, None, unit, note=note)
        ratio = median(a[key] / b[key] for a, b in zip(found["ours"], found["peer"]))
        return self.row(what, ours, median(r[key] for r in found["peer"]), unit, f"<= {goal}x", ratio <= goal,
                        f"  pairs {ratio:.2f}x{note}")

    def hot(self, title, command, rate, cost, share, perf):
        others = [perf] if perf and self.perf else []
        found = self.by_turns(lambda who: self.load(who, command, rate), self.rounds, *others)
        if cost:
            self.ratio_row(f"CPU per sample, {title}", found, "per_sample", "us", cost)
        ours = median(r["yield"] for r in found["ours"])
        theirs = median(r["yield"] for r in found.get("peer", []))
        note = "".join(f"  {who} {median(r['yield'] for r in found[who]) or 0:.3f}" for who in others)
        self.row(f"yield, {title}", ours, theirs, "", share and f">= {share}", not share or ours >= share, note)
        rings = [max(r["rings"] for r in found[who]) for who in found if not who.startswith("perf")]
        self.ratio_row(f"peak memory, {title}", found, "peak", "MiB", 0.5)
        self.row(f"rings, {title}", rings[0], rings[1] if len(rings) > 1 else None, "MiB", "<= 32 MiB", rings[0] <= 32)

    def empty_once(self, who, rate=999):
        target = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        try:
            time.sleep(0.1)
            return self.start(who, target.pid, 1, rate)[1].end()
        finally:
            target.kill()
            target.wait()

    def empty(self):
        found = self.by_turns(self.empty_once, self.rounds * PER_PAIR)
        for values in found.values():
            for value in values:
                value["ms"] = value["cpu"] * 1e3
        self.ratio_row("CPU of an empty recording", found, "ms", "ms", 0.3)

    def released(self, who, script, seconds, rate, *options):
        """Attaches to a shell that waits, then lets it go on; gives it, the recording and the spool."""
        target = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        spool, recording = self.start(who, target.pid, seconds, rate, *options)
        target.stdin.write(b"\n")
        target.stdin.flush()
        return target, spool, recording

    def slowed_once(self, who):
        command = " ".join(self.target("deep", 200000))
        target, spool, recording = self.released(who, f"read x; exec {command}", 60, 9999)
        _, status, usage = os.wait4(target.pid, 0)
        target.returncode = os.waitstatus_to_exitcode(status)
        target.stdin.close()
        recording.end()
        os.unlink(spool)
        return {"seconds": usage.ru_utime + usage.ru_stime}

    def slowdown(self):
        found = self.by_turns(self.slowed_once, SLOWDOWN_PAIRS)
        self.ratio_row("CPU of a recorded program, deep at 10 kHz", found, "seconds", "s", 1.02)

    def storm_once(self, who):
        command = " ".join(self.target("storm", STORM))
        target, spool, recording = self.released(who, f"read x; {command}; echo done >&2; read x", 600, 999, "children")
        result = {"leak": 0}
        before = descriptors(recording.pid, EVENTS + PROCESSES)
        # The shell has one child while the storm goes on and none after it.
        children = f"/proc/{target.pid}/task/{target.pid}/children"
        time.sleep(0.5)
        while open(children, encoding="ascii").read().strip():
            time.sleep(0.05)
        time.sleep(0.5)
        result["leak"] = descriptors(recording.pid, EVENTS + PROCESSES) - before
        target.stdin.close()
        target.wait()
        result |= recording.end()
        if who == "ours":
            text = subprocess.run([self.tool, "info", spool], check=True, capture_output=True, text=True).stdout
            result["named"] = len(set(re.findall(r"^\s+(\d+)\s+comm = exe$", text, re.M)))
        os.unlink(spool)
        return result

    def storm(self):
        found = self.by_turns(self.storm_once, PER_STORM)
        self.ratio_row(f"CPU, {STORM} short processes", found, "cpu", "s", 0.5)
        named = min(r["named"] for r in found["ours"])
        self.row(f"of {STORM} short processes named", named, None, "", f">= {STORM}", named >= STORM)
        leaks = [max(r["leak"] for r in found[who]) for who in found]
        self.row("descriptors of events and processes left", leaks[0], leaks[1] if len(leaks) > 1 else None, "", "<= 0", leaks[0] <= 0)

    def gap_once(self, who, *options):
        target = subprocess.Popen(self.target("gap", 64), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(0.2)
        self.start(who, target.pid, 0.5, 99, *options)[1].end()
        return float(target.communicate()[0].decode().split("=")[1])

    def stop(self):
        """The longest gap that a thread saw while its process was attached to, less that of ours not stopping it."""
        found = self.by_turns(lambda who: {"gap": self.gap_once(who), "running": self.gap_once("ours", "running")},
                              self.rounds * PER_PAIR)
        gaps = {who: median(r["gap"] - r["running"] for r in found[who]) for who in found}
        self.row("64 threads stopped for", gaps["ours"], gaps.get("peer"), "ms", "< 2 ms", gaps["ours"] < 2)

    def run(self):
        print(f"{'recorder':<46} {'ours':>10} {'peer':>10}")
        self.hot("tmpl at 10 kHz", self.target("tmpl", 100000), 9999, 0.5, None, None)
        self.hot("deep at 10 kHz", self.target("deep", 10**9), 9999, 0.3, 0.98, "perf dwarf")
        self.hot("64 threads at 999 Hz", self.target("threads", 64, 1000), 999, None, 0.97, "perf fp")
        self.empty()
        self.slowdown()
        self.storm()
        self.stop()

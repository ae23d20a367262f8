# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""What the flow tests share: building targets, running the tool and reading what it printed.

A test calls check() for what must hold and returns; an exception or a failed check is a failure.
"""
import ctypes
import errno
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("STACKPULSE_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("STACKPULSE_BUILD") or os.path.join(SOURCE, "build")
TOOL = os.environ.get("STACKPULSE") or os.path.join(BUILD, "tools/stackpulse/stackpulse")
SANITIZED = os.environ.get("STACKPULSE_SANITIZE", "none") != "none"
TARGETS = os.path.join(BUILD, "flow-targets")
HOT = ["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]

faults = []
WORK = tempfile.mkdtemp(prefix="stackpulse-flow-")


def skip(reason):
    print(f"SKIP: {reason}")
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(77)


def check(condition, text):
    """Notes a fault and goes on, so that one run shows all of them."""
    if not condition:
        print(f"FAULT: {text}", flush=True)
        faults.append(text)
    return bool(condition)


def perf_works():
    """Whether this kernel lets us count our own time, asked without the tool."""
    attr = (ctypes.c_uint8 * 128)()
    attr[0:4] = (1).to_bytes(4, "little")    # PERF_TYPE_SOFTWARE
    attr[4:8] = (128).to_bytes(4, "little")  # size
    attr[40] = 0x20 | 0x40                   # exclude_kernel, exclude_hv
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    fd = libc.syscall(number, ctypes.byref(attr), 0, -1, -1, 8)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def main(*tests, perf=True):
    """Runs test functions in order in a fresh folder; the exit status says how they went."""
    if perf and not perf_works():
        skip("the kernel refuses perf_event_open")
    # Under nohup the tool would rightly ignore the hangups that the tests send.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    only = [name for name in sys.argv[1:] if not name.startswith("-")]
    try:
        os.chdir(WORK)
        for test in tests:
            if only and test.__name__ not in only:
                continue
            before, start = len(faults), time.time()
            try:
                test()
            except Exception as e:  # noqa: BLE001 a broken test must not hide the others
                import traceback
                traceback.print_exc(file=sys.stdout)
                faults.append(repr(e))
            print(f"{'ok' if len(faults) == before else 'FAILED'}: {test.__name__} "
                  f"({time.time() - start:.1f} s)", flush=True)
    finally:
        os.chdir("/")
        if not os.environ.get("KEEP"):
            shutil.rmtree(WORK, ignore_errors=True)
        else:
            print(f"kept: {WORK}")
    sys.exit(1 if faults else 0)


def run(*command, timeout=120, text=True, **more):
    """Runs a command and gives the finished process with its output."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(c) for c in command], capture_output=True, text=text,
                          errors="surrogateescape" if text else None, timeout=timeout, **more)


def tool(*args, **more):
    return run(TOOL, *args, **more)


def tool_ok(*args, **more):
    """Runs the tool, which must work; gives its standard output."""
    r = tool(*args, **more)
    if r.returncode:
        raise RuntimeError(f"stackpulse {' '.join(map(str, args))}: exit status {r.returncode}\n"
                           f"{r.stdout[-2000:]}\n{r.stderr[-2000:]}")
    return r.stdout


def record(spool, options, command, status=0, **more):
    """Records a command; gives the tool's stderr."""
    r = tool("record", "-o", spool, *options, "--", *command, **more)
    check(r.returncode == status, f"record ended with {r.returncode}, not {status}: {r.stderr[-1500:]}")
    return r.stderr


def start_tool(*args, **more):
    return subprocess.Popen([TOOL, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True, **more)


def finish(process, timeout=60):
    """Waits for a started tool; gives (exit status, stdout, stderr)."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        check(False, f"{process.args} did not end within {timeout} s")
    return process.returncode, out, err


def wait_for(condition, timeout=20):
    """Waits until a condition holds; gives its value, or what it was at the end."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


def start_ready(*command, **more):
    """Starts a target and waits for the READY that it prints."""
    p = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                         stdin=subprocess.DEVNULL, **more)
    line = p.stdout.readline()
    if "READY" not in line:
        p.kill()
        raise RuntimeError(f"{command} is not ready: {line!r}")
    return p


def stop(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def children_of(pid):
    """The process ids of a process's children."""
    try:
        return [int(word) for word in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def stop_all(process):
    """Ends a started process and its children."""
    for pid in children_of(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    stop(process)


def state_of(pid):
    """The state letter of a process, '' when it is gone."""
    try:
        return open(f"/proc/{pid}/stat", errors="replace").read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def cpu_seconds(pid):
    """User and system time that a process has used."""
    fields = open(f"/proc/{pid}/stat", errors="replace").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def find_program(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    return None


def target(name, source=None, flags=(), compiler=None, after=None):
    """Builds a program from tests/targets, once; gives its path."""
    source = os.path.join(SOURCE, "tests/targets", source or name + ".c")
    out = os.path.join(TARGETS, name)
    if os.path.exists(out) and os.path.getmtime(out) >= os.path.getmtime(source):
        return out
    os.makedirs(TARGETS, exist_ok=True)
    compiler = compiler or ("c++" if source.endswith(".cc") else "cc")
    fresh = f"{out}.{os.getpid()}"
    if source.endswith(".go"):
        command = [compiler, "build", "-o", fresh, *flags, source]
    elif source.endswith(".rs"):
        command = [compiler, *flags, "-o", fresh, source]
    else:
        command = [compiler, *HOT, "-o", fresh, source, *flags]
    r = subprocess.run(command, capture_output=True, text=True,
                       env={**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    if r.returncode:
        raise RuntimeError(f"{' '.join(command)}: {r.stderr}")
    if after:
        subprocess.run([*after, fresh], check=True)
    os.rename(fresh, out)
    return out


def dump(spool):
    """The raw content of a spool."""
    r = tool("dump", spool)
    parsed = json.loads(r.stdout)
    if parsed.get("outcome") not in ("valid", "recovered"):
        raise RuntimeError(f"dump {spool}: {r.stdout[:500]}")
    return parsed["document"]


def folded(spool, *options):
    """[(frames root first, count)] of `folded`."""
    stacks = []
    for line in tool_ok("folded", spool, *options).split("\n"):
        if line:
            names, _, count = line.rpartition(" ")
            stacks.append((names.split(";"), int(count)))
    return stacks


def share(stacks, condition):
    """Share of the samples whose stack (root first) meets a condition."""
    total = sum(count for _, count in stacks)
    return sum(count for names, count in stacks if condition(names)) / total if total else 0


def script(spool, *options):
    """The samples of `script --json`, one object each."""
    return [json.loads(line) for line in tool_ok("script", "--json", spool, *options).split("\n")
            if line.strip()]


def numbers(stderr):
    """(samples, lost) that the closing text of `record` names."""
    samples, lost = re.search(r"samples=(\d+)", stderr), re.search(r"lost=(\d+)", stderr)
    if not samples or not lost:
        raise RuntimeError(f"no samples= and lost= in: {stderr[-800:]}")
    return int(samples.group(1)), int(lost.group(1))


def as_nobody(*command):
    """The same command without privileges."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
            "--bounding-set=-all", *map(str, command)]


def open_folder():
    """A folder of this test that everybody may write to."""
    folder = os.path.join(WORK, "everybody")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    os.chmod(WORK, 0o755)
    return folder


def tool_for_nobody():
    """The tool, or a copy of it where its own folder is closed to others."""
    open_folder()
    if run(*as_nobody(TOOL, "--version")).returncode == 0:
        return TOOL
    folder = os.path.join(WORK, "tool")
    if not os.path.exists(folder):
        os.mkdir(folder)
        shutil.copy(TOOL, folder)
        for path in re.findall(r"=> (/\S*libstackpulse\S*)", run("ldd", TOOL).stdout):
            shutil.copy(path, folder)
    os.environ["LD_LIBRARY_PATH"] = folder
    return os.path.join(folder, "stackpulse")


def starts(name, *arguments):
    """Whether a program really runs; a version manager's shim may only complain."""
    try:
        return run(name, *arguments, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def newer_python():
    """A CPython that knows -X perf (3.12 or later), or None."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    names = [shutil.which(f"python3.{minor}") for minor in range(20, 11, -1)] + [shutil.which("python3")]
    names += sorted(glob.glob("/opt/python*/bin/python3.*") + glob.glob("/usr/local/bin/python3.??")
                    + glob.glob(f"{pyenv}/versions/3.1[2-9]*/bin/python3")
                    + glob.glob(os.path.expanduser("~/.local/share/uv/python/*/bin/python3")),
                    reverse=True)
    probe = "import sys; sys.exit(not (sys.version_info >= (3, 12) and sys.is_stack_trampoline_active()))"
    for name in filter(None, names):
        if starts(name, "-X", "perf", "-c", probe):
            return run(name, "-c", "import sys; print(sys.executable)").stdout.strip() or name
    return None


__all__ = [name for name in globals() if not name.startswith("_")]

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Debug files come from a debuginfod server when one is named, and are shared with its own client."""
import fcntl
import re
import socket
import struct
import urllib.error
import urllib.request

from flow import *

SOURCE_TEXT = """
volatile long sum;
static inline __attribute__((always_inline)) void inner(int i) { sum += i; sum ^= 3; }
__attribute__((noinline)) void hot(int n)
{
	for (int i = 0; i < n; i++)
		inner(i);
}
int main(int argc, char **argv) { hot(argc); return 0; }
"""


def own_network():
    """A network with nothing but a loopback: the server listens everywhere. Without one it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group, root = os.getuid(), os.getgid(), os.geteuid() == 0
    if libc.unshare(0x40000000 | (0 if root else 0x10000000)):  # CLONE_NEWNET, CLONE_NEWUSER
        return
    if not root:
        for name, text in ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"):
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1 | 64))  # SIOCSIFFLAGS: up, running


class Server:
    """debuginfod over a folder, until stopped."""

    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [DEBUGINFOD, "-F", "-p", str(self.port), "-d", ":memory:", "-t", "1", folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, build_id):
        end = time.time() + 60
        while time.time() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/buildid/{build_id}/debuginfo", timeout=10):
                    return True
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        return False

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def stripped_program(name, served):
    """(path of a stripped program whose debug file the server has, addresses of hot, build ID)"""
    path = os.path.join(WORK, name)
    with open(path + ".c", "w") as f:
        f.write(SOURCE_TEXT.replace("sum ^= 3", f"sum ^= {len(name)}"))
    subprocess.run(["cc", "-O2", "-g", "-Wl,--build-id", "-o", path, path + ".c"], check=True)
    m = re.search(r"^(\w+) (\w+) T hot$", run("nm", "-S", path).stdout, re.M)
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", path).stdout)[1]
    subprocess.run(["objcopy", "--only-keep-debug", path, os.path.join(served, name + ".debug")], check=True)
    subprocess.run(["strip", path], check=True)
    return path, [hex(int(m[1], 16) + i) for i in range(int(m[2], 16))], build_id


def ask(program, cache, *options, urls=None, **more):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("DEBUGINFOD", "STACKPULSE_DEBUG"))}
    environment["DEBUGINFOD_CACHE_PATH"] = os.path.join(WORK, cache)
    if urls:
        environment["DEBUGINFOD_URLS"] = urls
    return run(TOOL, "symbolize", "-e", program[0], *options, *program[1], env={**environment, **more})


def is_named(r):
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    return "hot\n" in r.stdout and "inner\n" in r.stdout and re.search(r"\.c:3:", r.stdout) is not None


def nobody_is_asked_unless_told(server, program, other):
    r = ask(program, "none")
    check("hot" not in r.stdout and not r.stderr, f"{r.stdout[:100]} {r.stderr}")
    r = ask(program, "none", "--debuginfod", "off", urls=server.url)
    check("hot" not in r.stdout and not r.stderr, f"off: {r.stdout[:100]} {r.stderr}")
    check(not os.path.exists(os.path.join(WORK, "none")), "the cache of a client that is not used")


def a_named_server_is_asked(server, program, other):
    r = ask(program, "cache", urls=server.url)
    check(is_named(r), f"no names from the server: {r.stdout[:200]} {r.stderr}")
    check(program[2] in r.stderr, f"nothing is said of the wait: {r.stderr!r}")
    check(os.path.exists(os.path.join(WORK, "cache", program[2], "debuginfo")), "it is not in the cache")
    r = ask(program, "option", "--debuginfod", f"http://127.0.0.1:1 {server.url}")
    check(is_named(r), f"no names by the option: {r.stdout[:200]} {r.stderr}")


def a_cache_of_its_own(server, program, other):
    r = ask(program, "not-this", urls=server.url, STACKPULSE_DEBUGINFOD_CACHE_DIR=os.path.join(WORK, "own"))
    check(is_named(r), f"no names: {r.stdout[:200]} {r.stderr}")
    check(os.path.exists(os.path.join(WORK, "own", program[2], "debuginfo")), "it is not in its own cache")
    check(not os.path.exists(os.path.join(WORK, "not-this")), "the client's cache is used all the same")


def what_no_server_has(server, program, other):
    lost = stripped_program("unknown-to-all", WORK)
    r = ask(lost, "lost", urls=server.url)
    check(r.returncode == 0 and "hot" not in r.stdout, f"{r.returncode} {r.stdout[:200]}")


def the_client_s_cache_serves_both(server, program, other):
    environment = {**os.environ, "DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": os.path.join(WORK, "shared")}
    r = run("debuginfod-find", "debuginfo", other[2], env=environment)
    check(r.returncode == 0, f"debuginfod-find: {r.stderr}")
    server.stop()
    check(is_named(ask(other, "shared", urls=server.url)), "what its client fetched is not used")
    check(is_named(ask(program, "cache", urls=server.url)), "what was fetched before is not used")
    environment["DEBUGINFOD_CACHE_PATH"] = os.path.join(WORK, "cache")
    r = run("debuginfod-find", "debuginfo", program[2], env=environment)
    check(r.returncode == 0 and program[2] in r.stdout, f"the client does not see our file: {r.stderr}")
    r = ask(program, "gone", urls=server.url)
    check(r.returncode == 0 and "hot" not in r.stdout, "names out of nowhere")


def servers():
    served = os.path.join(WORK, "served")
    os.makedirs(served)
    program, other = stripped_program("program", served), stripped_program("another", served)
    server = Server(served)
    try:
        if not check(server.wait_for(program[2]) and server.wait_for(other[2]), "the server does not answer"):
            return
        for test in (nobody_is_asked_unless_told, a_named_server_is_asked, a_cache_of_its_own,
                     what_no_server_has, the_client_s_cache_serves_both):
            before = len(faults)
            test(server, program, other)
            print(f"{'ok' if len(faults) == before else 'FAILED'}: {test.__name__}")
    finally:
        server.stop()


DEBUGINFOD = shutil.which("debuginfod")
if not DEBUGINFOD or not shutil.which("debuginfod-find"):
    skip("no debuginfod")
own_network()
main(servers, perf=False)

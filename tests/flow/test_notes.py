# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""What a recording notes beside its samples: `info` shows it, and it is off by request."""
import os
import re

from flow import *

PROGRAM = """
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
static void *named(void *name)
{
	struct timespec now;

	prctl(PR_SET_NAME, name);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec == 0 && now.tv_nsec < 300000000);
	return 0;
}
int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, named, "my_50% \\xd0\\xba=");
	pthread_create(&b, 0, named, "second");
	pthread_join(a, 0);
	pthread_join(b, 0);
}
"""


def build():
    path = os.path.join(WORK, "named_%")
    with open(path + ".c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-Wl,--build-id", "-pthread", "-o", path, path + ".c"], check=True)
    return path


def annotations(spool):
    """{(process, key): value} of a recording."""
    return {(a.get("pid"), a["key"]): a["value"]
            for a in json.loads(tool_ok("info", "--json", spool))["annotations"]}


def build_id(path):
    notes = run("readelf", "-n", path).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def check_one(version, program):
    name = f"noted{version}.spool"
    long = "_%=" * 2000
    err = record(name, ["--format", version, "-F", "499"], [program, "two words", long])
    info = json.loads(tool_ok("info", "--json", name))
    notes = annotations(name)
    module = next(m for m in info["modules"] if m["path"] == program)
    pid = module["pid"]
    expected = {
        (None, "host"): os.uname().nodename,
        (None, "kernel"): os.uname().release,
        (None, "machine"): os.uname().machine,
        (None, "cpus"): str(os.cpu_count()),
        (None, "option/frequency"): "499",
        (None, "option/stack-size"): "32768",
        (None, "counter/samples"): str(numbers(err)[0]),
        (None, "counter/lost-events"): str(numbers(err)[1]),
        (None, f"build-id/{module['id']}"): build_id(program),
        (pid, "comm"): "named_%",
        (pid, "cmdline"): f"{program} two words {long}"[:4096],
    }
    for key, value in expected.items():
        check(notes.get(key) == value, f"format {version}: {key} is {str(notes.get(key))[:200]!r}, "
                                       f"not {value[:200]!r}")
    names = {value for (p, key), value in notes.items() if key.startswith("thread-name/") and p == pid}
    check({"my_50% \u043a=", "second"} <= names, f"format {version}: threads are named {names}")
    check(notes.get((None, "event")) in ("cpu-clock", "cpu-cycles", "cycles"),
          f"format {version}: event {notes.get((None, 'event'))}")
    text = tool_ok("info", name)
    for part in (f"host = {os.uname().nodename}", "second", "cpus = "):
        check(part in text, f"format {version}: {part!r} is missing in info's text")
    # They are no modules to whoever asks for those.
    check(all(not m["path"].startswith("//") for m in info["modules"]), "annotations among modules")


def what_is_noted():
    program = build()
    for version in ("3", "4"):
        check_one(version, program)


def off_by_request():
    for version in ("3", "4"):
        record("bare.spool", ["--format", version, "--no-annotations"], [target("deep"), "0.1"])
        check(not annotations("bare.spool"), f"format {version}: {annotations('bare.spool')}")
        check(b"//stackpulse" not in open("bare.spool", "rb").read(), "there are annotations")
        check("annotations" not in tool_ok("info", "bare.spool"), "info speaks of annotations")
        check(folded("bare.spool"), "there is nothing in it")


main(what_is_noted, off_by_request)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Programs without .eh_frame unwind by .debug_frame, be it stripped into a debug file."""

from flow import *

NO_TABLES = ["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def whole(spool, program, folder):
    environment = {**os.environ, "STACKPULSE_DEBUG_DIRS": folder}
    record(spool, ["-F", "499", "--stack-size", "60000"], [program, "1"], env=environment)
    samples = dump(spool)["samples"]
    check(len(samples) >= 100, f"only {len(samples)} samples")
    return sum(len(s["frames"]) >= 204 and not any("trunc" in f["mode"] for f in s["frames"])
               for s in samples) / len(samples)


def in_the_program():
    program = target("deep_debug_frame", "deep.c", NO_TABLES)
    share_whole = whole("own.spool", program, WORK)
    check(share_whole >= 0.98, f"only {share_whole:.2%} of the stacks are whole")


def in_a_debug_file():
    program = os.path.join(WORK, "stripped")
    shutil.copy(target("deep_debug_frame", "deep.c", NO_TABLES), program)
    number = build_id(program)
    folder = os.path.join(WORK, "debug")
    place = os.path.join(folder, ".build-id", number[:2])
    os.makedirs(place)
    subprocess.run(["objcopy", "--only-keep-debug", program, f"{place}/{number[2:]}.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    share_whole = whole("without.spool", program, os.path.join(WORK, "nowhere"))
    check(share_whole <= 0.05, f"{share_whole:.2%} are whole without the debug file")
    share_whole = whole("apart.spool", program, folder)
    check(share_whole >= 0.98, f"only {share_whole:.2%} are whole with the debug file")


def without_tables_is_counted_by_module():
    """What the frame pointer had to find is told with the module and the cause."""
    flags = [*NO_TABLES, "-fno-omit-frame-pointer"]
    program = os.path.join(WORK, "bare")
    shutil.copy(target("deep_bare", "deep.c", flags), program)
    subprocess.run(["strip", program], check=True)
    text = record("bare.spool", ["--json", "-F", "499"], [program, "1"])
    summary = json.loads(text.strip().split("\n")[-1])
    modules = summary["unwind_fallbacks_by_module"]
    check(modules and modules[0].get("module") == program, f"first is {modules[:1]}")
    check(all(m["frames"] for m in modules), "a module without frames is listed")
    check(modules == sorted(modules, key=lambda m: -m["frames"]), "the most frequent is not first")
    for cause, frames in summary["unwind_fallbacks"].items():
        listed = sum(m["frames"] for m in modules if m["cause"] == cause)
        check(listed == frames, f"{cause}: {listed} by module, {frames} in all")


main(in_the_program, in_a_debug_file, without_tables_is_counted_by_module)

# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""gzip at work: its time is in its own code, and in zlib's functions by name where they have one."""
import os
import random

from flow import *


def big_file():
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(3000)]
    with open("big", "w") as f:
        for _ in range(14):
            f.write(" ".join(rng.choices(words, k=60000)))


def gzip_spends_its_time_in_gzip():
    big_file()
    with open(os.devnull, "w") as null:
        r = subprocess.run([TOOL, "record", "-F", "499", "-o", "gzip.spool", "--", "gzip", "-9", "-c",
                            "big"], stdout=null, stderr=subprocess.PIPE, text=True, timeout=120)
    check(r.returncode == 0, f"exit status {r.returncode}: {r.stderr}")
    samples, _ = numbers(r.stderr)
    check(samples >= 100, f"only {samples} samples")
    document = dump("gzip.spool")
    check(len(document["samples"]) == samples, "the file and the closing text differ in samples")
    leaves = [s["frames"][0].get("path", "") for s in document["samples"] if s["frames"]]
    own = sum(os.path.basename(p).startswith(("gzip", "libz.")) for p in leaves) / samples
    check(own >= 0.8, f"only {own:.0%} of the samples end in gzip or libz")

    report = tool_ok("report", "gzip.spool")
    check("gzip" in report or "deflate" in report, f"report does not name gzip:\n{report}")


def zlib_functions_by_name():
    zipper = target("zipper", flags=["-l:libz.a"])
    samples, _ = numbers(record("zip.spool", ["-F", "997"], [zipper, "1.5"]))
    check(samples >= 100, f"only {samples} samples")
    stacks = folded("zip.spool")
    known = share(stacks, lambda names: "main" in names and any(
        n.startswith(("compress2", "deflate", "longest_match", "compress_block")) for n in names))
    check(known >= 0.95, f"zlib's functions under main in only {known:.0%}")
    hot = share(stacks, lambda names: names[-1].startswith(("longest_match", "deflate", "compress_block",
                                                            "insert_string", "slide_hash", "fill_window")))
    check(hot >= 0.7, f"hot zlib functions are leaves in only {hot:.0%}")
    report = tool_ok("report", "zip.spool")
    check("longest_match" in report or "deflate_slow" in report, f"report:\n{report}")


main(gzip_spends_its_time_in_gzip, zlib_functions_by_name)

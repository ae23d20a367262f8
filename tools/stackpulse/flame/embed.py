#!/usr/bin/env python3
# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""Makes a C header of the flame page's sources.

The page is one file that loads nothing. Its policy allows exactly this style and this script, by
their hashes, so that no name in a profile can become code. Title and data are put in by the tool,
between the three parts of the page.
"""
import base64
import hashlib
import sys


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def c_string(name, text):
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?", "\\?")
        lines.append('\t"' + escaped + '"')
    return "static const char %s[] =\n%s;\n" % (name, "\n".join(lines))


def main():
    html, css, js, output = sys.argv[1:]
    page, style, script = (open(path, encoding="utf-8").read() for path in (html, css, js))
    assert "</style" not in style and "</script" not in script
    page = page.replace("@STYLE_HASH@", hash_of(style)).replace("@SCRIPT_HASH@", hash_of(script))
    head, rest = page.split("@TITLE@")
    middle, tail = rest.split("@DATA@")
    parts = {
        "flame_page_head": head,
        "flame_page_middle": middle.replace("@STYLE@", style),
        "flame_page_tail": tail.replace("@SCRIPT@", script),
    }
    with open(output, "w", encoding="utf-8") as out:
        out.write("/* Made by embed.py of flame.html, flame.css and flame.js. */\n")
        for name, text in parts.items():
            out.write(c_string(name, text))


if __name__ == "__main__":
    main()

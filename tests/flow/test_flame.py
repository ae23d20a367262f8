# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The flame graph: one file, nothing from outside, hostile names harmless."""
import os
import re
from html.parser import HTMLParser

from flow import *


class Page(HTMLParser):
    """Collects tags, attributes and where scripts are."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.policy = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        values = dict(attrs)
        if tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = values.get("content", "")


def parse(path):
    page = Page()
    page.feed(open(path, encoding="utf-8").read())
    return page


def one_self_contained_file():
    record("deep.spool", ["-F", "499"], [target("deep"), "1"])
    tool_ok("flame", "deep.spool", "-o", "deep.html")
    text = open("deep.html", encoding="utf-8").read()
    page = parse("deep.html")
    check("default-src 'none'" in page.policy, f"content security policy: {page.policy!r}")
    check("unsafe-eval" not in page.policy, "eval is allowed")
    loads = [(t, n, v) for t, n, v in page.attributes
             if n in ("src", "href", "data", "action") and not v.startswith(("data:", "#"))]
    check(not loads, f"loads from outside: {loads}")
    check(not re.search(r"(https?:)?//[a-z]+\.", re.sub(r"http://www\.w3\.org/\S+", "", text)),
          "an address of a server is in the page")
    check(not [a for a in page.attributes if a[1].startswith("on")], "inline event handlers")
    check("level_a" in text and "leaf" in text, "names are missing")
    check(len(text) < 3 << 20, f"{len(text)} bytes")


def hostile_names():
    with open("hostile.c", "w") as f:
        f.write('int hot(int) __asm__("</script><img src=x onerror=alert(1)>&\\"\'`");\n'
                "__attribute__((noinline)) int hot(int x)\n"
                "{ for (int i = 0; i < 400000000; i++) x = x * 31 + i; return x; }\n"
                "int main(int c, char **v) { (void)v; return hot(c) == 1; }\n")
    r = run("cc", "-O1", "-g", "-o", "hostile", "hostile.c")
    if r.returncode:
        # Some assemblers refuse such names; a renamed symbol says the same.
        with open("hostile.c", "w") as f:
            f.write("__attribute__((noinline)) int hot(int x)\n"
                    "{ for (int i = 0; i < 400000000; i++) x = x * 31 + i; return x; }\n"
                    "int main(int c, char **v) { (void)v; return hot(c) == 1; }\n")
        r = run("cc", "-O1", "-o", "plain", "hostile.c")
        check(r.returncode == 0, r.stderr)
        r = run("objcopy", "--redefine-sym", "hot=</script><img src=x onerror=alert(1)>&\"'`", "plain", "hostile")
        check(r.returncode == 0, r.stderr)
    record("hostile.spool", ["-F", "499"], ["./hostile"])
    tool_ok("flame", "hostile.spool", "-o", "hostile.html")
    text = open("hostile.html", encoding="utf-8").read()
    page = parse("hostile.html")
    check("img" not in page.tags, "a name became a tag")
    check("onerror=alert(1)>" not in text.replace("\\u003e", ">") or "<img" not in text,
          "the name is in the page as it is")
    check(any("onerror" in n for names, _ in folded("hostile.spool") for n in names), "the name is lost")


def in_a_browser():
    """A browser without a network shows it and reports no error."""
    browser = find_program("chromium", "chromium-browser", "google-chrome")
    if not browser:
        print("no browser here: the page is only parsed")
        return
    record("b.spool", ["-F", "499"], [target("deep"), "0.5"])
    tool_ok("flame", "b.spool", "-o", "b.html")
    r = run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={WORK}/browser",
            "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
            f"file://{os.path.abspath('b.html')}", timeout=100)
    check("level_a" in r.stdout or "leaf" in r.stdout, "no names in the page")
    console = [line for line in r.stderr.split("\n") if "CONSOLE" in line]
    check(not console, f"the page complains: {console[:3]}")


def needs_an_output():
    record("n.spool", ["-q"], ["true"])
    r = tool("flame", "n.spool", "-o", "/nonexistent/x.html")
    check(r.returncode == 1 and "/nonexistent/x.html" in r.stderr, f"{r.returncode}: {r.stderr}")


main(one_self_contained_file, hostile_names, in_a_browser, needs_an_output)

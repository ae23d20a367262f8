# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
"""The house rules hold (scripts/lint), and the check for public comments can fail."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys

SOURCE = os.environ["STACKPULSE_SOURCE"]
LINT = os.path.join(SOURCE, "scripts/lint")
HEADER = """
/** Kinds. */
enum spulse_kind {
	/** One. */
	SPULSE_ONE = 1,
	SPULSE_TWO = 2,
};

/** Record. */
struct spulse_record {
	/** Size. */
	size_t size;
	uint32_t count;
	int (*run)(void *data,
		   int x);
};

struct spulse_opaque;
/** Does it. */
SPULSE_API int spulse_do(struct spulse_opaque *o,
			 int x);
SPULSE_API int spulse_undone(void);
"""


def main():
    loader = importlib.machinery.SourceFileLoader("lint", LINT)
    lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(lint)
    found = " ".join(lint.undocumented("x.h", HEADER))
    for name in ("SPULSE_TWO", "count", "run", "spulse_undone"):
        if name not in found:
            print(f"the check misses {name}: {found}")
            return 1
    for name in ("SPULSE_ONE", "size_t size", "spulse_do"):
        if name in found:
            print(f"the check blames {name}, which has a comment")
            return 1
    if not os.path.exists(os.path.join(SOURCE, ".git")):
        print("no git checkout: files are not listed, only the check itself was tested")
        return 0
    return subprocess.run([sys.executable, LINT]).returncode


sys.exit(main())

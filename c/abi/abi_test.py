#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether abi.py finds what it is for: each change of a copied header must make `abi.py check` fail, and name the line.

    abi_test.py --compiler cc --nm nm --library libtocsin-c.so.1
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# (what changes, where in the header, by what it is replaced, what abi.py must say)
CHANGES = (
    ("nothing", r"\A", "", "lines agree"),
    ("a size", r"(typedef struct tocsin_deadline \{)", r"\1 long more;", "gone or changed: size tocsin_deadline"),
    ("the order of members", r"(typedef struct tocsin_deadline \{\s*)([^;]*;)(\s*)([^;]*;)", r"\1\4\3\2",
     "gone or changed: offset tocsin_deadline."),
    ("a number of an enumeration", r"(typedef enum tocsin_clock [^{]*\{[^=]*= )\d+", r"\g<1>77",
     "gone or changed: value TOCSIN_CLOCK"),
    ("a signature", r"(tocsin_barrier_arrive_and_wait\(tocsin_barrier\* barrier)\)", r"\1, int more)",
     "gone or changed: function tocsin_status tocsin_barrier_arrive_and_wait"),
    ("a symbol's name", r"\btocsin_barrier_arrive_and_wait\(", "tocsin_barrier_arrive_and_stay(",
     "tocsin_barrier_arrive_and_stay: declared and not exported"),
)


def check(tree, arguments):
    """(exit code, output) of abi.py in a tree."""
    command = [sys.executable, tree / "abi" / "abi.py", "check", "--compiler", arguments.compiler, "--nm", arguments.nm,
               "--library", arguments.library]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def wrong_with(change, arguments):
    """What is wrong with abi.py's answer to one change, or nothing."""
    _, where, by, wanted = change
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("abi", "include"):
            shutil.copytree(HERE.parent / part, tree / part)
        header = tree / "include" / "tocsin.h"
        text, count = re.subn(where, by, header.read_text(), count=1)
        if count == 0:
            return "the header has no such place"
        header.write_text(text)
        code, output = check(tree, arguments)
    if (code == 0) != (wanted == "lines agree"):
        return f"exit code {code}: {output}"
    return "" if wanted in output else f"does not say '{wanted}': {output}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    failed = False
    for change in CHANGES:
        wrong = wrong_with(change, arguments)
        print(f"{change[0]}: {wrong or 'as expected'}")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has the shell read every script of the tree, without running it (`sh -n`).

    tools/check_shell.py    names the scripts that the shell can't read; fails if there are any
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_text import NOT_OURS  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FIRST_LINE = re.compile(rb"#! *(?:/\S*/)?(?:env +)?((?:ba|da|k|z)?sh)\b")


def shell_of(path):
    """The shell that runs this file; None for what is no shell script."""
    with path.open("rb") as file:
        named = FIRST_LINE.match(file.readline())
    return named[1].decode() if named else "sh" if path.suffix == ".sh" else None


def scripts(root):
    for path in sorted(root.rglob("*")):
        if not NOT_OURS.intersection(path.relative_to(root).parts) and path.is_file() and (shell := shell_of(path)):
            yield path, shell


def complaints(root):
    for path, shell in scripts(root):
        read = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
        if read.returncode != 0:
            yield f"{path.relative_to(root)}: {read.stderr.strip()}"


def main():
    found = list(complaints(ROOT))
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The licence line of every source file: it says the licence in a form that programs read (spdx.dev).

    tools/spdx.py            names the files that lack the line; fails if there are any
    tools/spdx.py --write    puts it into them

The line is the first, or the first that may be: after `#!` or `<?xml`, and after the lines with which a test of
tests/lifetimes must begin. Documents, data, and settings such as .clang-format have none. Files that are copied into
the lab's reports have none, because a report is not under the licence."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_text import NOT_OURS  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SLASHES, HASH = f"// {LICENCE}", f"# {LICENCE}"
LINES = {**dict.fromkeys((".cpp", ".hpp", ".c", ".h", ".js", ".rs", ".go", ".java", ".cs", ".pml", ".bt"), SLASHES),
         **dict.fromkeys((".py", ".cmake", ".toml", ".sh", ".yml", ".in", ".wrap", ".config"), HASH),
         ".natvis": f"<!-- {LICENCE} -->", ".map": f"/* {LICENCE} */"}
NAMES = dict.fromkeys(("CMakeLists.txt", "dev", "run", "meson.build", "rules", "find-package", "pkg-config", "static"),
                      HASH)
LEFT_OUT = ("lab/tocsin_lab/present/page/", "lab/figures/")
# Lines that must be the first of their file.
BEFORE = re.compile(r"#!|<\?xml |// (expect|expect only|expect of clang|misuse): ")


def line_of(path):
    """The line as a comment of this source file; None for other files."""
    return NAMES.get(path.name) or LINES.get(path.suffix)


def sources(root):
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if not NOT_OURS.intersection(relative.parts) and not relative.as_posix().startswith(LEFT_OUT) \
                and line_of(path) and path.is_file() and path.stat().st_size:
            yield path


def place_for(lines):
    return next((number for number, line in enumerate(lines) if not BEFORE.match(line)), len(lines))


def has_line(path):
    lines = path.read_text().splitlines()
    place = place_for(lines)
    return lines[place:place + 1] == [line_of(path)]


def write_line(path):
    lines = path.read_text().splitlines()
    lines.insert(place_for(lines), line_of(path))
    path.write_text("\n".join(lines) + "\n")


def main(arguments):
    if arguments not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    lacking = [path for path in sources(ROOT) if not has_line(path)]
    for path in lacking:
        if arguments:
            write_line(path)
        else:
            print(f"{path.relative_to(ROOT)}:1: no line `{LICENCE}`; tools/spdx.py --write adds it")
    return 1 if lacking and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Rules about the text of the tree that no formatter knows. Prints file:line: what is wrong."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = {".git", ".venv", "build", "__pycache__"}
TEXT = {".cpp", ".hpp", ".h", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".toml", ""}

PROMISE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(home|root|Users|work)/\w")
MACRO = re.compile(r"#\s*define\s+(\w+)")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\(")
NO_FACT = "no fact to wait for"
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)[^)]*\)")


def check_every_file(path, text):
    if text and not text.endswith("\n"):
        yield len(text.splitlines()), "no newline at the end"
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield number, "space at the end of the line"
        if "\t" in line and path.name != "LICENSE":
            yield number, "a tab"
        if PROMISE.search(line):
            yield number, "a promise: do it, or file it as an issue"
        if MACHINE_PATH.search(line):
            yield number, "a path of one machine"


def check_cpp(path, text):
    name = path.relative_to(ROOT).as_posix()
    if not re.fullmatch(r"[a-z0-9_]+\.[ch]pp", path.name):
        yield 1, "file names are snake_case"
    if path.suffix == ".hpp" and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield 1, "no #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        macro = MACRO.match(line)
        if macro and name.startswith(("include/", "src/")) and not macro[1].startswith("TOCSIN_"):
            yield number, f"{macro[1]}: macros begin with TOCSIN_"
        if SLEEP.search(line) and NO_FACT not in line \
                and name.startswith(("tests/unit/", "tests/internal/")):
            yield number, f"a test waits for a fact, not for a time; else say `{NO_FACT}: why`"
    if re.match(r"tests/(unit|internal|stress)/[^/]+\.cpp$", name) and not name.endswith("_test.cpp"):
        build = path.parent / "CMakeLists.txt"
        if not build.exists() or path.name not in build.read_text():
            yield 1, "never built: tests are named *_test.cpp"


def check_markdown(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if not (path.parent / target).exists():
                yield number, f"a link to {target}, which is not there"


def check(path):
    text = path.read_bytes().decode()
    yield from check_every_file(path, text)
    if path.suffix in (".cpp", ".hpp"):
        yield from check_cpp(path, text)
    if path.suffix == ".md":
        yield from check_markdown(path, text)


def main():
    found = 0
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if NOT_OURS.intersection(parts) or path.suffix not in TEXT or not path.is_file():
            continue
        for number, complaint in check(path):
            print(f"{path.relative_to(ROOT)}:{number}: {complaint}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

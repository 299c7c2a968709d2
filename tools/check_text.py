#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules about the text of the tree that no formatter knows. Prints file:line: what is wrong.

The rules about prose are in prose.py."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import prose  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = {".git", ".venv", "build", "__pycache__"}
TEXT = {".cpp", ".hpp", ".h", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".toml", ".pml", ".js",
        ".rs", ".go", ".java", ".cs", ""}

PROMISE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(home|root|Users|work)/\w")
MACRO = re.compile(r"#\s*define\s+(\w+)")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\(")
# CMake lists a typed suite by the numbers that GoogleTest gives to its types: it takes other names for a suite's own.
NAMED_TYPES = re.compile(r"\b(?:TYPED_TEST_SUITE\(\w+,[^,;]*|INSTANTIATE_TYPED_TEST_SUITE_P\(\w+,[^,;]*,[^,;]*),\s*\w")
# A comment of whole lines, and the next four lines.
CONTRACT = re.compile(r"^((?: *//.*\n)+)((?:.*\n){4})", re.MULTILINE)
CONTRACT_LINES = 12
NO_FACT = "no fact to wait for"


def check_every_file(path, text):
    if text and not text.endswith("\n"):
        yield len(text.splitlines()), "no newline at the end"
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield number, "space at the end of the line"
        if "\t" in line and path.suffix != ".go" and path.name not in ("LICENSE", "rules"):
            yield number, "a tab"
        if PROMISE.search(line):
            yield number, "a promise: do it, or file it as an issue"
        if MACHINE_PATH.search(line):
            yield number, "a path of one machine"


def check_cpp(name, path, text):
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
    for suite in NAMED_TYPES.finditer(text):
        yield text.count("\n", 0, suite.start()) + 1, "a typed suite names its types: ctest would list its cases wrongly"
    if re.match(r"tests/(unit|internal|stress)/[^/]+\.cpp$", name) and not name.endswith("_test.cpp"):
        build = path.parent / "CMakeLists.txt"
        if not build.exists() or path.name not in build.read_text():
            yield 1, "never built: tests are named *_test.cpp"


def check_contracts(text):
    """Whoever calls a function reads its contract whole. That of a class may be longer."""
    for contract in CONTRACT.finditer(text):
        lines = contract[1].count("\n")
        of_a_type = re.match(r"\n|#", contract[2]) or re.search(r"^ *(class|struct|concept) ", contract[2], re.MULTILINE)
        if lines > CONTRACT_LINES and not of_a_type:
            yield text.count("\n", 0, contract.start()) + 1, \
                f"a contract of {lines} lines: a function's has {CONTRACT_LINES} at most, the guide has the fine print"


def tree(root):
    """Every file of ours that is text, by its path: (path relative to the root, path, text)."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if not NOT_OURS.intersection(relative.parts) and path.suffix in TEXT and path.is_file():
            yield relative.as_posix(), path, path.read_bytes().decode()


def check_prose(name, path, text, root, known, names):
    yield from prose.check_words(path, text)
    yield from prose.check_old_names(path, text)
    if not name.startswith("proofs/"):  # its models number their properties
        yield from prose.check_old_labels(path, text)
    yield from prose.check_citations(path, text, known, names)
    yield from prose.check_paths(path, text, root)


def check(root):
    """All complaints about a tree: (name, line, what is wrong)."""
    files = list(tree(root))
    sources = [(name, text) for name, _, text in files if name.startswith(("src/", "include/", "win32/"))]
    defined = [(label, name) for name, text in sources for label, _ in prose.invariants_in(name, text)]
    known = {label for label, _ in defined}
    names = {each for name, _ in sources for each in prose.labels_of(name)}
    for label in sorted(known):
        if len({name for each, name in defined if each == label}) > 1:
            yield next(name for each, name in defined if each == label), 1, f"{label} is stated in two files"
    for name, path, text in files:
        complaints = list(check_every_file(path, text))
        if path.suffix in (".cpp", ".hpp"):
            complaints += check_cpp(name, path, text)
        if re.fullmatch(r"include/tocsin/\w+\.hpp", name):
            complaints += check_contracts(text)
        if path.suffix == ".md":
            complaints += prose.check_links(path, text)
        complaints += check_prose(name, path, text, root, known, names)
        for number, complaint in complaints:
            yield name, number, complaint


def main():
    found = list(check(ROOT))
    for name, number, complaint in found:
        print(f"{name}:{number}: {complaint}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

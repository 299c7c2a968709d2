#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every block of C++ and C of every document.

    document_blocks.py COMPILER SOURCE_TREE WORK_FOLDER [OPTION...]

Most blocks are in a test that also runs them (RUN_BY); spaces don't count. programs.py runs whole programs of the pages
docs/coming_from_*.md. For the others, contexts.txt has the
declarations that the text around a block takes for granted. `...` in a block stands for nothing. Ends by counting."""

import re
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^```(cpp|c)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^== ([^,\n]+), (.*?)(: declarations)?$", re.MULTILINE)
RUN_BY = ("tests/unit/coming_from_test.cpp", "tests/unit/coming_from_libraries_test.cpp", "tests/unit/guide_test.cpp",
          "examples/short/readme.cpp")
LANGUAGES = {"cpp": ["-std=c++20"], "c": ["-x", "c", "-std=c11"]}
INCLUDED = ("include", "c/include", "win32/include", "tests/support")
NOT_OURS = {"build", ".venv", ".git"}


def blocks(tree):
    """(document, line, language, code) of every block."""
    for path in sorted(tree.rglob("*.md")):
        name = path.relative_to(tree).as_posix()
        if NOT_OURS.intersection(path.relative_to(tree).parts):
            continue
        text = path.read_text()
        for found in FENCE.finditer(text):
            yield name, text[:found.start()].count("\n") + 2, found[1], found[2]


def squeezed(code):
    return re.sub(r"\s|\.\.\.", "", code)


def contexts():
    """By document and first line: the declarations, and whether the block has declarations of its own."""
    text = (Path(__file__).parent / "contexts.txt").read_text()
    heads = [head for head in SECTION.finditer(text) if head.start() == 0 or text[head.start() - 1] == "\n"]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {(head[1], head[2]): (text[head.end():end].strip(), bool(head[3])) for head, end in zip(heads, ends)}


def program(document, line, language, code, context, is_declarations):
    code = re.sub(r"(?<![\w.])\.\.\.(?!\))", "", code)
    if is_declarations:
        body = f'#line {line} "{document}"\n{code}'
    else:
        body = f'void block() {{\n#line {line} "{document}"\n{code}}}\n'
    if language == "c":
        return f"{context}\n{body}"
    headers = ("atomic", "chrono", "csignal", "cstdint", "coroutine", "deque", "list", "mutex", "span", "stop_token",
               "thread", "utility")
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return f"#include <tocsin/tocsin.hpp>\n{includes}{context}\n{body}"


def main(compiler, tree, work, *options):
    tree, work = Path(tree), Path(work)
    work.mkdir(parents=True, exist_ok=True)
    known, passed, failed = contexts(), 0, 0
    used = set()
    tests = [squeezed((tree / path).read_text()) for path in RUN_BY]
    for document, line, language, code in blocks(tree):
        is_run = document.startswith("docs/coming_from_") and "int main()" in code
        if is_run or any(squeezed(code) in test for test in tests):
            passed += 1
            continue
        key = (document, code.splitlines()[0])
        used.add(key)
        if key not in known:
            print(f"{document}:{line}: contexts.txt has no section `== {document}, {key[1]}`")
            failed += 1
            continue
        context, is_declarations = known[key]
        if context.startswith("not compiled:"):
            continue
        source = work / f"{document.replace('/', '_')}-{line}.{language}"
        source.write_text(program(document, line, language, code, context, is_declarations))
        command = [compiler, *LANGUAGES[language], "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
                   "-Wno-unused-but-set-variable",
                   *(f"-I{tree / folder}" for folder in INCLUDED), *options, source]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        failed += result.returncode != 0
        passed += result.returncode == 0
        print(result.stderr, end="")
    for document, first in known.keys() - used:
        print(f"contexts.txt: {document} has no block that begins with `{first}`")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

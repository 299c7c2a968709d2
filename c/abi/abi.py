#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ABI of tocsin.h: compares what the header and the shared library say with the list in abi.txt.

    abi.py check --compiler cc --library libtocsin-c.so.1     fails, and names each line that differs
    abi.py write --compiler cc --library libtocsin-c.so.1     writes the list again

A line of the list is a size with its alignment, the offset of a member, a number, a signature, or an exported symbol.
Sizes and offsets are those of systems with 64-bit pointers; elsewhere they are not compared. Within one
TOCSIN_API_VERSION, lines may only be added.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "abi.txt"
INCLUDE = HERE.parent / "include"
MACROS = re.compile(r"#define (TOCSIN_(?:API_VERSION|WAKE_ALL|\w+_MAX|EVENT_\w+|LOCK_INIT|CONDITION_INIT|SEMAPHORE_INIT"
                    r"\(\w+\))) (.*)")


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def statements(text):
    """The parts of the text between those semicolons that are outside all braces and parentheses."""
    depth, begin = 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "{(") - (letter in "})")
        if letter == ";" and depth == 0:
            yield text[begin:position].strip()
            begin = position + 1


def members(body):
    """The names of a structure's members."""
    for declaration in statements(body):
        declaration = re.sub(r"\([^()]*\)$", "", declaration)  # the parameters of a pointer to a function
        declaration = re.sub(r"\{.*\}", "", declaration, flags=re.DOTALL)
        for one in declaration.split(","):
            yield re.search(r"(\w+)\W*(?:\[\w+\])?$", one)[1]


def read_header(compiler):
    """(structures with their members, enumerators, other lines) of the header."""
    text = run(compiler, "-std=c11", "-E", "-P", f"-I{INCLUDE}", INCLUDE / "tocsin.h")
    text = re.sub(r'__attribute__\(\(visibility\("default"\)\)\)', "", text)
    text = re.sub(r"\s+", " ", text)
    structures, numbers, lines = {}, [], []
    for statement in statements(text):
        if "tocsin_" not in statement and "TOCSIN_" not in statement or statement.startswith("_Static_assert"):
            continue
        if match := re.fullmatch(r"typedef struct (\w+) \{(.*)\} \w+", statement):
            structures[match[1]] = list(members(match[2]))
        elif match := re.fullmatch(r"(?:typedef )?enum \w* ?\{(.*)\}.*", statement):
            numbers += re.findall(r"(TOCSIN_\w+) =", match[1])
            if match := re.match(r"typedef enum (\w+)", statement):
                structures[match[1]] = []
        else:
            lines.append(("type " if statement.startswith("typedef") else "function ")
                         + re.sub(r"^extern ", "", statement))
    for line in run(compiler, "-std=c11", "-E", "-dM", f"-I{INCLUDE}", INCLUDE / "tocsin.h").splitlines():
        if match := MACROS.match(line):
            lines.append(f"macro {match[1]} {match[2]}")
    return structures, numbers, lines


def measured(compiler, structures, numbers):
    """The lines that only a compiler knows."""
    body = ["#include <tocsin.h>", "#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    for name, parts in structures.items():
        body.append(f'if (sizeof(void*) == 8) printf("size {name} %zu %zu\\n", sizeof({name}), _Alignof({name}));')
        for part in parts:
            body.append(f'if (sizeof(void*) == 8) printf("offset {name}.{part} %zu\\n", offsetof({name}, {part}));')
    body += [f'printf("value {name} %lld\\n", (long long){name});' for name in numbers]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text("\n".join([*body, "return 0; }"]))
        run(compiler, "-std=c11", f"-I{INCLUDE}", source, "-o", program)
        return run(program).splitlines()


def exported(nm, library):
    """The symbols that the library exports: all of them, so that none is exported by mistake."""
    lines = run(nm, "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    names = (line.split()[-1] for line in lines)
    # A sanitizer or a profiler adds its own. tocsin_debugger_layout is for debuggers, not for programs.
    return [f"symbol {name}" for name in names if not re.match(r"_|TOCSIN_C_\d|tocsin_debugger_layout", name)]


def abi(arguments):
    structures, numbers, lines = read_header(arguments.compiler)
    lines += measured(arguments.compiler, structures, numbers)
    symbols = exported(arguments.nm, arguments.library)
    declared = {re.search(r"(tocsin_\w+) ?\(", line)[1] for line in lines if line.startswith("function ")}
    defined = {line.split()[1].split("@")[0] for line in symbols}
    for name in sorted(declared ^ defined):
        sys.exit(f"{name}: {'declared and not exported' if name in declared else 'exported and not declared'}")
    return sorted(lines + symbols)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("check", "write"))
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    now = abi(arguments)
    if arguments.verb == "write":
        LIST.write_text("\n".join(now) + "\n")
        return 0
    was = LIST.read_text().splitlines()
    if not any(line.startswith("size ") for line in now):
        was = [line for line in was if not line.startswith(("size ", "offset "))]
    for line in sorted(set(was) - set(now)):
        print(f"gone or changed: {line}")
    for line in sorted(set(now) - set(was)):
        print(f"new: {line}")
    if now != was:
        print("If this is meant: `abi.py write`, and a new TOCSIN_API_VERSION unless lines were only added.")
        return 1
    print(f"{len(now)} lines agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
